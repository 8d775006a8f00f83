package kubescheduler

import (
	"fmt"
	"maps"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Waiting is the number of waiting pods of a random cluster.
const Waiting = 20

// Names that the generator and the program that runs the scheduler share.
const (
	// Scheduler is the name of the scheduler of all waiting pods, the one that Volcano's pods name.
	Scheduler = "volcano"
	// PriorityClass is the class of all pods. Its pods do not preempt others.
	PriorityClass = "equal"

	groupAnnotation = "scheduling.k8s.io/group-name"
)

// Objects are the objects of a random cluster.
type Objects struct {
	Namespaces []*corev1.Namespace
	Nodes      []*corev1.Node
	Classes    []*storagev1.StorageClass
	Volumes    []*corev1.PersistentVolume
	Claims     []*corev1.PersistentVolumeClaim
	// Groups are the names of Volcano's PodGroups, by namespace.
	Groups map[string][]string
	// Placed are the pods with a node. Those with a time of deletion are being deleted.
	Placed  []*corev1.Pod
	Waiting []*corev1.Pod
}

// generator makes a random cluster.
type generator struct {
	*rand.Rand
	Objects

	// free is what the nodes have left.
	free []amounts
}

// amounts are milli-cores, GiB of memory, GPUs and pods.
type amounts struct{ cpu, memory, gpu, pods int }

// Generate returns the same cluster for the same seed.
func Generate(seed uint64) *Objects {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0))} //nolint:gosec // The same seed must give the same cluster.
	g.namespaces()
	for i := range 5 + g.IntN(8) {
		g.node(i)
	}
	g.classes()
	g.Groups = map[string][]string{}
	for i := range 12 + g.IntN(13) {
		g.placed(i)
	}
	for i := range Waiting {
		g.waiting(i)
	}
	return &g.Objects
}

// chance is true in so many of 100 cases.
func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

// one returns one of a list.
func one[T any](g *generator, list ...T) T { return list[g.IntN(len(list))] }

// some returns at least one of a list, in its order.
func some[T any](g *generator, list ...T) []T {
	for {
		var chosen []T
		for _, element := range list {
			if g.chance(40) {
				chosen = append(chosen, element)
			}
		}
		if len(chosen) > 0 {
			return chosen
		}
	}
}

// often repeats the first of a list, so that pods select each other more often.
func often(list []string) []string { return append([]string{list[0], list[0], list[0]}, list...) }

var (
	spaces = []string{"blue", "green", "red"}
	apps   = []string{"batch", "cache", "db", "web"}
	zones  = []string{"a", "b", "c"}
	disks  = []string{"hdd", "nvme", "ssd"}
)

const (
	appLabel     = "app"
	versionLabel = "version"
	releaseLabel = "release"
	teamLabel    = "team"
	diskLabel    = "disk"
	rankLabel    = "rank"
)

func (g *generator) namespaces() {
	for _, name := range spaces {
		labels := map[string]string{corev1.LabelMetadataName: name, teamLabel: one(g, "ml", "ops")}
		if g.chance(50) {
			labels["tier"] = one(g, "gold", "tin")
		}
		g.Namespaces = append(g.Namespaces, &corev1.Namespace{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		})
	}
}

// podLabels returns the labels of a pod.
func (g *generator) podLabels() map[string]string {
	labels := map[string]string{appLabel: one(g, often(apps)...)}
	if g.chance(60) {
		labels[versionLabel] = one(g, "v1", "v2")
	}
	if g.chance(60) {
		labels[releaseLabel] = one(g, "r1", "r2")
	}
	return labels
}

// pod returns a pod without constraints.
func (g *generator) pod(name string) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: one(g, often(spaces)...), Labels: g.podLabels()},
		Spec: corev1.PodSpec{
			PriorityClassName: PriorityClass, Containers: []corev1.Container{container("main")},
		},
	}
}

// container returns a container that asks for nothing.
func container(name string) corev1.Container { return corev1.Container{Name: name, Image: "image"} }

// group makes a PodGroup for a pod.
func (g *generator) group(p *corev1.Pod) {
	p.Spec.SchedulerName = Scheduler
	p.Annotations = map[string]string{groupAnnotation: p.Name}
	g.Groups[p.Namespace] = append(g.Groups[p.Namespace], p.Name)
}

// placed makes a pod on a node that has room for it.
func (g *generator) placed(i int) {
	p := g.pod(fmt.Sprintf("placed-%02d", i))
	node := g.IntN(len(g.Nodes))
	asked := amounts{cpu: one(g, 0, 100, 500, 1000, 2000), memory: one(g, 0, 1, 2, 4)}
	if g.chance(20) {
		asked.gpu = 1
	}
	free := &g.free[node]
	if free.pods == 0 || asked.cpu > free.cpu || asked.memory > free.memory || asked.gpu > free.gpu {
		return
	}
	*free = amounts{free.cpu - asked.cpu, free.memory - asked.memory, free.gpu - asked.gpu, free.pods - 1}
	p.Spec.NodeName = g.Nodes[node].Name
	request(&p.Spec.Containers[0], asked)
	if g.chance(25) {
		g.ports(p)
	}
	if g.chance(30) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: g.terms(p),
		}}
	}
	if g.chance(50) {
		g.group(p)
	}
	p.Status.Phase = corev1.PodRunning
	switch g.IntN(12) {
	case 0: // Bound, and not started yet.
		p.Status.Phase = corev1.PodPending
	case 1:
		p.Status.Phase = one(g, corev1.PodSucceeded, corev1.PodFailed)
	case 2:
		deleted := metav1.Unix(deletion, 0)
		p.DeletionTimestamp = &deleted
	}
	g.Placed = append(g.Placed, p)
}

// deletion is the time from which pods are deleted, in seconds.
const deletion = 1893456000

// waiting makes a waiting pod with constraints of one or two kinds, mostly.
func (g *generator) waiting(i int) {
	p := g.pod(fmt.Sprintf("waiting-%02d", i))
	g.group(p)
	g.requests(p)
	kinds := []struct {
		percent int
		set     func(*corev1.Pod)
	}{
		{12, g.selector},
		{15, g.nodeAffinity},
		{25, g.podAffinity},
		{25, g.podAntiAffinity},
		{45, g.spread},
		{15, g.ports},
		{20, g.volumes},
	}
	for _, k := range kinds {
		if g.chance(k.percent) {
			k.set(p)
		}
	}
	if g.chance(60) {
		g.tolerations(p)
	}
	g.Waiting = append(g.Waiting, p)
}

// affinity returns the affinity of a pod, which it makes if there is none.
func affinity(p *corev1.Pod) *corev1.Affinity {
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &corev1.Affinity{}
	}
	return p.Spec.Affinity
}

// with returns labels and one more.
func with(labels map[string]string, key, value string) map[string]string {
	all := maps.Clone(labels)
	if all == nil {
		all = map[string]string{}
	}
	all[key] = value
	return all
}
