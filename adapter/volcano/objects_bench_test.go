package volcano

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/adapter/objects"
)

// BenchmarkObjects makes the snapshot of 100,000 pods in 10,000 jobs after one of them has changed, and reports the memory of the objects
// in bytes for each pod and as a part of the pods' JSON, and the time as a multiple of the time to encode the finished snapshot.
func BenchmarkObjects(b *testing.B) {
	const pods = 100_000
	before := heapBytes()
	o, pod := NewObjects(), objects.Kind{Name: "Pod", Version: "v1"}
	add := func(kind objects.Kind, text string) {
		object, err := o.Read(kind, objectOf(b, text))
		if err != nil {
			b.Fatal(err)
		}
		o.Put(object)
	}
	for i := range 100 {
		add(objects.Kind{Name: "Queue", Version: volcanoVersion}, fmt.Sprintf(yamlQueue, i))
		add(objects.Kind{Name: "Node", Version: "v1"}, fmt.Sprintf(yamlNode, i))
	}
	template := objectOf(b, fmt.Sprintf(yamlPod, 0, 0, 0))
	var changed map[string]any
	if err := json.Unmarshal(template, &changed); err != nil {
		b.Fatal(err)
	}
	metadata, _ := changed["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	spec, _ := changed["spec"].(map[string]any)
	received := 0
	for i := range pods {
		if i%10 == 0 {
			add(objects.Kind{Name: "PodGroup", Version: volcanoVersion}, fmt.Sprintf(yamlPodGroup, i/10, i/10%100))
		}
		metadata["name"], metadata["uid"] = fmt.Sprintf("job-worker-%d", i), fmt.Sprintf("00000000-0000-4000-8000-%012d", i)
		annotations["scheduling.k8s.io/group-name"], spec["nodeName"] = fmt.Sprintf("j%d", i/10), fmt.Sprintf("node-%d", i%100)
		data, err := json.Marshal(changed)
		if err != nil {
			b.Fatal(err)
		}
		received += len(data)
		object, err := o.Read(pod, data)
		if err != nil {
			b.Fatal(err)
		}
		o.Put(object)
	}
	held := heapBytes() - before
	b.ReportAllocs()
	round, making, encoding := 0, time.Duration(0), time.Duration(0)
	for b.Loop() {
		round++
		began := time.Now()
		metadata["labels"] = map[string]any{"volcano.sh/preemptable": fmt.Sprint(round)}
		data, err := json.Marshal(changed)
		if err != nil {
			b.Fatal(err)
		}
		object, err := o.Read(pod, data)
		if err != nil || !o.Put(object) {
			b.Fatal(err)
		}
		cluster, err := o.Cluster()
		if err != nil || len(cluster.Snapshot.GetJobs()) != pods/10 {
			b.Fatal(err)
		}
		made := time.Now()
		if _, err := proto.Marshal(cluster.Snapshot); err != nil {
			b.Fatal(err)
		}
		making, encoding = making+time.Since(began), encoding+time.Since(made)
	}
	b.ReportMetric(float64(held)/pods, "B/pod")
	b.ReportMetric(float64(held)/float64(received), "of-JSON")
	b.ReportMetric(float64(making)/float64(encoding), "x-encoding")
	runtime.KeepAlive(o)
}

func heapBytes() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// objectOf is the one item of a list in YAML, as JSON.
func objectOf(b *testing.B, text string) []byte {
	b.Helper()
	var list []map[string]any
	if err := yaml.Unmarshal([]byte(text), &list); err != nil {
		b.Fatal(err)
	}
	data, err := json.Marshal(list[0])
	if err != nil {
		b.Fatal(err)
	}
	return data
}
