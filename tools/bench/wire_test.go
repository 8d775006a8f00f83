package bench_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/internal/wire"
	"github.com/apportion/apportion/tools/bench/internal/fixture"
)

func encoded(tb testing.TB, shape generate.Shape) []byte {
	tb.Helper()
	data, err := proto.Marshal(generate.Snapshot(shape))
	require.NoError(tb, err)
	return data
}

func message(tb testing.TB, policy string) *apportionv1.Policy {
	tb.Helper()
	p, err := fixture.Policy(policy)
	require.NoError(tb, err)
	return p
}

var everyShare = &apportionv1.Step{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{}}}

// answer compiles bytes, opens a session and asks for all shares.
func answer(decoder *decode.Decoder, data []byte, p *apportionv1.Policy) error {
	m, err := decoder.CompileWithin(data, decode.Guard{Sums: true})
	if err != nil {
		return err
	}
	session, err := wire.Open(m, p, wire.Options{})
	if err != nil {
		return err
	}
	_, err = session.Ask(everyShare)
	return err
}
