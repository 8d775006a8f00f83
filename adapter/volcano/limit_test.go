package volcano

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/adapter/objects"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// limited is a queue whose annotation for limits has a text.
func limited(annotation string) string {
	return "kind: Queue\nmetadata:\n  name: q\n  annotations:\n    volcano.sh/nodegroup-resource-limits: '" + annotation + "'\n"
}

func TestLimitsForNodeGroupsAreReadAsVolcanoReadsThem(t *testing.T) {
	type limits = map[string]map[string]float64
	for _, story := range []struct {
		name, annotation string
		want             limits
	}{
		{"units", `{"g1":{"cpu":"1500m","memory":"1Gi","nvidia.com/gpu":2,"pods":"3"},"g 2":{"cpu":50}}`, limits{
			"g1": {"cpu": 1500, "memory": 1 << 30, "nvidia.com/gpu": 2000, "pods": 3}, "g 2": {"cpu": 50000},
		}},
		{"a group without resources", `{"g":{}}`, limits{"g": {}}},
		{"null", `{"g":null,"h":{"cpu":null}}`, limits{"g": {}, "h": {"cpu": 0}}},
		{"spaces and a repeated group", ` {"g":{"cpu":"1"}, "g":{"memory":" 7 "}} `, limits{"g": {"memory": 7}}},
		{"resources that Volcano does not account for", `{"g":{"cpu":1,"count/pods":3,"storage":1}}`, limits{"g": {"cpu": 1000}}},
		{"nothing", ``, nil},
		{"no group", `{}`, nil},
		{"no object", `null`, nil},
	} {
		t.Run(story.name, func(t *testing.T) {
			s := read(t, limited(story.annotation)).Snapshot
			var got limits
			for _, l := range s.GetQueues()[0].GetNodeGroupLimits().GetGroups() {
				if got == nil {
					got = limits{}
				}
				got[l.GetGroup()] = map[string]float64{}
				for i, d := range l.GetLimit().GetDimensions() {
					got[l.GetGroup()][s.GetDimensions()[d]] = l.GetLimit().GetAmounts()[i]
				}
			}
			require.Equal(t, story.want, got)
			require.False(t, s.GetQueues()[0].GetNodeGroupLimits().GetInvalid())
		})
	}
}

func TestLimitsThatCannotBeReadAreInvalidAndTheQueueStays(t *testing.T) {
	for name, annotation := range map[string]string{
		"cut short": `{"g1":{"cpu":`, "a list": `[]`, "a text": `"g"`, "a number for a group": `{"g":3}`, "a list of resources": `{"g":[1]}`,
		"no quantity": `{"g":{"cpu":"much"}}`, "an object for a quantity": `{"g":{"cpu":{}}}`, "a negative quantity": `{"g":{"cpu":"-1"}}`,
		"a huge exponent": `{"g":{"cpu":"1e999999999"}}`, "more than one value": `{} {}`,
		"deep": strings.Repeat(`{"g":`, 20_000), "a control character": `{"\u001b[2J":{"cpu":"\u001b"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			cluster, err := ReadManifests([]objects.Source{{Name: "cluster.yaml", Data: []byte(limited(annotation))}}, LeaveOutFaulty())
			require.NoError(t, err)
			require.Empty(t, cluster.Faulty)
			require.Len(t, cluster.Warnings, 1)
			require.Equal(t, apportionv1.WarningCode_WARNING_CODE_SETTING_IGNORED, cluster.Warnings[0].GetCode())
			require.Contains(t, cluster.Warnings[0].GetPath(), "cluster.yaml:5: metadata.annotations.volcano.sh/nodegroup-resource-limits")
			require.Contains(t, cluster.Warnings[0].GetMessage(), "no node takes tasks of the queue under Volcano 1.16")
			limits := cluster.Snapshot.GetQueues()[0].GetNodeGroupLimits()
			require.True(t, limits.GetInvalid())
			require.Empty(t, limits.GetGroups())

			_, err = ReadManifests([]objects.Source{{Name: "cluster.yaml", Data: []byte(limited(annotation))}})
			require.ErrorContains(t, err, "cluster.yaml:5: metadata.annotations.volcano.sh/nodegroup-resource-limits")
		})
	}
}
