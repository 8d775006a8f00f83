package schedulerconf

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/adapter/objects"
)

// heldMap is the ConfigMap of a namespace with a key, as YAML.
func heldMap(namespace, key, conf string) string {
	return strings.Replace(strings.Replace(inConfigMap(conf), configurationKey, key, 1), "metadata:\n", "metadata:\n  namespace: "+namespace+"\n", 1)
}

// listed is a list of objects as kubectl prints it.
func listed(objects ...string) string {
	list := "apiVersion: v1\nitems:\n"
	for _, o := range objects {
		list += "- " + strings.ReplaceAll(strings.TrimSuffix(o, "\n"), "\n", "\n  ") + "\n"
	}
	return list + "kind: List\n"
}

const (
	schedulerPod = "kind: Pod\nmetadata:\n  name: scheduler\n  note: of kind ConfigMap\nspec:\n  volumes:\n  - configMap: {name: volcano-scheduler-configmap}\n"
	otherConf    = "tiers: []\n"
)

func TestTheConfigurationIsFoundAmongOtherObjects(t *testing.T) {
	const queue = "kind: Queue\nmetadata:\n  name: q\n"
	inJSON := func(namespace string) string {
		return fmt.Sprintf(`{"kind": "ConfigMap", "metadata": {"name": %q, "namespace": %q}, "data": {"ca.crt": "x", %q: %q}}`,
			ConfigMapName, namespace, configurationKey, smallConf)
	}
	const inSystem = "ConfigMap volcano-system/volcano-scheduler-configmap"
	// The position of the warning about the misspelt switch.
	for name, c := range map[string]struct{ data, object, place string }{
		"a list":                 {listed(queue, schedulerPod, heldMap("volcano-system", configurationKey, smallConf)), inSystem, "f:20"},
		"a stream":               {queue + "---\n" + heldMap("volcano-system", configurationKey, smallConf), inSystem, "f:12"},
		"a list with anchors":    {"items:\n- &a\n  kind: ConfigMap\n  metadata: {name: volcano-scheduler-configmap}\n  data:\n    volcano-scheduler.conf: |\n      tiers:\n      - plugins:\n        - name: gang\n          enableJobRedy: true\n      actions: allocate\n", "ConfigMap volcano-scheduler-configmap", "f:10"},
		"a Helm release":         {strings.Replace(heldMap("b", configurationKey, smallConf), ConfigMapName, "batch-scheduler-configmap", 1), "ConfigMap b/batch-scheduler-configmap", "f:8"},
		"another key":            {heldMap("a", "volcano-scheduler-ci.conf", smallConf), "ConfigMap a/volcano-scheduler-configmap", "f:8"},
		"the system's namespace": {heldMap("a", configurationKey, otherConf) + "---\n" + heldMap("volcano-system", configurationKey, smallConf), inSystem, "f:17"},
		"a list in JSON":         {`{"items": [{"kind": "Queue"}, ` + inJSON("volcano-system") + `]}`, inSystem, "f: volcano-scheduler.conf:5"},
		"an array":               {"---\n[" + inJSON("volcano-system") + "]", inSystem, "f: volcano-scheduler.conf:5"},
		"documents in JSON":      {`{"kind": "Queue"}` + inJSON("volcano-system"), inSystem, "f: volcano-scheduler.conf:5"},
	} {
		t.Run(name, func(t *testing.T) {
			held, err := InCluster([]objects.Source{{Name: "f", Data: []byte(c.data)}})
			require.NoError(t, err)
			require.NotNil(t, held)
			require.Equal(t, c.object, held.Object)
			require.Equal(t, "f", held.File)
			policy, warnings, err := Read(held.Source)
			require.NoError(t, err)
			require.Len(t, policy.GetTiers(), 1)
			require.Len(t, warnings, 1)
			require.True(t, strings.HasPrefix(warnings[0].GetPath(), c.place+": "), warnings[0].GetPath())
		})
	}
}

func TestAClusterWithoutTheConfigMapHoldsNoConfiguration(t *testing.T) {
	for name, data := range map[string]string{
		"nothing":              "",
		"broken YAML":          "kind: ConfigMap\nname: volcano-scheduler-configmap [\n: {",
		"broken JSON":          `{"kind": "ConfigMap", "name": "volcano-scheduler-configmap", [`,
		"another name and key": strings.Replace(heldMap("a", "volcano-scheduler-ci.conf", smallConf), ConfigMapName, "mine", 1),
		"another key":          heldMap("a", "controller.conf", smallConf),
		"the scheduler's pod":  listed(schedulerPod),
		"no data":              "kind: ConfigMap\nmetadata: {name: volcano-scheduler-configmap}\n",
		"data of other types":  "kind: ConfigMap\nmetadata: {name: volcano-scheduler-configmap}\ndata: {volcano-scheduler.conf: [1]}\n",
	} {
		t.Run(name, func(t *testing.T) {
			held, err := InCluster([]objects.Source{{Name: "f", Data: []byte(data)}})
			require.NoError(t, err)
			require.Nil(t, held)
		})
	}
}

func TestSeveralConfigurationsAreRefusedUnlessTheyAreEqualOrOneIsPreferred(t *testing.T) {
	source := func(name, namespace, conf string) objects.Source {
		return objects.Source{Name: name, Data: []byte(heldMap(namespace, configurationKey, conf))}
	}
	_, err := InCluster([]objects.Source{source("f", "a", smallConf), source("g", "b", otherConf)})
	require.EqualError(t, err, "g:3: ConfigMap b/volcano-scheduler-configmap has another configuration than "+
		"ConfigMap a/volcano-scheduler-configmap at f:3: it is unknown which of them the scheduler uses")

	other := source("g", "volcano-system", otherConf)
	other.Data = []byte(strings.Replace(string(other.Data), ConfigMapName, "mine", 1))
	_, err = InCluster([]objects.Source{source("f", "volcano-system", smallConf), other})
	require.EqualError(t, err, "g:3: ConfigMap volcano-system/mine has another configuration than "+
		"ConfigMap volcano-system/volcano-scheduler-configmap at f:3: it is unknown which of them the scheduler uses")

	held, err := InCluster([]objects.Source{source("f", "a", smallConf), source("g", "b", otherConf), source("h", "volcano-system", smallConf)})
	require.NoError(t, err)
	require.Equal(t, "h", held.File)
	held, err = InCluster([]objects.Source{source("f", "a", smallConf), source("g", "b", smallConf)})
	require.NoError(t, err)
	require.Equal(t, "f", held.File)

	rest := source("g", "volcano-system", otherConf)
	rest.Background = true
	held, err = InCluster([]objects.Source{rest, source("f", "a", smallConf)})
	require.NoError(t, err)
	require.Equal(t, "f", held.File)
	held, err = InCluster([]objects.Source{{Name: "f", Data: []byte("kind: Queue")}, rest})
	require.NoError(t, err)
	require.Equal(t, "g", held.File)
}

func FuzzInCluster(f *testing.F) {
	f.Add(listed(schedulerPod, heldMap("a", configurationKey, smallConf)))
	f.Add(`[{"kind": "ConfigMap", "metadata": {"name": "volcano-scheduler-configmap"}, "data": {"volcano-scheduler.conf": ""}}] {"items": [`)
	f.Fuzz(func(t *testing.T, data string) {
		held, err := InCluster([]objects.Source{{Name: "f", Data: []byte(data)}})
		require.False(t, held != nil && err != nil)
	})
}
