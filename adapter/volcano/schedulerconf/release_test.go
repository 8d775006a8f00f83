package schedulerconf

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/adapter/objects"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// deployed is the Deployment of Volcano's scheduler in a namespace, as YAML.
func deployed(namespace, image string) string {
	return fmt.Sprintf("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: volcano-scheduler, namespace: %s}\nspec:\n  template:\n    spec:\n"+
		"      containers:\n      - {name: proxy, image: \"proxy:v9.9.9\"}\n      - name: scheduler\n        image: %q\n", namespace, image)
}

func TestTheImageOfTheSchedulersDeploymentSaysTheRelease(t *testing.T) {
	const v115, v116 = apportionv1.VolcanoRelease_VOLCANO_RELEASE_UNSPECIFIED, apportionv1.VolcanoRelease_VOLCANO_RELEASE_1_16
	for image, c := range map[string]struct {
		tag  string
		want apportionv1.VolcanoRelease
	}{
		"docker.io/volcanosh/vc-scheduler:v1.15.1":               {"v1.15.1", v115},
		"docker.io/volcanosh/vc-scheduler:v1.16.0":               {"v1.16.0", v116},
		"mirror.example.com:5000/a/vc-scheduler:v1.16.0-alpha.1": {"v1.16.0-alpha.1", v116},
		"volcanosh/vc-scheduler:v1.17.2@sha256:0123456789abcdef": {"v1.17.2", v116},
		"vc-scheduler:1.16":                                       {"1.16", v116},
		"vc-scheduler:v2.0.0":                                     {"v2.0.0", v116},
		"vc-scheduler:v1.9.0":                                     {"v1.9.0", v115},
		"vc-scheduler:latest":                                     {"", v115},
		"vc-scheduler@sha256:0123456789abcdef":                    {"", v115},
		"vc-scheduler:v1":                                         {"", v115},
		"mirror.example.com:5000/vc-scheduler":                    {"", v115},
		"volcanosh/vc-controller-manager:v1.16.0":                 {"", v115},
		"volcanosh/vc-scheduler-of-mine:v1.16.0":                  {"", v115},
		"vc-scheduler:v1.99999999999999999999.0":                  {"", v115},
		"vc-scheduler:v1.16.0\n of ConfigMap a, of Volcano v1.15": {"", v115},
	} {
		t.Run(image, func(t *testing.T) {
			dump := listed(heldMap("volcano-system", configurationKey, smallConf), deployed("volcano-system", image))
			held, err := InCluster([]objects.Source{{Name: "f", Data: []byte(dump)}})
			require.NoError(t, err)
			require.Equal(t, c.tag, held.Source.Release)
			found, ok, err := Find(objects.Source{Name: "f", Data: []byte(dump)})
			require.NoError(t, err)
			require.True(t, ok, "a dump of the two objects is a configuration")
			require.Equal(t, c.tag, found.Release)
			policy, _, err := Read(found)
			require.NoError(t, err)
			require.Equal(t, c.want, policy.GetVolcanoRelease())
		})
	}
}

func TestTheDeploymentCountsThatIsInTheNamespaceOfTheConfigMap(t *testing.T) {
	const newer = "vc-scheduler:v1.16.0"
	inSystem := heldMap("volcano-system", configurationKey, smallConf)
	pod := "kind: Pod\nmetadata: {name: volcano-scheduler, namespace: volcano-system}\nspec: {containers: [{image: \"" + newer + "\"}]}\n"
	for name, c := range map[string]struct {
		dump []string
		want string
	}{
		"another namespace":     {[]string{listed(inSystem, deployed("tenant", newer))}, ""},
		"its own namespace":     {[]string{listed(heldMap("mine", configurationKey, smallConf), deployed("mine", newer))}, "v1.16.0"},
		"another file":          {[]string{inSystem, deployed("volcano-system", newer)}, "v1.16.0"},
		"a file before":         {[]string{deployed("tenant", newer), deployed("volcano-system", "vc-scheduler:v1.15.0"), inSystem}, "v1.15.0"},
		"a stream":              {[]string{inSystem + "---\n" + deployed("volcano-system", newer)}, "v1.16.0"},
		"a pod":                 {[]string{inSystem, pod + "# Deployment\n"}, ""},
		"JSON":                  {[]string{inSystem, `[{"kind": "Deployment", "metadata": {"name": "volcano-scheduler", "namespace": "volcano-system"}, "spec": {"template": {"spec": {"containers": [{"image": "vc-scheduler:v1.16.0"}]}}}}]`}, "v1.16.0"},
		"fields of other types": {[]string{inSystem, "kind: Deployment\nmetadata: {name: volcano-scheduler, namespace: volcano-system}\nspec: {template: [vc-scheduler]}\n"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var sources []objects.Source
			for _, data := range c.dump {
				sources = append(sources, objects.Source{Name: "f", Data: []byte(data)})
			}
			held, err := InCluster(sources)
			require.NoError(t, err)
			require.Equal(t, c.want, held.Source.Release)
		})
	}
}

func TestADumpOfTheDeploymentAloneHasNoConfiguration(t *testing.T) {
	_, _, err := Find(objects.Source{Name: "f", Data: []byte(deployed("volcano-system", "vc-scheduler:v1.16.0"))})
	require.EqualError(t, err, "f: no ConfigMap in it holds a volcano-scheduler.conf")
}
