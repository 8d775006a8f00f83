package check_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/apportion/apportion/client/check/certificate"
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
			for _, d := range slices.Concat(p.GetFair().GetDivisions(), p.GetFair().GetSatedDivisions()) {
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

// TestWhatTheProofFoundMissing has certificates that the short checker accepted until tools/proof showed that they do not determine the division.
func TestWhatTheProofFoundMissing(t *testing.T) {
	for _, c := range []struct{ name, amount, of, level, children string }{
		{
			"more is guaranteed than is useful, and another child goes short of two units that are free", "8", "WEIGHT", "5/2",
			`{"queue": 1, "guaranteed": "5", "begin": "5", "useful": "3", "weight": "1", "start": "5", "ceiling": "3", "share": "5",
				"guaranteeLine": "5", "fairLine": "5", "bound": "FAIR_BOUND_LOWER"},
			{"queue": 2, "useful": "5", "weight": "1", "ceiling": "5", "share": "3", "fairLine": "3", "bound": "FAIR_BOUND_LEVEL"}`,
		},
		{
			"a guarantee that weighs nothing where guarantees do not fit, and gets nothing", "4", "GUARANTEE", "1/6",
			`{"queue": 1, "guaranteed": "4", "begin": "4", "useful": "4", "ceiling": "4", "bound": "FAIR_BOUND_LOWER"},
			{"queue": 2, "guaranteed": "1", "begin": "1", "useful": "1", "weight": "3", "ceiling": "1", "share": "1",
				"guaranteeLine": "1", "fairLine": "1", "bound": "FAIR_BOUND_UPPER"}`,
		},
		{
			"the weights of one child are added to where it begins, and those of another are not", "6", "WEIGHT", "3/2",
			`{"queue": 1, "guaranteed": "2", "begin": "2", "useful": "9", "weight": "1", "start": "2", "ceiling": "9", "base": "2", "share": "4",
				"guaranteeLine": "2", "fairLine": "4", "bound": "FAIR_BOUND_LEVEL"},
			{"queue": 2, "guaranteed": "2", "begin": "2", "useful": "9", "weight": "1", "start": "2", "ceiling": "9", "share": "2",
				"guaranteeLine": "2", "fairLine": "2", "bound": "FAIR_BOUND_LOWER"}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			level := strings.Split(c.level, "/")
			faults, err := certificate.Check(fmt.Appendf(nil, `{"plugins": [{"fair": {"divisions": [{"amount": %q, "rule": "FAIR_CASE_%s",
				"level": {"numerator": %q, "denominator": %q}, "children": [%s], "root": {"share": %q, "fairLine": %q}}]}}]}`,
				c.amount, c.of, level[0], level[1], c.children, c.amount, c.amount))
			require.NoError(t, err)
			require.Len(t, faults, 1)
		})
	}
}

func TestWhatHasNoCertificateIsSaid(t *testing.T) {
	for _, answer := range []string{"{}", "[", `{"plugins": [{"fair": {"divisions": [{"amount": "x"}]}}]}`, `{"plugins": [{"fair": {"divisions": [{"amount": "-1"}]}}]}`} {
		_, err := certificate.Check([]byte(answer))
		require.Error(t, err)
	}
	faults, err := certificate.Check([]byte(`{"plugins": [{"fair": {"divisions": [{"children": [{"queue": 0}, null]}, null]}}]}`))
	require.NoError(t, err)
	require.NotEmpty(t, faults)
}
