// Package extendertest writes what Volcano's extender plugin sends: pushes of any size for benchmarks, and pushes of recorded manifests.
// The form is the one of Volcano v1.15.1, as recorded in adapter/extender/testdata: Go's field names, everything present, each pod four
// times while it waits and five times once it runs.
package extendertest

import (
	"fmt"
	"strconv"
)

// Shape says how large a push is. A job has ten pods; half the jobs run, ten of their pods on every second node; there is a node for ten
// pods and a queue for a hundred.
type Shape struct {
	Pods int
	// Lean pods hold what a scheduler reads, some 360 bytes; others hold what a cluster's pods hold, managedFields included, some 5.2 KB.
	Lean bool
}

const (
	podsOfJob   = 10
	podsOfNode  = 10
	podsOfQueue = 100
)

// Push returns the body of an onSessionOpen.
func Push(s Shape) []byte {
	p := pusher{shape: s, jobs: s.Pods / podsOfJob, nodes: max(s.Pods/podsOfNode, 2), queues: max(s.Pods/podsOfQueue, 1)}
	size := 28 << 10
	if s.Lean {
		size = 6 << 10
	}
	p.out = make([]byte, 0, size*s.Pods+1<<20)
	p.put(`{"Jobs":{`)
	for j := range p.jobs {
		p.comma(j)
		p.job(j)
	}
	p.put(`},"Nodes":{`)
	for n := range p.nodes {
		p.comma(n)
		p.put(`"`, nodeName(n), `":`)
		p.node(n)
	}
	p.put(`},"Queues":{`)
	for q := range p.queues {
		p.comma(q)
		p.put(`"`, queueName(q), `":`)
		p.queue(q)
	}
	p.put(`},"NamespaceInfo":{"default":{"Name":"default","QuotaStatus":{}}},"RevocableNodes":{},"NodeList":null}`)
	return p.out
}

// Predicate returns the body of a predicate about a pending pod and a busy node of the push.
func Predicate(s Shape) []byte {
	p := pusher{shape: s}
	p.put(`{"task":`)
	p.put(p.task(PendingPod(s)), `,"node":`)
	p.node(0)
	p.put(`}`)
	return p.out
}

// Prioritize returns the body of a prioritize of a pending pod over so many nodes of the push.
func Prioritize(s Shape, nodes int) []byte {
	p := pusher{shape: s}
	p.put(`{"task":`)
	p.put(p.task(PendingPod(s)), `,"nodes":[`)
	for n := range nodes {
		p.comma(n)
		p.node(n)
	}
	p.put(`]}`)
	return p.out
}

// Job returns the body of a jobEnqueueable or jobReady about the first pending job of the push.
func Job(s Shape) []byte {
	p := pusher{shape: s}
	p.put(`{"job":`)
	p.jobInfo(PendingPod(s) / podsOfJob)
	p.put(`}`)
	return p.out
}

// Victims returns the body of a reclaimable of a pending pod with so many running candidates of the push.
func Victims(s Shape, candidates int) []byte {
	p := pusher{shape: s}
	p.put(`{"evictor":`, p.task(PendingPod(s)), `,"evictees":[`)
	for i := range candidates {
		p.comma(i)
		p.put(p.task(i))
	}
	p.put(`]}`)
	return p.out
}

// Event returns the body of an allocate of a pending pod on the first node, or, with status 1, of the deallocate that undoes it.
func Event(s Shape, status int) []byte {
	p := pusher{shape: s}
	p.put(`{"task":`, p.taskAs(PendingPod(s), status, nodeName(0)), `}`)
	return p.out
}

// PendingPod is the number of the first pod that waits.
func PendingPod(s Shape) int { return s.Pods / podsOfJob / 2 * podsOfJob }

type pusher struct {
	shape               Shape
	jobs, nodes, queues int
	out                 []byte
}

func (p *pusher) put(parts ...string) {
	for _, part := range parts {
		p.out = append(p.out, part...)
	}
}

func (p *pusher) comma(i int) {
	if i > 0 {
		p.put(`,`)
	}
}

func queueName(q int) string { return fmt.Sprintf("queue-%04d", q) }
func nodeName(n int) string  { return fmt.Sprintf("node-%05d.cluster.example.internal", n) }
func jobName(j int) string   { return fmt.Sprintf("training-%05d", j) }
func podName(i int) string {
	return jobName(i/podsOfJob) + "-worker-" + strconv.Itoa(i%podsOfJob)
}
func podUID(i int) string { return fmt.Sprintf("7b0c1f5e-2d7a-4c35-9d6e-%012d", i) }

// placed returns the node of a pod: the pods of a running job share one of every two nodes.
func (p *pusher) placed(i int) (int, bool) {
	j := i / podsOfJob
	return 2 * j, i < PendingPod(p.shape)
}

func (p *pusher) task(i int) string {
	status, node := 1, ""
	if n, runs := p.placed(i); runs {
		status, node = 32, nodeName(n)
	}
	return p.taskAs(i, status, node)
}

const resreq = `{"MilliCPU":2000,"Memory":8589934592,"ScalarResources":{"nvidia.com/gpu":1000,"pods":1},"MaxTaskNum":0}`

func (p *pusher) taskAs(i, status int, node string) string {
	return `{"UID":"` + podUID(i) + `","Job":"default/` + jobName(i/podsOfJob) + `","Name":"` + podName(i) + `",` +
		`"Namespace":"default","TaskRole":"worker",` +
		`"Resreq":` + resreq + `,"InitResreq":` + resreq + `,"DRAResreq":null,"ResourceClaimKeys":null,"ResourceClaimDRAResreq":null,` +
		`"NodeName":"` + node + `","EvictionOccurred":false,"JobAllocatedHyperNode":"","Status":` + strconv.Itoa(status) +
		`,"LastTransaction":null,"Priority":100,"VolumeReady":false,"Preemptable":true,"BestEffort":false,` +
		`"HasRestartableInitContainer":false,` +
		`"SchGated":false,"RevocableZone":"","NumaInfo":{"Policy":"","ResMap":{}},"Pod":` + p.pod(i, node) + `,` +
		`"CustomBindErrHandlerSucceeded":false}`
}

func (p *pusher) tasks(j int) {
	for k := range podsOfJob {
		p.comma(k)
		i := j*podsOfJob + k
		p.put(`"`, podUID(i), `":`, p.task(i))
	}
}

func (p *pusher) job(j int) {
	p.put(`"default/`, jobName(j), `":`)
	p.jobInfo(j)
}

func (p *pusher) jobInfo(j int) {
	id, status, phase := "default/"+jobName(j), "1", "Inqueue"
	if _, runs := p.placed(j * podsOfJob); runs {
		status, phase = "32", "Running"
	}
	p.put(`{"UID":"`, id, `","PgUID":"`, podUID(j), `","Name":"`, jobName(j), `","Namespace":"default",`+
		`"Queue":"`, queueName(j%max(p.queues, 1)),
		`","Priority":100,"MinAvailable":10,"WaitingTime":null,"JobFitErrors":"","NodesFitErrors":{},`+
			`"AllocatedHyperNode":"","NetworkTopology":null,`,
		`"SubJobs":{"`, id, `":{"GID":"`, id, `","UID":"`, id, `","Job":"`, id, `","MinAvailable":10,"Priority":100,`+
			`"MatchIndex":0,"Tasks":{`)
	p.tasks(j)
	p.put(`},"TaskStatusIndex":{"`, status, `":{`)
	p.tasks(j)
	p.put(`}},"AllocatedHyperNode":"","NominatedHyperNode":"","NetworkTopology":null}},"TaskToSubJob":{`)
	for k := range podsOfJob {
		p.comma(k)
		p.put(`"`, podUID(j*podsOfJob+k), `":"`, id, `"`)
	}
	p.put(`},"MinSubJobs":{},"TaskStatusIndex":{"`, status, `":{`)
	p.tasks(j)
	p.put(`}},"Tasks":{`)
	p.tasks(j)
	p.put(`},"TaskMinAvailable":{},"TaskMinAvailableTotal":0,"Allocated":`, resreq, `,"TotalRequest":`, resreq,
		`,"CreationTimestamp":"2026-01-02T03:05:00Z","PodGroup":{"metadata":{"name":"`, jobName(j), `",`+
			`"namespace":"default","uid":"`, podUID(j),
		`","creationTimestamp":"2026-01-02T03:05:00Z"},"spec":{"minMember":10,"queue":"`, queueName(j%max(p.queues, 1)),
		`","minResources":{"cpu":"20","memory":"80Gi","nvidia.com/gpu":"10"}},"status":{"phase":"`, phase, `"},"Version":"v1beta1"},`,
		`"ScheduleStartTimestamp":null,"Preemptable":false,"RevocableZone":"","Budget":{"MinAvailable":"","MaxUnavailable":""}}`)
}

const (
	nodeAllocatable = `{"MilliCPU":64000,"Memory":274877906944,"ScalarResources":{"nvidia.com/gpu":8000,"pods":110},"MaxTaskNum":110}`
	nothing         = `{"MilliCPU":0,"Memory":0,"ScalarResources":null,"MaxTaskNum":0}`
)

func (p *pusher) node(n int) {
	p.put(`{"Name":"`, nodeName(n), `","Node":{"kind":"Node","apiVersion":"v1","metadata":{"name":"`, nodeName(n), `","uid":"`, podUID(n),
		`","creationTimestamp":"2026-01-02T03:04:00Z","labels":{"kubernetes.io/hostname":"`, nodeName(n), `",`+
			`"volcano.sh/nodegroup-name":"group-`,
		strconv.Itoa(n%4), `"}},"spec":{},"status":{"allocatable":{"cpu":"64","memory":"256Gi","nvidia.com/gpu":"8","pods":"110"}}},`,
		`"State":{"Phase":1,"Reason":""},"Releasing":`, nothing, `,"Pipelined":`, nothing, `,"Idle":`, nodeAllocatable, `,`+
			`"Used":`, nothing,
		`,"Allocatable":`, nodeAllocatable, `,"Capacity":`, nodeAllocatable,
		`,"ResourceUsage":{"MetricsTime":"0001-01-01T00:00:00Z","CPUUsageAvg":{},"MEMUsageAvg":{}},"Tasks":{`)
	if first := n / 2 * podsOfJob; n%2 == 0 && first < PendingPod(p.shape) {
		for k := range podsOfNode {
			p.comma(k)
			p.put(`"default/`, podName(first+k), `":`, p.task(first+k))
		}
	}
	p.put(`},"NumaInfo":null,"NumaChgFlag":0,"NumaSchedulerInfo":null,"RevocableZone":"","Others":{},"OversubscriptionNode":false,`,
		`"OfflineJobEvicting":false,"OversubscriptionResource":`, nothing, `,"ImageStates":{},"Generation":0,"BindGeneration":0}`)
}

func (p *pusher) queue(q int) {
	name := queueName(q)
	p.put(`{"UID":"`, name, `","Name":"`, name, `","Weight":`, strconv.Itoa(1+q%5), `,"Weights":"","Hierarchy":"",`+
		`"Queue":{"metadata":{"name":"`, name,
		`","uid":"`, podUID(q), `","creationTimestamp":"2026-01-02T03:06:00Z"},"spec":{"weight":`, strconv.Itoa(1+q%5),
		`,"guarantee":{},"reclaimable":true},"status":{"state":"Open","reservation":{}}}}`)
}
