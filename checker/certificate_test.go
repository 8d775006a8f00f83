package checker_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/apportion/apportion/checker/certificate"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/test/raced"
)

func certified(t *testing.T, shares *apportionv1.SharesAnswer) []string {
	t.Helper()
	data, err := protojson.Marshal(shares)
	require.NoError(t, err)
	faults, err := certificate.Check(data)
	require.NoError(t, err)
	return faults
}

func TestCertificatesFollowFromTheirOwnNumbers(t *testing.T) {
	eachCase(t, 5, func(t *testing.T, r *apportionv1.SimulateRequest) {
		t.Helper()
		require.Empty(t, certified(t, answered(t, r).GetAnswers()[0].GetShares()))
	})
}

// TestWhatTheShortCheckerFinds changes every number of the divisions by one: all are found but some of those that it takes as they are,
// weights that change no share, and what a root without children says of itself.
func TestWhatTheShortCheckerFinds(t *testing.T) {
	raced.Skip(t)
	missed, changed := map[string]int{}, 0
	eachCase(t, 397, func(t *testing.T, r *apportionv1.SimulateRequest) {
		t.Helper()
		shares := answered(t, r).GetAnswers()[0].GetShares()
		for _, p := range shares.GetPlugins() {
			for _, d := range slices.Concat(p.GetFair().GetDivisions(), p.GetFair().GetSated()) {
				tamper(d.ProtoReflect(), "", func(path string) {
					changed++
					data, err := protojson.Marshal(shares)
					require.NoError(t, err)
					// A value that the contract does not have is an error.
					if faults, err := certificate.Check(data); err == nil && len(faults) == 0 {
						missed[path[strings.LastIndex(path, ".")+1:]]++
					}
				})
			}
		}
	})
	require.Greater(t, changed, 1000)
	require.Subset(t, []string{"guaranteed", "begin", "useful", "weight", "queue", "dimension", "amount"}, slices.Collect(maps.Keys(missed)))
}

func TestWhatHasNoCertificateIsSaid(t *testing.T) {
	for _, answer := range []string{"{}", "[", `{"plugins": [{"fair": {"divisions": [{"amount": "x"}]}}]}`} {
		_, err := certificate.Check([]byte(answer))
		require.Error(t, err)
	}
	faults, err := certificate.Check([]byte(`{"plugins": [{"fair": {"divisions": [{"children": [{"queue": 0}, null]}, null]}}]}`))
	require.NoError(t, err)
	require.NotEmpty(t, faults)
}
