package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestATraceIsReadAsItWasWritten(t *testing.T) {
	trace := generateTrace(3)
	var file bytes.Buffer
	require.NoError(t, writeTrace(&file, trace))
	again, err := readTrace(&file)
	require.NoError(t, err)
	require.Equal(t, trace, again)
}

func TestFaultsOfATraceAreNamed(t *testing.T) {
	header := strings.Join(columns, ",") + "\n"
	for story, test := range map[string]struct{ file, want string }{
		"no jobs":            {header, "there are no jobs"},
		"other columns":      {"a,b\n", "the columns are"},
		"no number":          {header + "x,j,a,0,1,1,1,1,1,60\n", `job 1: arrival_seconds: "x" is not a number that it could be`},
		"negative":           {header + "0,j,a,0,1,1,-1,1,1,60\n", `job 1: gpus_per_task: "-1" is not`},
		"minimum too high":   {header + "0,j,a,0,2,3,1,1,1,60\n", "job 1: j has 2 tasks of which 3 must run"},
		"out of order":       {header + "9,j,a,0,1,1,1,1,1,60\n8,k,a,0,1,1,1,1,1,60\n", "job k arrives before"},
		"the same job twice": {header + "9,j,a,0,1,1,1,1,1,60\n9,j,a,0,1,1,1,1,1,60\n", "job j occurs twice"},
	} {
		_, err := readTrace(strings.NewReader(test.file))
		require.ErrorContains(t, err, test.want, story)
	}
}

func TestJobsThatTheClusterCannotHoldAreRefused(t *testing.T) {
	cluster := twoNodes()
	require.ErrorContains(t, cluster.check([]Submission{job("j", "nowhere", 0, 1, 1, 1, 60)}), `job j: no queue "nowhere"`)
	require.ErrorContains(t, cluster.check([]Submission{job("j", "a", 0, 1, 1, 9, 60)}), "job j: no node holds")
}

func TestQuantilesAreOfTheValuesThatOccur(t *testing.T) {
	require.Equal(t, int64(0), quantile(nil, 50))
	require.Equal(t, int64(1), quantile([]int64{1, 2}, 50))
	require.Equal(t, int64(2), quantile([]int64{1, 2}, 51))
	require.Equal(t, int64(2), quantile([]int64{1, 2}, 100))
}
