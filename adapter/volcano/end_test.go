package volcano

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// readEnding reads a job with annotations, given as flow YAML, and its pods, each given by its spec and status.
func readEnding(t *testing.T, annotations string, pods ...[2]string) *Cluster {
	t.Helper()
	manifests := aQueue + fmt.Sprintf(`
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: j, namespace: ns, annotations: {%s}}
spec: {queue: q}
---
kind: Node
metadata: {name: n}
`, annotations)
	for i, pod := range pods {
		manifests += fmt.Sprintf(`
---
kind: Pod
metadata: {name: p%d, namespace: ns, %s}
spec: {nodeName: n, %s}
status: {%s}
`, i, inGroup, pod[0], pod[1])
	}
	return read(t, manifests)
}

func at(clock string) int64 {
	moment, err := time.Parse(time.RFC3339, "2026-03-02T"+clock+":00Z")
	if err != nil {
		panic(err)
	}
	return moment.UnixNano()
}

func TestTheEndOfAJobIsReadFromItsAnnotationsAndTheDeadlinesOfItsPods(t *testing.T) {
	const (
		end     = `apportion.dev/expected-end: "2026-03-02T18:00:00Z"`
		hour    = "activeDeadlineSeconds: 3600"
		runtime = `apportion.dev/expected-runtime: 2h30m`
	)
	early, late := `phase: Running, startTime: "2026-03-02T10:00:00Z"`, `phase: Running, startTime: "2026-03-02T11:00:00Z"`
	for name, c := range map[string]struct {
		annotations string
		pods        [][2]string
		end         int64
		deadline    bool
	}{
		"nothing is known": {pods: [][2]string{{"", early}}},
		"the end is given": {annotations: end, pods: [][2]string{{"", early}}, end: at("18:00")},
		"the runtime counts from the first pod's start": {
			annotations: runtime, pods: [][2]string{{"", late}, {"", early}}, end: at("12:30"),
		},
		"the end goes before the runtime":          {annotations: end + ", " + runtime, pods: [][2]string{{"", early}}, end: at("18:00")},
		"without a start the runtime says nothing": {annotations: runtime, pods: [][2]string{{"", "phase: Pending"}}},
		"the last deadline of all pods ends the job": {
			pods: [][2]string{{hour, early}, {hour, late}}, end: at("12:00"), deadline: true,
		},
		"a pod without a deadline may run on":     {pods: [][2]string{{hour, early}, {"", late}}},
		"a deadline goes before a later estimate": {annotations: end, pods: [][2]string{{hour, early}}, end: at("11:00"), deadline: true},
		"an estimate goes before a later deadline": {
			annotations: end, pods: [][2]string{{"activeDeadlineSeconds: 86400", early}}, end: at("18:00"),
		},
		"a pod that has ended does not keep it open": {
			pods: [][2]string{{hour, early}, {"", `phase: Succeeded, startTime: "2026-03-02T09:00:00Z"`}},
			end:  at("11:00"), deadline: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			job := readEnding(t, c.annotations, c.pods...).Snapshot.GetJobs()[0]
			require.Equal(t, c.end, job.GetExpectedEnd())
			require.Equal(t, c.deadline, job.GetEndIsDeadline())
		})
	}
	require.Equal(t, []int64{at("10:00")}, readEnding(t, "", [2]string{"", late}, [2]string{"", early}).Started)
}

func TestAnnotationsThatAreNoTimesAreWarnedOf(t *testing.T) {
	for _, annotation := range []string{
		`apportion.dev/expected-end: soon`, `apportion.dev/expected-end: "0001-01-01T00:00:00Z"`, `apportion.dev/expected-runtime: "2"`,
		`apportion.dev/expected-runtime: -1h`,
	} {
		c := readEnding(t, annotation, [2]string{"", `phase: Running, startTime: "2026-03-02T10:00:00Z"`})
		require.Zero(t, c.Snapshot.GetJobs()[0].GetExpectedEnd())
		require.Len(t, c.Warnings, 1)
		require.Equal(t, apportionv1.WarningCode_WARNING_CODE_SETTING_IGNORED, c.Warnings[0].GetCode())
	}
}

func TestHowLongAJobRunsIsReadFromItsAnnotationAndTheDeadlinesOfItsPods(t *testing.T) {
	const (
		runtime = `apportion.dev/expected-runtime: 2h30m`
		hour    = "activeDeadlineSeconds: 3600"
		waits   = "phase: Pending"
	)
	for name, c := range map[string]struct {
		annotations string
		pods        [][2]string
		want        time.Duration
	}{
		"nothing is known":                         {pods: [][2]string{{"", waits}}},
		"the annotation, before the job starts":    {annotations: runtime, pods: [][2]string{{"", waits}}, want: 150 * time.Minute},
		"the annotation of a job that runs":        {annotations: runtime, pods: [][2]string{{"", "phase: Running"}}, want: 150 * time.Minute},
		"every pod has a deadline":                 {pods: [][2]string{{hour, waits}, {"activeDeadlineSeconds: 60", waits}}, want: time.Hour},
		"a pod without a deadline may run on":      {pods: [][2]string{{hour, waits}, {"", waits}}},
		"deadlines that are earlier than expected": {annotations: runtime, pods: [][2]string{{hour, waits}}, want: time.Hour},
		"deadlines that are later than expected": {
			annotations: runtime, pods: [][2]string{{"activeDeadlineSeconds: 86400", waits}}, want: 150 * time.Minute,
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, int64(c.want), readEnding(t, c.annotations, c.pods...).Snapshot.GetJobs()[0].GetExpectedRuntime())
		})
	}
}
