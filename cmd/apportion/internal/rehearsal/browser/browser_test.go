package browser_test

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/cmd/apportion/internal/rehearsal/browser"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

const policy = `{"tiers": [{"plugins": [{"priority": {}}, {"gang": {}}]}, {"plugins": [{"proportion": {}}]}]}`

func cluster(t *testing.T) []byte {
	t.Helper()
	data, err := proto.Marshal(&apportionv1.Snapshot{
		Dimensions: []string{"cpu"},
		Nodes:      []*apportionv1.Node{{Name: "n", Allocatable: &apportionv1.Resource{Dimensions: []uint32{0}, Amounts: []float64{4000}}}},
		Queues:     []*apportionv1.Queue{{Name: "a", Weight: new(uint32(1))}, {Name: "b", Weight: new(uint32(1))}},
	})
	require.NoError(t, err)
	return data
}

func settings(every int64) []byte {
	return []byte(`{"name": "p", "policy": ` + policy + `, "entitled": {"proportion": ` + policy + `}, "every": ` + strconv.FormatInt(every, 10) + `}`)
}

func TestATraceIsRehearsedFromBytesToBytes(t *testing.T) {
	trace := "arrival,queue,seconds,cpu\n0,a,100,4\n10,b,100,4\n"
	var report browser.Report
	data, err := browser.Run(cluster(t), settings(1), "t.csv", []byte(trace), func(float64) {})
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &report))
	require.Equal(t, 2, report.Trace.Jobs)
	require.Equal(t, "cpu", report.Resource)
	require.Equal(t, "proportion", report.EntitledBy)
	require.Equal(t, 2, report.Run.Finished)
	require.Equal(t, int64(90), report.Run.Waits.Longest)
	again, err := browser.Run(cluster(t), settings(1), "t.csv", []byte(trace), func(float64) {})
	require.NoError(t, err)
	require.Equal(t, data, again)
}

func TestWhatCannotBeRehearsedIsAnError(t *testing.T) {
	many := "arrival,queue,seconds,cpu\n" + strings.Repeat("0,a,1,1\n", browser.MostJobs+1)
	for _, c := range []struct {
		name, trace string
		every       int64
		want        string
	}{
		{"t.csv", "", 1, "t.csv"},
		{"t.csv", "arrival,queue,seconds,cpu\n", 1, "t.csv has no jobs"},
		{"t.csv", "arrival,queue,cpu\n0,a,1\n", 1, "seconds"},
		{"t.csv", "arrival,queue,seconds,cpu\n0,c,1,1\n", 1, "queues that the cluster does not have: c"},
		{"t.csv", "arrival,queue,seconds,cpu\n0,a,1,x\n", 1, "t.csv:2"},
		{"t.csv", many, 1, "has 20001 jobs. The page rehearses up to 20000"},
		{"t.swf", "1 2 3", 1, "t.swf is not a trace that the page reads"},
		{"t.csv", "arrival,queue,seconds\n0,a,1\n", 0, "1 second or more"},
		{"t.csv", "arrival,queue,seconds\n0,a,1\n", math.MinInt64, "1 second or more"},
	} {
		_, err := browser.Run(cluster(t), settings(c.every), c.name, []byte(c.trace), func(float64) {})
		require.ErrorContains(t, err, c.want)
	}
	_, err := browser.Run(cluster(t), []byte("{"), "t.csv", nil, func(float64) {})
	require.ErrorContains(t, err, "the settings")
	_, err = browser.Run([]byte{0xff}, settings(1), "t.csv", nil, func(float64) {})
	require.ErrorContains(t, err, "the snapshot")
}
