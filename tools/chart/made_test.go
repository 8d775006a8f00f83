package chart

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// serverConfiguration is the file that the server is started with.
func serverConfiguration(t *testing.T, all objects, name string) map[string]any {
	t.Helper()
	var read map[string]any
	text := of[*corev1.Secret](t, all, "Secret/"+name).StringData["apportion.yaml"]
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), &read))
	return read
}

func names(values string) string {
	if strings.HasSuffix(values, "bare.yaml") {
		return "fairness"
	}
	return "fair-apportion"
}

func TestTheServerTakesTheConfigurationThatTheChartWrites(t *testing.T) {
	schema, err := jsonschema.NewCompiler().Compile("../../docs/configuration.schema.json")
	require.NoError(t, err)
	for _, file := range settings(t) {
		all := made(t, file)
		written := serverConfiguration(t, all, names(file))
		require.NoError(t, schema.Validate(written), file)
		// Files that it names are mounted, or in a ConfigMap that is.
		pod := of[*appsv1.Deployment](t, all, "Deployment/"+names(file)).Spec.Template.Spec
		policies, _ := written["policies"].(map[string]any)
		for _, source := range policies {
			path, found := strings.CutPrefix(source.(string), "/etc/apportion/policies/")
			if found {
				require.Contains(t, of[*corev1.ConfigMap](t, all, "ConfigMap/"+names(file)+"-policies").Data, path)
				require.NotNil(t, mount(pod, "/etc/apportion/policies"))
			}
		}
		if tls := written["tls"].(map[string]any); tls["certificate"] != nil {
			require.NotNil(t, mount(pod, "/etc/apportion/tls"))
		} else {
			require.Equal(t, true, tls["plaintext"])
		}
	}
}

func TestPoliciesAndSettingsAreMergedWithWhatTheChartWrites(t *testing.T) {
	all := made(t, "testdata/full.yaml")
	written := serverConfiguration(t, all, "fair-apportion")
	require.Equal(t, map[string]any{
		"production": "/etc/apportion/policies/production.conf", "next": "/etc/apportion/policies/next.yaml", "default": "preset:proportion",
	}, written["policies"])
	require.Equal(t, map[string]any{
		"certificate": "/etc/apportion/tls/tls.crt", "key": "/etc/apportion/tls/tls.key", "client_ca": "/etc/apportion/tls/ca.crt",
		"client_certificate": "optional", "min_version": "TLSv1.2",
	}, written["tls"])
	require.Contains(t, of[*corev1.ConfigMap](t, all, "ConfigMap/fair-apportion-policies").Data["production.conf"], "name: proportion")
}

func TestVolcanoAndBrowsersReachThePortsThatTheServerListensOn(t *testing.T) {
	all := made(t, "testdata/volcano.yaml")
	written := serverConfiguration(t, all, "fair-apportion")
	require.Equal(t, map[string]any{"listen": "0.0.0.0:7174", "origins": []any{"https://fair.example.org"}}, written["http"])
	require.Equal(t, map[string]any{
		"listen": "0.0.0.0:7173", "schedulers": map[string]any{"/volcano": "production"}, "shadow": []any{"/volcano"}, "tls": true,
		"users": "/etc/apportion/users/users", "wait": "1s",
	}, written["extender"])
	deployment := of[*appsv1.Deployment](t, all, "Deployment/fair-apportion")
	require.Equal(t, appsv1.RecreateDeploymentStrategyType, deployment.Spec.Strategy.Type)
	pod := deployment.Spec.Template.Spec
	require.NotNil(t, mount(pod, "/etc/apportion/users"))
	listening := map[string]int32{}
	for _, port := range pod.Containers[0].Ports {
		listening[port.Name] = port.ContainerPort
	}
	require.Equal(t, map[string]int32{"grpc": 7171, "admin": 7172, "extender": 7173, "http": 7174}, listening)
	reached := map[string]int32{}
	for _, port := range of[*corev1.Service](t, all, "Service/fair-apportion").Spec.Ports {
		reached[port.Name] = port.Port
	}
	require.Equal(t, map[string]int32{"grpc": 7171, "extender": 7173, "http": 80}, reached)
	policy := of[*networkingv1.NetworkPolicy](t, all, "NetworkPolicy/fair-apportion").Spec.Ingress
	require.Len(t, policy, 3)
	require.Equal(t, "extender", policy[2].Ports[0].Port.StrVal)
	require.Equal(t, map[string]string{"kubernetes.io/metadata.name": "volcano-system"}, policy[2].From[0].NamespaceSelector.MatchLabels)
}

func TestTheValuesDocumentedForVolcanoAreTaken(t *testing.T) {
	page, err := os.ReadFile("../../docs/volcano.md")
	require.NoError(t, err)
	_, behind, found := strings.Cut(string(page), "```\nreplicas: 1\n")
	require.True(t, found)
	text, _, _ := strings.Cut(behind, "```")
	var with map[string]any
	require.NoError(t, yaml.Unmarshal([]byte("replicas: 1\n"+text), &with))
	_, err = render(t, with)
	require.NoError(t, err)
}

func TestOneValueFollowsTheCluster(t *testing.T) {
	all := made(t, "testdata/follow.yaml")
	role := of[*rbacv1.ClusterRole](t, all, "ClusterRole/fair-apportion-sharing")
	read, got := map[string]bool{}, map[string][]string{}
	for _, rule := range role.Rules {
		if slices.Equal(rule.Verbs, []string{"get"}) {
			require.Len(t, rule.Resources, 1)
			got[rule.Resources[0]] = rule.ResourceNames
			continue
		}
		require.Equal(t, []string{"list", "watch"}, rule.Verbs)
		for _, resource := range rule.Resources {
			read[resource] = true
		}
	}
	require.Equal(t, map[string][]string{"configmaps": {"volcano-scheduler-configmap"}, "deployments": {"volcano-scheduler"}}, got,
		"the policy and the release of Volcano, and no other object")
	require.Equal(t, map[string]bool{
		"queues": true, "podgroups": true, "pods": true, "nodes": true, "priorityclasses": true,
		"namespaces": true, "persistentvolumes": true, "persistentvolumeclaims": true, "storageclasses": true, "csidrivers": true,
		"csinodes": true, "csistoragecapacities": true, "poddisruptionbudgets": true, "resourcequotas": true,
	}, read)
	binding := of[*rbacv1.ClusterRoleBinding](t, all, "ClusterRoleBinding/fair-apportion-sharing")
	pod := of[*appsv1.Deployment](t, all, "Deployment/fair-apportion").Spec.Template.Spec
	require.Equal(t, role.Name, binding.RoleRef.Name)
	require.Equal(t, []rbacv1.Subject{{Kind: "ServiceAccount", Name: pod.ServiceAccountName, Namespace: "sharing"}}, binding.Subjects)
	require.True(t, *pod.AutomountServiceAccountToken)
	require.Equal(t, "/readyz", pod.Containers[0].ReadinessProbe.HTTPGet.Path)
	written := serverConfiguration(t, all, "fair-apportion")
	require.Equal(t, map[string]any{"enabled": true}, written["follow"])
	require.Equal(t, map[string]any{"listen": "0.0.0.0:7174", "ui": true}, written["http"])
	require.Equal(t, corev1.ServiceAffinityClientIP, of[*corev1.Service](t, all, "Service/fair-apportion").Spec.SessionAffinity)
	require.NotEmpty(t, of[*networkingv1.NetworkPolicy](t, all, "NetworkPolicy/fair-apportion").Spec.Egress)
}

func TestALedgerIsOnAVolumeThatOutlivesPodAndRelease(t *testing.T) {
	all := made(t, "testdata/ledger-follow.yaml")
	claim := of[*corev1.PersistentVolumeClaim](t, all, "PersistentVolumeClaim/fair-apportion-ledger")
	require.Equal(t, "keep", claim.Annotations["helm.sh/resource-policy"])
	require.Equal(t, "5Gi", claim.Spec.Resources.Requests.Storage().String())
	deployment := of[*appsv1.Deployment](t, all, "Deployment/fair-apportion")
	require.Equal(t, appsv1.RecreateDeploymentStrategyType, deployment.Spec.Strategy.Type)
	pod := deployment.Spec.Template.Spec
	require.False(t, mount(pod, "/var/lib/apportion").ReadOnly)
	require.True(t, mount(pod, "/etc/apportion/budgets").ReadOnly)
	require.Equal(t, map[string]any{"file": "/var/lib/apportion/usage.ledger", "budgets": "/etc/apportion/budgets/budgets.yaml"},
		serverConfiguration(t, all, "fair-apportion")["ledger"])
	require.Contains(t, of[*corev1.ConfigMap](t, all, "ConfigMap/fair-apportion-budgets").Data["budgets.yaml"], "queue: vision")

	with := values(t, "testdata/ledger-follow.yaml")
	with["replicas"] = 2
	_, err := render(t, with)
	require.ErrorContains(t, err, "ledger.enabled: one replica alone can use the file of the ledger")
	with = values(t, "testdata/ledger-follow.yaml")
	with["follow"] = map[string]any{"enabled": false}
	_, err = render(t, with)
	require.ErrorContains(t, err, "ledger.enabled: the ledger is about the cluster that the server follows")
	with = values(t, "testdata/ledger-follow.yaml")
	with["ledger"].(map[string]any)["existingClaim"] = "mine"
	texts, err := render(t, with)
	require.NoError(t, err)
	require.NotContains(t, texts["apportion/templates/ledger.yaml"], "PersistentVolumeClaim")
	require.Contains(t, texts["apportion/templates/deployment.yaml"], "claimName: mine")
}

func TestLedgersOfSeveralReleasesAreMergedFromTheirCopies(t *testing.T) {
	with := values(t, "testdata/ledger-follow.yaml")
	with["ledger"].(map[string]any)["copies"] = map[string]any{"claim": "shared", "merge": []any{"fair-apportion", "spare-apportion"}}
	texts, err := render(t, with)
	require.NoError(t, err)
	require.Contains(t, texts["apportion/templates/config.yaml"], "/var/lib/apportion-copies/fair-apportion.ledger")
	require.Contains(t, texts["apportion/templates/deployment.yaml"], "claimName: shared")
	require.Contains(t, texts["apportion/templates/rbac.yaml"], "resourceNames: [kube-system]")
	job := texts["apportion/templates/ledgermerge.yaml"]
	for _, part := range []string{"- merge", "--ledger=/copies/merged.ledger", "- /copies/fair-apportion.ledger", "- /copies/spare-apportion.ledger", "claimName: shared"} {
		require.Contains(t, job, part)
	}
	with["ledger"].(map[string]any)["copies"].(map[string]any)["claim"] = ""
	_, err = render(t, with)
	require.ErrorContains(t, err, "ledger.copies.merge: name the claim on which the copies are")
}

func TestTheAuditRunsWithTheRightsOfItsAccountAndIsNoPodOfTheServer(t *testing.T) {
	all := made(t, "testdata/follow.yaml")
	template := of[*batchv1.CronJob](t, all, "CronJob/fair-apportion-audit").Spec.JobTemplate.Spec.Template
	pod := template.Spec
	require.Equal(t, []string{
		"audit", "--cluster", "--output=table", "--fail-on=warning", "--policy=/etc/apportion/policies/production.conf",
	}, pod.Containers[0].Args)
	require.NotNil(t, mount(pod, "/etc/apportion/policies"))
	require.Equal(t, "fair-apportion", pod.ServiceAccountName)
	require.True(t, *pod.AutomountServiceAccountToken)
	server := labels.SelectorFromSet(of[*appsv1.Deployment](t, all, "Deployment/fair-apportion").Spec.Selector.MatchLabels)
	require.False(t, server.Matches(labels.Set(template.Labels)))

	with := values(t, "testdata/follow.yaml")
	with["audit"].(map[string]any)["policy"] = "other.conf"
	_, err := render(t, with)
	require.ErrorContains(t, err, `audit.policy: "other.conf" is not a file of policies`)
}

// mount returns the mount of a volume of the pod, nil if there is none.
func mount(pod corev1.PodSpec, path string) *corev1.VolumeMount {
	for i := range pod.Containers[0].VolumeMounts {
		if m := &pod.Containers[0].VolumeMounts[i]; m.MountPath == path {
			return m
		}
	}
	return nil
}

func TestThePodMayDoNothingButServe(t *testing.T) {
	for _, file := range settings(t) {
		pod := of[*appsv1.Deployment](t, made(t, file), "Deployment/"+names(file)).Spec.Template.Spec
		restricted(t, pod)
		require.Equal(t, strings.HasSuffix(file, "follow.yaml"), *pod.AutomountServiceAccountToken)
		volumes := map[string]bool{}
		for _, volume := range pod.Volumes {
			volumes[volume.Name] = true
			require.Nil(t, volume.HostPath)
		}
		for _, m := range pod.Containers[0].VolumeMounts {
			require.True(t, volumes[m.Name], "%s: no volume %s", file, m.Name)
			delete(volumes, m.Name)
		}
		require.Empty(t, volumes, "volumes that are not mounted")
	}
}

// restricted is Kubernetes' Pod Security Standard of that name, and a read-only file system.
func restricted(t *testing.T, pod corev1.PodSpec) {
	t.Helper()
	require.True(t, *pod.SecurityContext.RunAsNonRoot)
	require.NotZero(t, *pod.SecurityContext.RunAsUser)
	require.Equal(t, corev1.SeccompProfileTypeRuntimeDefault, pod.SecurityContext.SeccompProfile.Type)
	require.False(t, pod.HostNetwork || pod.HostPID || pod.HostIPC)
	for _, container := range append(append([]corev1.Container{}, pod.InitContainers...), pod.Containers...) {
		require.False(t, *container.SecurityContext.AllowPrivilegeEscalation, container.Name)
		require.True(t, *container.SecurityContext.ReadOnlyRootFilesystem, container.Name)
		require.Equal(t, []corev1.Capability{"ALL"}, container.SecurityContext.Capabilities.Drop, container.Name)
		require.Empty(t, container.SecurityContext.Capabilities.Add, container.Name)
		require.NotEmpty(t, container.Resources.Requests, container.Name)
	}
}

func TestProbesAskTheServerInALanguageThatItSpeaks(t *testing.T) {
	plain := of[*appsv1.Deployment](t, made(t, "testdata/plain.yaml"), "Deployment/fair-apportion").Spec.Template.Spec.Containers[0]
	require.Equal(t, int32(7171), plain.ReadinessProbe.GRPC.Port)
	require.Nil(t, plain.ReadinessProbe.HTTPGet)
	// The kubelet's gRPC probe knows no TLS.
	encrypted := of[*appsv1.Deployment](t, made(t, "testdata/full.yaml"), "Deployment/fair-apportion").Spec.Template.Spec.Containers[0]
	require.Nil(t, encrypted.ReadinessProbe.GRPC)
	require.Equal(t, "/readyz", encrypted.ReadinessProbe.HTTPGet.Path)
	require.Equal(t, int32(10), plain.LivenessProbe.PeriodSeconds)
	require.Equal(t, int32(6), plain.LivenessProbe.FailureThreshold)
	require.Equal(t, int32(2), encrypted.LivenessProbe.PeriodSeconds, "as its values have it")
	require.Equal(t, int32(3), encrypted.LivenessProbe.FailureThreshold)
	require.Equal(t, int64(1), *encrypted.LivenessProbe.TerminationGracePeriodSeconds)
	for _, container := range []corev1.Container{plain, encrypted} {
		require.Equal(t, "/healthz", container.LivenessProbe.HTTPGet.Path)
		require.Equal(t, "admin", container.LivenessProbe.HTTPGet.Port.StrVal)
		require.Equal(t, int32(7172), container.Ports[1].ContainerPort)
	}
}

func TestTheKubeletWaitsAsLongAsTheServerDrains(t *testing.T) {
	for _, file := range settings(t) {
		all := made(t, file)
		drain := map[string]any{"delay": "5s", "time": "25s"}
		if set, ok := serverConfiguration(t, all, names(file))["drain"].(map[string]any); ok {
			drain = set
		}
		needed := time.Duration(0)
		for _, part := range drain {
			duration, err := time.ParseDuration(part.(string))
			require.NoError(t, err)
			needed += duration
		}
		grace := *of[*appsv1.Deployment](t, all, "Deployment/"+names(file)).Spec.Template.Spec.TerminationGracePeriodSeconds
		require.Greater(t, grace, int64(needed/time.Second), file)
	}
}

// mebibytes reads a size as configuration and environment write it.
func mebibytes(t *testing.T, text string) float64 {
	t.Helper()
	quantity, err := resource.ParseQuantity(strings.TrimSuffix(text, "B"))
	require.NoError(t, err)
	return quantity.AsApproximateFloat64() / (1 << 20)
}

func TestWhatMayFillMemoryFitsIntoThePod(t *testing.T) {
	for _, file := range settings(t) {
		all := made(t, file)
		written := serverConfiguration(t, all, names(file))
		limit := written["limit"].(map[string]any)
		overload := written["overload"].(map[string]any)
		sum := mebibytes(t, overload["memory"].(string)) + mebibytes(t, overload["receiving"].(string)) + mebibytes(t, overload["answers"].(string)) +
			mebibytes(t, limit["cache_bytes"].(string)) + mebibytes(t, limit["receiving_bytes"].(string)) +
			mebibytes(t, limit["session_bytes"].(string))
		container := of[*appsv1.Deployment](t, all, "Deployment/"+names(file)).Spec.Template.Spec.Containers[0]
		most := mebibytes(t, container.Resources.Limits.Memory().String())
		if container.Env != nil {
			soft := mebibytes(t, container.Env[0].Value)
			require.Less(t, soft, most, file)
			most = soft
		}
		require.Less(t, sum, most, file)
	}
}

func TestTheServerItselfFindsTheDefaultsInOrder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "apportion.yaml")
	text := of[*corev1.Secret](t, made(t, "testdata/plain.yaml"), "Secret/fair-apportion").StringData["apportion.yaml"]
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	command := exec.CommandContext(t.Context(), "go", "run", "./cmd/apportion", "config", "validate", "--config", file)
	command.Dir, command.Env = "../..", append(os.Environ(), "GOWORK=")
	said, err := command.CombinedOutput()
	require.NoError(t, err, "%s", said)
}

func TestEveryObjectMeansThePodsOfTheDeployment(t *testing.T) {
	for _, file := range settings(t) {
		all := made(t, file)
		deployment := of[*appsv1.Deployment](t, all, "Deployment/"+names(file))
		pod := labels.Set(deployment.Spec.Template.Labels)
		selectors := []map[string]string{deployment.Spec.Selector.MatchLabels}
		ports := map[string]bool{}
		for _, port := range deployment.Spec.Template.Spec.Containers[0].Ports {
			ports[port.Name] = true
		}
		for _, object := range all {
			switch object := object.(type) {
			case *corev1.Service:
				selectors = append(selectors, object.Spec.Selector)
				for _, port := range object.Spec.Ports {
					require.True(t, ports[port.TargetPort.StrVal])
				}
			case *policyv1.PodDisruptionBudget:
				selectors = append(selectors, object.Spec.Selector.MatchLabels)
			case *networkingv1.NetworkPolicy:
				selectors = append(selectors, object.Spec.PodSelector.MatchLabels)
				for _, rule := range object.Spec.Ingress {
					for _, port := range rule.Ports {
						require.True(t, ports[port.Port.StrVal])
					}
					require.NotEmpty(t, rule.From, "no peers would be all peers, those outside the cluster too")
				}
			case *podMonitor:
				selectors = append(selectors, object.Spec.Selector.MatchLabels)
				require.True(t, ports[object.Spec.PodMetricsEndpoints[0].Port])
			case *autoscalingv2.HorizontalPodAutoscaler:
				require.Equal(t, deployment.Name, object.Spec.ScaleTargetRef.Name)
				require.Nil(t, deployment.Spec.Replicas, "two would quarrel about the number")
			}
		}
		for _, selector := range selectors {
			require.NotEmpty(t, selector)
			require.True(t, labels.SelectorFromSet(selector).Matches(pod), "%s: %v", file, selector)
		}
	}
}

func TestWhatIsMade(t *testing.T) {
	kindsOf := func(file string) (list []string) {
		for id := range made(t, file) {
			list = append(list, id)
		}
		return list
	}
	require.ElementsMatch(t, []string{
		"Secret/fair-apportion", "Deployment/fair-apportion", "Service/fair-apportion", "Service/fair-apportion-headless",
		"ServiceAccount/fair-apportion", "PodDisruptionBudget/fair-apportion", "NetworkPolicy/fair-apportion",
	}, kindsOf("testdata/plain.yaml"))
	require.ElementsMatch(t, []string{
		"Secret/fair-apportion", "ConfigMap/fair-apportion-policies", "Deployment/fair-apportion", "Service/fair-apportion",
		"Service/fair-apportion-headless", "ServiceAccount/fair-share", "PodDisruptionBudget/fair-apportion",
		"NetworkPolicy/fair-apportion", "HorizontalPodAutoscaler/fair-apportion", "PodMonitor/fair-apportion",
	}, kindsOf("testdata/full.yaml"))
	require.ElementsMatch(t, []string{
		"Secret/fairness", "Deployment/fairness", "Service/fairness", "Service/fairness-headless",
	}, kindsOf("testdata/bare.yaml"))
}

func TestAChangeThatTheServerTakesOverRestartsNothing(t *testing.T) {
	checksum := func(change string) string {
		with := values(t, "testdata/full.yaml")
		var changed map[string]any
		require.NoError(t, json.Unmarshal([]byte(change), &changed))
		for name, value := range changed {
			for setting, to := range value.(map[string]any) {
				with[name].(map[string]any)[setting] = to
			}
		}
		rendered, err := render(t, with)
		require.NoError(t, err)
		all := objects{}
		decode(t, all, "deployment", rendered["apportion/templates/deployment.yaml"])
		return of[*appsv1.Deployment](t, all, "Deployment/fair-apportion").Spec.Template.Annotations["checksum/config"]
	}
	before := checksum(`{}`)
	require.Equal(t, before, checksum(`{"policies": {"production.conf": "tiers: []"}}`))
	require.Equal(t, before, checksum(`{"policies": {"other.conf": "tiers: []"}}`))
	require.Equal(t, before, checksum(`{"config": {"identities": [{"name": "one"}]}}`))
	require.NotEqual(t, before, checksum(`{"config": {"log": {"level": "debug"}}}`))
}

func TestTheSidecarIsAsRestrictedAsTheServer(t *testing.T) {
	data, err := os.ReadFile("../../deploy/sidecar/pod.yaml")
	require.NoError(t, err)
	all := objects{}
	decode(t, all, "pod.yaml", string(data))
	pod := of[*corev1.Pod](t, all, "Pod/scheduler").Spec
	restricted(t, pod)
	require.Equal(t, corev1.ContainerRestartPolicyAlways, *pod.InitContainers[0].RestartPolicy, "ready before the scheduler starts, ended after it")
	schema, err := jsonschema.NewCompiler().Compile("../../docs/configuration.schema.json")
	require.NoError(t, err)
	var written map[string]any
	require.NoError(t, yaml.UnmarshalStrict([]byte(of[*corev1.ConfigMap](t, all, "ConfigMap/apportion").Data["apportion.yaml"]), &written))
	require.NoError(t, schema.Validate(written))
}

func TestTheSidecarOfVolcanosSchedulerIsAPatchOfItsDeployment(t *testing.T) {
	data, err := os.ReadFile("../../deploy/sidecar/volcano.yaml")
	require.NoError(t, err)
	all := objects{}
	decode(t, all, "volcano.yaml", string(data))
	pod := of[*appsv1.Deployment](t, all, "Deployment/volcano-scheduler").Spec.Template.Spec
	require.Empty(t, pod.Containers, "the scheduler's own is left alone")
	require.Nil(t, pod.SecurityContext)
	require.Len(t, pod.InitContainers, 1)
	server := pod.InitContainers[0]
	require.Equal(t, corev1.ContainerRestartPolicyAlways, *server.RestartPolicy)
	require.True(t, *server.SecurityContext.RunAsNonRoot)
	require.True(t, *server.SecurityContext.ReadOnlyRootFilesystem)
	probe := server.LivenessProbe
	require.LessOrEqual(t, int64(probe.PeriodSeconds*probe.FailureThreshold)+*probe.TerminationGracePeriodSeconds, int64(10),
		"a stopped server holds the scheduler up")
	require.Contains(t, server.Args, "--extender-listen=127.0.0.1:7173", "nothing outside the pod reaches it, so that it needs no encryption")
	settings, err := os.ReadFile("../../docs/configuration.md")
	require.NoError(t, err)
	for _, argument := range server.Args[1:] {
		flag, _, _ := strings.Cut(argument, "=")
		require.Contains(t, string(settings), "`"+flag+"`", "no such flag")
	}
}
