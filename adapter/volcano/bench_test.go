package volcano

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/apportion/apportion/adapter/objects"
)

// BenchmarkReadManifests reads 10,000 running pods of 1,000 jobs, with the parts that are not read here as large as in a real cluster.
func BenchmarkReadManifests(b *testing.B) {
	const pods = 10_000
	for _, c := range []struct {
		name string
		data []byte
	}{{"json", jsonDump(b, pods)}, {"yaml", yamlDump(pods)}} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.data)))
			b.ReportAllocs()
			for b.Loop() {
				cluster, err := ReadManifests([]objects.Source{{Name: "dump", Data: c.data}})
				if err != nil || len(cluster.Snapshot.Jobs) != pods/10 {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/pods, "ns/pod")
		})
	}
}

// yamlDump is a list as kubectl prints it.
func yamlDump(pods int) []byte {
	var out bytes.Buffer
	out.WriteString("apiVersion: v1\nitems:\n")
	for i := range 100 {
		fmt.Fprintf(&out, yamlQueue, i)
		fmt.Fprintf(&out, yamlNode, i)
	}
	for i := range pods {
		if i%10 == 0 {
			fmt.Fprintf(&out, yamlPodGroup, i/10, i/10%100)
		}
		fmt.Fprintf(&out, yamlPod, i/10, i, i%100)
	}
	out.WriteString("kind: List\nmetadata:\n  resourceVersion: \"\"\n")
	return out.Bytes()
}

// jsonDump is the same list as JSON, indented as kubectl does it.
func jsonDump(b *testing.B, pods int) []byte {
	b.Helper()
	var plain any
	if err := yaml.Unmarshal(yamlDump(pods), &plain); err != nil {
		b.Fatal(err)
	}
	data, err := json.MarshalIndent(plain, "", "    ")
	if err != nil {
		b.Fatal(err)
	}
	return data
}

const (
	yamlQueue = `- apiVersion: scheduling.volcano.sh/v1beta1
  kind: Queue
  metadata:
    name: q%d
  spec:
    capability:
      cpu: "100"
      memory: 1Ti
    weight: 1
  status:
    state: Open
`
	yamlNode = `- apiVersion: v1
  kind: Node
  metadata:
    name: n%d
  status:
    allocatable:
      cpu: "64"
      memory: 256Gi
      nvidia.com/gpu: "8"
      pods: "110"
`
	yamlPodGroup = `- apiVersion: scheduling.volcano.sh/v1beta1
  kind: PodGroup
  metadata:
    name: j%d
    namespace: ns
  spec:
    minMember: 1
    minResources:
      cpu: "1"
    queue: q%d
  status:
    phase: Running
`
	yamlPod = `- apiVersion: v1
  kind: Pod
  metadata:
    annotations:
      scheduling.k8s.io/group-name: j%d
      volcano.sh/job-name: job
      volcano.sh/task-spec: worker
    creationTimestamp: "2026-01-02T03:04:05Z"
    name: job-worker-%d
    namespace: ns
    ownerReferences:
    - apiVersion: batch.volcano.sh/v1alpha1
      kind: Job
      name: job
    resourceVersion: "123456"
  spec:
    containers:
    - command:
      - sh
      - -c
      - |
        echo: hello
        sleep 1000
      env:
      - name: A
        value: a
      - name: B
        value: b
      image: registry.example.com/team/image:tag
      name: main
      resources:
        limits:
          cpu: "1"
          memory: 1Gi
        requests:
          cpu: "1"
          memory: 1Gi
          nvidia.com/gpu: "1"
      volumeMounts:
      - mountPath: /var/run/secrets/kubernetes.io/serviceaccount
        name: kube-api-access
        readOnly: true
    nodeName: n%d
    priority: 0
    schedulerName: volcano
    tolerations:
    - effect: NoExecute
      key: node.kubernetes.io/not-ready
      operator: Exists
      tolerationSeconds: 300
    volumes:
    - name: kube-api-access
      projected:
        defaultMode: 420
        sources:
        - serviceAccountToken:
            expirationSeconds: 3607
            path: token
  status:
    conditions:
    - lastTransitionTime: "2026-01-02T03:04:05Z"
      status: "True"
      type: PodScheduled
    containerStatuses:
    - containerID: containerd://abc
      name: main
      ready: true
      state:
        running:
          startedAt: "2026-01-02T03:04:05Z"
    phase: Running
`
)
