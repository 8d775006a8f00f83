package chart

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const directory = "../../deploy/chart"

func load(t *testing.T) *chartv2.Chart {
	t.Helper()
	chart, err := loader.Load(directory)
	require.NoError(t, err)
	return chart
}

// values reads a file of values, which may be "" for none.
func values(t *testing.T, file string) map[string]any {
	t.Helper()
	read := map[string]any{}
	if file != "" {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, yaml.UnmarshalStrict(data, &read))
	}
	return read
}

// render gives the text of each template, as `helm template fair deploy/chart --namespace sharing -f …` does.
func render(t *testing.T, with map[string]any) (map[string]string, error) {
	t.Helper()
	chart := load(t)
	release := common.ReleaseOptions{Name: "fair", Namespace: "sharing", Revision: 1, IsInstall: true}
	complete, err := util.ToRenderValues(chart, with, release, nil)
	if err != nil {
		return nil, err
	}
	return engine.Engine{Strict: true}.RenderWithContext(t.Context(), chart, complete)
}

// objects are all that the chart makes with some values, by kind and name.
type objects map[string]any

// kinds are the kinds of Kubernetes objects that the chart may contain.
var kinds = map[string]func() any{
	"v1/Secret":                     func() any { return &corev1.Secret{} },
	"v1/ConfigMap":                  func() any { return &corev1.ConfigMap{} },
	"v1/Service":                    func() any { return &corev1.Service{} },
	"v1/ServiceAccount":             func() any { return &corev1.ServiceAccount{} },
	"v1/Pod":                        func() any { return &corev1.Pod{} },
	"v1/PersistentVolumeClaim":      func() any { return &corev1.PersistentVolumeClaim{} },
	"apps/v1/Deployment":            func() any { return &appsv1.Deployment{} },
	"batch/v1/CronJob":              func() any { return &batchv1.CronJob{} },
	"batch/v1/Job":                  func() any { return &batchv1.Job{} },
	"policy/v1/PodDisruptionBudget": func() any { return &policyv1.PodDisruptionBudget{} },
	"autoscaling/v2/HorizontalPodAutoscaler": func() any {
		return &autoscalingv2.HorizontalPodAutoscaler{}
	},
	"rbac.authorization.k8s.io/v1/ClusterRole":        func() any { return &rbacv1.ClusterRole{} },
	"rbac.authorization.k8s.io/v1/ClusterRoleBinding": func() any { return &rbacv1.ClusterRoleBinding{} },
	"networking.k8s.io/v1/NetworkPolicy":              func() any { return &networkingv1.NetworkPolicy{} },
	"monitoring.coreos.com/v1/PodMonitor":             func() any { return &podMonitor{} },
}

// podMonitor has the fields of the Prometheus operator's type that are used.
type podMonitor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Selector            metav1.LabelSelector `json:"selector"`
		PodMetricsEndpoints []struct {
			Port     string `json:"port"`
			Path     string `json:"path"`
			Interval string `json:"interval"`
		} `json:"podMetricsEndpoints"`
	} `json:"spec"`
}

// decode reads documents of YAML strictly: an unknown field, or one written twice, is a fault.
func decode(t *testing.T, into objects, file, text string) {
	t.Helper()
	for document := range strings.SplitSeq("\n"+text, "\n---") {
		var kind struct {
			metav1.TypeMeta   `json:",inline"`
			metav1.ObjectMeta `json:"metadata"`
		}
		require.NoError(t, yaml.Unmarshal([]byte(document), &kind), "%s:\n%s", file, document)
		if kind.Kind == "" {
			require.Empty(t, strings.TrimSpace(withoutComments(document)), file)
			continue
		}
		object, known := kinds[kind.APIVersion+"/"+kind.Kind]
		require.True(t, known, "%s: %s %s", file, kind.APIVersion, kind.Kind)
		decoded := object()
		require.NoError(t, yaml.UnmarshalStrict([]byte(document), decoded), "%s:\n%s", file, document)
		id := kind.Kind + "/" + kind.Name
		require.NotContains(t, into, id)
		into[id] = decoded
	}
}

func withoutComments(text string) string {
	var kept []string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(strings.TrimSpace(line), "#") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

// made renders the chart with a file of values, and decodes it.
func made(t *testing.T, file string) objects {
	t.Helper()
	rendered, err := render(t, values(t, file))
	require.NoError(t, err)
	all := objects{}
	for name, text := range rendered {
		if strings.HasSuffix(name, ".yaml") {
			decode(t, all, name, text)
		}
	}
	return all
}

// of is the object of a kind and name.
func of[T any](t *testing.T, all objects, id string) T {
	t.Helper()
	object, ok := all[id].(T)
	require.True(t, ok, "%s is not among %v", id, all)
	return object
}

// settings are the files of values that the tests render.
func settings(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

func TestHelmsLinterIsContent(t *testing.T) {
	for _, file := range settings(t) {
		for _, message := range lint.RunAll(directory, values(t, file), "sharing").Messages {
			require.Less(t, message.Severity, support.WarningSev, "%s: %v", file, message)
		}
	}
}

func TestTheChartSaysNothingOfTheServersVersionTwice(t *testing.T) {
	chart := load(t)
	require.Equal(t, chart.Metadata.Version, chart.Metadata.AppVersion)
	source, err := os.ReadFile("../../engine/doc.go")
	require.NoError(t, err)
	require.True(t, bytes.Contains(source, []byte(`const Version = "`+chart.Metadata.AppVersion+`"`)), "the engine's version is the release's")
}
