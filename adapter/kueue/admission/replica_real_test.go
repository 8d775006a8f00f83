//go:build cluster

package admission_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/adapter/test/apiserver"
)

// replica is a process of the controller, as a pod of the Deployment.
type replica struct {
	process *exec.Cmd
	log     string
}

// replica starts one with the settings of the ConfigMap, and a token of the service account of the Deployment.
func (k *realKueue) replica(name string) *replica {
	k.t.Helper()
	var settings struct{ Data map[string]string }
	k.get("/api/v1/namespaces/apportion-system/configmaps/apportion-kueue-admission", &settings)
	var deployment struct {
		Spec struct {
			Template struct {
				Spec struct {
					ServiceAccountName string
					Containers         []struct{ Args []string }
				}
			}
		}
	}
	k.get("/apis/apps/v1/namespaces/apportion-system/deployments/apportion-kueue-admission", &deployment)
	pod := deployment.Spec.Template.Spec
	directory := filepath.Join(k.Directory, name)
	require.NoError(k.t, os.Mkdir(directory, 0o700))
	for file, text := range settings.Data {
		require.NoError(k.t, os.WriteFile(filepath.Join(directory, file), []byte(text), 0o600))
	}
	arguments := []string{"--kubeconfig=" + k.KubeconfigOf(k.t, k.tokenOf(pod.ServiceAccountName))}
	for _, argument := range pod.Containers[0].Args {
		arguments = append(arguments, strings.Replace(argument, "/etc/apportion", directory, 1))
	}
	require.Equal(k.t, "--config="+directory+"/admission.yaml", arguments[1])
	return &replica{
		process: apiserver.Begin(k.t, directory, k.program, arguments...), log: filepath.Join(directory, filepath.Base(k.program)+".log"),
	}
}

// tokenOf returns a token of a service account of the Deployment's namespace.
func (k *realKueue) tokenOf(account string) string {
	k.t.Helper()
	code, data, err := k.Try(k.t.Context(), http.MethodPost, "/api/v1/namespaces/apportion-system/serviceaccounts/"+account+"/token",
		map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": map[string]any{}})
	require.NoError(k.t, err)
	require.Equal(k.t, http.StatusCreated, code, "%s", data)
	var answer struct {
		Status struct {
			Token string `json:"token"`
		} `json:"status"`
	}
	require.NoError(k.t, json.Unmarshal(data, &answer))
	return answer.Status.Token
}

// get reads an object.
func (k *realKueue) get(path string, into any) {
	k.t.Helper()
	code, data, err := k.Try(k.t.Context(), http.MethodGet, path, nil)
	require.NoError(k.t, err)
	require.Equal(k.t, http.StatusOK, code, "%s", data)
	require.NoError(k.t, json.Unmarshal(data, into))
}

const leasePath = "/apis/coordination.k8s.io/v1/namespaces/apportion-system/leases/apportion-kueue-admission"

// acts reports whether a replica holds the Lease.
func (k *realKueue) acts(r *replica) bool {
	k.t.Helper()
	var lease struct {
		Spec struct{ HolderIdentity string }
	}
	k.get(leasePath, &lease)
	return strings.HasSuffix(lease.Spec.HolderIdentity, "-"+strconv.Itoa(r.process.Process.Pid))
}

// said returns the log of a replica.
func (k *realKueue) said(r *replica) string {
	k.t.Helper()
	data, err := os.ReadFile(r.log)
	require.NoError(k.t, err)
	return string(data)
}

// TestARealAPIServerTakesTheManifestsAndASecondReplicaGoesOn applies the Deployment, and runs replicas as a kubelet would run its pods.
func TestARealAPIServerTakesTheManifestsAndASecondReplicaGoesOn(t *testing.T) {
	k := startKueue(t)
	manifest, err := os.ReadFile(filepath.Join("manifests", "deployment.yaml"))
	require.NoError(t, err)
	k.Apply(t, manifest)
	const admitted = "decision=Admitted"

	acting, other := k.replica("one"), k.replica("two")
	k.job("a0", "a", 2)
	k.until(map[string]int{"a": 1}, "one of two replicas admits")
	if !k.acts(acting) {
		acting, other = other, acting
	}
	require.True(t, k.acts(acting))
	require.Equal(t, 1, strings.Count(k.said(acting), admitted))
	require.NotContains(t, k.said(other), admitted)

	t.Log("the replica that acts is killed, and cannot give the Lease back")
	apiserver.Kill(t, acting.process)
	k.job("a1", "a", 2)
	k.until(map[string]int{"a": 2}, "the other one acts when the Lease has ended")
	require.True(t, k.acts(other))
	require.Equal(t, 1, strings.Count(k.said(other), admitted), "a0 is not decided about again")

	t.Log("a replica that gets SIGTERM releases the Lease")
	third := k.replica("three")
	require.NoError(t, other.process.Process.Signal(os.Interrupt))
	require.NoError(t, other.process.Wait())
	k.job("a2", "a", 2)
	k.until(map[string]int{"a": 3}, "the third one acts")
	require.True(t, k.acts(third))

	t.Log("a replica that loses the Lease ends with an error, so that its pod begins anew")
	now := time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")
	k.Send(t, http.MethodPatch, leasePath, map[string]any{"spec": map[string]any{
		"holderIdentity": "someone", "leaseDurationSeconds": 3600, "acquireTime": now, "renewTime": now,
	}})
	ended, is := errors.AsType[*exec.ExitError](third.process.Wait())
	require.True(t, is)
	require.Equal(t, 1, ended.ExitCode())
	require.Contains(t, k.said(third), "the lease apportion-system/apportion-kueue-admission is lost")
	for _, r := range []*replica{acting, other, third} {
		require.NotContains(t, k.said(r), "forbidden", "the account may do what the controller does")
	}
}
