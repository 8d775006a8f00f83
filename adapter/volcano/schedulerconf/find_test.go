package schedulerconf

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/adapter/objects"
)

const smallConf = "actions: allocate\ntiers:\n- plugins:\n  - name: gang\n    enableJobRedy: true\n"

// inConfigMap is the YAML that kubectl prints of the ConfigMap.
func inConfigMap(conf string) string {
	return "apiVersion: v1\ndata:\n  volcano-scheduler.conf: |\n    " + strings.ReplaceAll(strings.TrimSuffix(conf, "\n"), "\n", "\n    ") +
		"\nkind: ConfigMap\nmetadata:\n  name: volcano-scheduler-configmap\n"
}

func TestAConfigurationIsFoundAsItIsAndInAConfigMap(t *testing.T) {
	// The position of the warning about the misspelt switch.
	for name, c := range map[string]struct{ data, place string }{
		"as it is":    {smallConf, "f:5"},
		"a ConfigMap": {inConfigMap(smallConf), "f:8"},
		"a list of ConfigMaps": {
			"apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  data: {ca.crt: x}\n- apiVersion: v1\n  kind: ConfigMap\n  data:\n" +
				"    volcano-scheduler.conf: |\n      tiers:\n      - plugins:\n        - name: gang\n          enableJobRedy: true\n      actions: allocate\n", "f:14",
		},
		"ConfigMaps behind each other": {"kind: ConfigMap\n---\n" + inConfigMap(smallConf), "f:10"},
		"JSON": {
			`{"kind": "ConfigMap", "data": {"volcano-scheduler.conf": "tiers:\n- plugins:\n  - name: gang\n    enableJobRedy: true\nactions: allocate\n"}}`,
			"f: volcano-scheduler.conf:4",
		},
	} {
		t.Run(name, func(t *testing.T) {
			found, ok, err := Find(objects.Source{Name: "f", Data: []byte(c.data)})
			require.NoError(t, err)
			require.True(t, ok)
			policy, warnings, err := Read(found)
			require.NoError(t, err)
			require.Len(t, policy.GetTiers(), 1)
			require.Len(t, warnings, 1)
			require.True(t, strings.HasPrefix(warnings[0].GetPath(), c.place+": "), warnings[0].GetPath())
		})
	}
}

func TestOtherFilesAreNoConfiguration(t *testing.T) {
	for name, data := range map[string]string{
		"nothing":                    "",
		"no YAML":                    "tiers: [",
		"a text":                     "hello",
		"a policy of the contract":   "tiers:\n- plugins:\n  - gang: {}\n  - undecided: {name: predicates}\n",
		"a cluster":                  "apiVersion: v1\nkind: List\nitems:\n- kind: Queue\n",
		"a cluster with a ConfigMap": inConfigMap(smallConf) + "---\nkind: Queue\n",
		"a list of numbers":          "- 1\n- 2\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, ok, err := Find(objects.Source{Name: "f", Data: []byte(data)})
			require.NoError(t, err)
			require.False(t, ok)
		})
	}
}

func TestConfigMapsWithoutAConfigurationOrWithSeveralAreRefused(t *testing.T) {
	for data, want := range map[string]string{
		"kind: ConfigMap\ndata: {a.conf: x}\n":                        "f: no ConfigMap in it holds a volcano-scheduler.conf",
		inConfigMap(smallConf) + "---\n" + inConfigMap("tiers: []\n"): "f:15: a second ConfigMap with a volcano-scheduler.conf: give one of them",
	} {
		_, _, err := Find(objects.Source{Name: "f", Data: []byte(data)})
		require.EqualError(t, err, want)
	}
}
