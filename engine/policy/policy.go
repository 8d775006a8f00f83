// Package policy is the frame of policies: what a plugin sees (View), what it may be asked (the interfaces below), and how it
// gives reasons. A plugin implements the interfaces of the decisions it takes part in, and nothing else.
//
// The interfaces are Volcano's extension points (pkg/scheduler/framework/session_plugins.go) with their names.
package policy

import (
	"cmp"
	"math"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/resource"
)

// ErrStopped is returned by Open when View.Stop asked to stop.
var ErrStopped = model.ErrStopped

// Plugin is a policy with its settings.
type Plugin interface {
	// Name is Volcano's name of the plugin.
	Name() string
	// Open computes what the plugin knows of a session. It returns ErrStopped, a *model.Error for a snapshot that the plugin cannot work
	// with, or a *WorkError where that costs more than View.Work.
	Open(v *View) (State, error)
}

// Excluder is a plugin that cannot decide beside some others.
type Excluder interface {
	// Excludes returns why the plugin of a name may not be in the same policy, "" if it may.
	Excludes(name string) string
}

// State is an opened plugin: the mutable part of its accounts lives in rows that it saves to View.Journal before each change. It implements
// the interfaces below for the decisions in which it takes part.
type State any

// QueueOrderer says which queue is served first.
type QueueOrderer interface {
	// CompareQueues is negative if l comes first, positive if r does, 0 if the plugin cannot tell.
	CompareQueues(l, r model.QueueID) int
	// PlaceQueues tells the order of many queues by numbers, which takes one call instead of one for each comparison. It sets places[i] to
	// the place of queues[i]: CompareQueues of two of these queues is the comparison of their places, which may be others beside other
	// queues. It returns false if there are no such places, or if comparing the queues takes less.
	PlaceQueues(queues []model.QueueID, places []QueuePlace) bool
}

// QueuePlace is a number of 128 bits. Of two queues the one with the smaller number is served first.
type QueuePlace struct{ High, Low uint64 }

// PlaceOf returns the place of a queue by its priority, the higher one first, and by its share, the smaller one first: no negative number
// and not NaN, so that its bits are ordered as numbers are. The lowest bit of the place is 0.
func PlaceOf(priority int32, share float64) QueuePlace {
	return QueuePlace{High: uint64(math.MaxInt32 - int64(priority)), Low: math.Float64bits(share) << 1}
}

// Compare is negative if p is served first.
func (p QueuePlace) Compare(other QueuePlace) int {
	if p.High != other.High {
		return cmp.Compare(p.High, other.High)
	}
	return cmp.Compare(p.Low, other.Low)
}

// VictimQueueOrderer says which queue loses tasks first to a claimant's queue.
type VictimQueueOrderer interface {
	// Nearness returns how near a queue is to the claimant's: the nearest loses tasks first.
	Nearness(q, claimant model.QueueID) uint32
}

// JobOrderer says which job is served first.
type JobOrderer interface {
	CompareJobs(l, r model.JobID) int
}

// TaskOrderer says which task of a job is served first.
type TaskOrderer interface {
	CompareTasks(l, r model.TaskID) int
}

// Steady is a JobOrderer, a TaskOrderer or a Reclaimer.
type Steady interface {
	// Steadily reports whether the order of the jobs and tasks of a queue, and which of its tasks may be reclaimed, stay the same until a
	// task of the queue moves.
	Steadily() bool
}

// Overuser says whether a queue uses all it may and is not served.
type Overuser interface {
	Overused(q model.QueueID, why *Reasons) bool
}

// Mode says against which rules a queue's account is asked.
type Mode uint8

// The modes.
const (
	// InSession: the queue's state counts.
	InSession Mode = iota
	// InSimulation: only the numbers count.
	InSimulation
)

// Request is the request of one task, or of several together.
type Request struct {
	Row resource.Row
	// BestEffort: requests nothing except `pods`.
	BestEffort bool
	// Tasks are those that ask.
	Tasks []model.TaskID
}

// Allocater says whether a queue may use that much more.
type Allocater interface {
	Allocatable(q model.QueueID, r Request, mode Mode, why *Reasons, checks *Checks) bool
}

// Preempter decides whether a queue may take the requests of tasks from other queues.
type Preempter interface {
	Preemptive(q model.QueueID, r Request, why *Reasons, checks *Checks) bool
}

// Release is a release of Volcano.
type Release uint8

// The releases whose decisions differ.
const (
	// V115 books a job when a plugin permits it.
	V115 Release = iota
	// V116 books a job when it is admitted, so that nothing stays booked for a job that another plugin rejects (volcano-sh/volcano 5339),
	// and bounds what a queue uses of a group of nodes (5461).
	V116
)

// Enqueuer votes on the admission of a job. Before V116, a permit books what proportion and capacity book.
type Enqueuer interface {
	Enqueueable(j model.JobID, why *Reasons) Vote
}

// EnqueuedHandler is called for each job that is admitted.
type EnqueuedHandler interface {
	Enqueued(j model.JobID)
}

// VictimFunc appends to dst those candidates that the claimant may evict and returns them with the plugin's vote; g records why the others
// are left alone. Abstain: the plugin has no opinion.
type VictimFunc func(claimant model.TaskID, candidates, dst []model.TaskID, g *Grounds) ([]model.TaskID, Vote)

// Reclaimer chooses victims among tasks of other queues; see VictimFunc.
type Reclaimer interface {
	Reclaimable(claimant model.TaskID, candidates, dst []model.TaskID, g *Grounds) ([]model.TaskID, Vote)
}

// ReclaimClasser is a Reclaimer to which some claimants are alike.
type ReclaimClasser interface {
	Reclaimer
	// ReclaimClass returns the class of a claimant. Claimants of one class and one queue are given the same ones of the same candidates. If
	// local is true, so are those of one class and different queues, and which tasks of a queue are chosen depends on the candidates of
	// that queue and their order alone.
	ReclaimClass(claimant model.TaskID) (class uint64, local bool)
}

// Preemptor chooses victims among tasks of the same queue; see VictimFunc.
type Preemptor interface {
	Preemptable(claimant model.TaskID, candidates, dst []model.TaskID, g *Grounds) ([]model.TaskID, Vote)
}

// GangEvictor votes on what is evicted for a whole job at once (Volcano's UnifiedEvictable, which gangpreempt and gangreclaim ask).
type GangEvictor interface {
	// GangEvictable appends to dst those candidates that may be evicted for a job, in their order, and returns them with the plugin's vote.
	// Each candidate is judged as if those chosen before it were gone.
	GangEvictable(claimant model.JobID, candidates, dst []model.TaskID) ([]model.TaskID, Vote)
}

// Shuffler names running tasks that are to be evicted for no claimant (Volcano's VictimTasks, which shuffle asks).
type Shuffler interface {
	// Shuffled appends to dst those of the running tasks that are to be evicted, in their order, and returns them.
	Shuffled(running, dst []model.TaskID) []model.TaskID
}

// Validator says whether a job can be scheduled at all.
type Validator interface {
	Valid(j model.JobID, why *Reasons) bool
}

// Readier says whether enough of a job runs.
type Readier interface {
	Ready(j model.JobID, why *Reasons) bool
}

// Pipeliner votes on whether enough of a job runs or waits for resources that are being released.
type Pipeliner interface {
	Pipelined(j model.JobID, why *Reasons) Vote
}

// Starver says whether a job lacks tasks that it needs.
type Starver interface {
	Starving(j model.JobID, why *Reasons) bool
}

// EventHandler follows the tasks that start and cease to hold resources.
type EventHandler interface {
	Allocate(t model.TaskID)
	Deallocate(t model.TaskID)
}

// StatusHandler follows every change of a task's status or node, whether or not the task holds resources for plugins. It is called after
// the view has changed.
type StatusHandler interface {
	// Moved takes the former status and node of the task.
	Moved(t model.TaskID, from model.Status, node model.NodeID)
}

// Share is a queue's account in a plugin that divides.
type Share struct {
	Weight                                       int32
	Guarantee, Deserved, Allocated, Request      resource.Row
	Inqueue, Elastic, Capability, RealCapability resource.Row
	// Admits bounds what a queue admits, whatever others use; absent if only the limit does that its queue states.
	Admits resource.Row
	// WithMemory is what the queue is given first of what becomes free; absent if past usage does not count.
	WithMemory resource.Row
	Share      float64
	// Dominant is the dimension of Share, or -1.
	Dominant int
	Overused bool
	// Ancestors, root first, and Children are those of a hierarchical plugin.
	Ancestors, Children []model.QueueID
}

// Sharer divides among queues.
type Sharer interface {
	// Share returns a queue's account, and whether it takes part. A row is absent if the plugin does not keep it. The rows are the plugin's
	// own and change with its state.
	Share(q model.QueueID) (Share, bool)
}

// Foreseeable is a Sharer that a model of the future can ask. Forecasts by chance run such a model forward many times.
type Foreseeable interface {
	Sharer
	// Course returns the policy as of what the session was opened with, for queues whose amounts a model keeps. It changes nothing of the
	// session. Courses may be used at the same time, each by one goroutine.
	Course(of *Amounts) Course
}

// Amounts are what a model knows of queues, with an amount for each dimension. The model keeps Used and Asked, the course fills Deserved.
type Amounts struct {
	Queues []model.QueueID
	// Used is what the jobs of a queue and of those below it use, Asked what its own jobs use and wait for, and Deserved what a queue may
	// use before all else.
	Used, Asked, Deserved [][]float64
}

// Course is how a policy divides among queues and orders them while a model goes forward in time. Queues are named by their places in
// Amounts.Queues.
type Course interface {
	// Begin begins a round of decisions; asked says that what queues ask for has changed since the last one. It returns the work done,
	// more than most if that was not enough to divide.
	Begin(asked bool, most int64) int64
	// Used says that what a queue and those above it use has changed.
	Used(q int)
	// Compare is negative if l is served first, positive if r is, 0 if the policy cannot tell. wants are the queues that have something
	// waiting which they deserve, or are above such a queue; it counts if queues may use LentExcess.
	Compare(l, r int, wants []bool) int
	// Excess says what queues may use beyond what they deserve.
	Excess() Excess
}

// Excess is what queues may use beyond what they deserve.
type Excess uint8

// The kinds of excess.
const (
	// AllExcess: all that their limits leave.
	AllExcess Excess = iota
	// NoExcess: nothing.
	NoExcess
	// LentExcess: what is free beside what others wait for and deserve.
	LentExcess
)

// Standing is a queue// Standing is a queue that has used more than its part, or more for its weight than siblings that want something.
type Standing struct {
	Queue model.QueueID
	// Dimension is -1 if usage is charged for all dimensions together.
	Dimension int
	// Used is the part of its siblings' usage, Part its part by weight.
	Used, Part float64
	// First are siblings that want something and have used less, in order of service.
	First []model.QueueID
	// Until is when usage is stated anew, in Unix nanoseconds; 0 if that cannot be expressed.
	Until int64
}

// Rememberer gives what becomes free by past usage.
type Rememberer interface {
	// Standing returns where a queue, or one above it, has used most for its part in some dimensions, so that others come first; false if
	// they do nowhere.
	Standing(q model.QueueID, dims resource.Mask) (Standing, bool)
}

// Reservation is the room that is kept for a job until it can start.
type Reservation struct {
	Job model.JobID
	// Tasks start on Nodes, which are nil if there are no nodes.
	Tasks []model.TaskID
	Nodes []model.NodeID
	// From is when it can start, Until when it is expected to end if it does, in Unix nanoseconds. Until is math.MaxInt64 if that is not
	// known.
	From, Until int64
}

// Reserver keeps room for jobs.
type Reserver interface {
	// ReservationOf returns the room that is kept for a job; false if there is none.
	ReservationOf(j model.JobID) (Reservation, bool)
}

// QueueReserver is a Sharer that keeps room for jobs of queues.
type QueueReserver interface {
	// ReservedFor returns the room that stands idle because it is kept for a job of a queue, at most what other queues wait for; absent if
	// none is kept. The row is valid until the next call.
	ReservedFor(q model.QueueID) resource.Row
}

// Tree is implemented by hierarchical sharers.
type Tree interface {
	// Accepted reports whether the queue tree passed; why is the reason if it is not.
	Accepted(why *Reasons) bool
}

// JobShare is a job's account in DRF.
type JobShare struct {
	Share     float64
	Dominant  int
	Allocated resource.Row
}

// JobSharer divides among jobs.
type JobSharer interface {
	JobShare(j model.JobID) (JobShare, bool)
}

// TreeNode is a node of the tree of hierarchical DRF.
type TreeNode struct {
	// Parent is a position in the list, -1 for the root.
	Parent             int
	Name               string
	Weight, Share      float64
	Saturated          bool
	Request, Allocated resource.Row
	// Job at a leaf, or model.None.
	Job      model.JobID
	Dominant int
}

// TreeSharer divides along a weighted tree of its own.
type TreeSharer interface {
	// Nodes lists the tree, each node before its children.
	Nodes() []TreeNode
}

// Warner names input that is decided as Volcano decides it but may not be meant so.
type Warner interface {
	Warnings(add func(Warning))
}

// WarningCode is the kind of a warning. The values are those of the contract's WarningCode.
type WarningCode int32

// The codes, explained in the contract (cause.proto).
const (
	GuaranteesExceedTotal     WarningCode = 1
	GuaranteeAboveCapability  WarningCode = 2
	ZeroCapabilityIsUnlimited WarningCode = 3
	AllWeightsZero            WarningCode = 4
	IdleGuarantee             WarningCode = 5
	ScalarGuaranteedAway      WarningCode = 6
	TreeRefused               WarningCode = 7
	ChildExceedsParent        WarningCode = 8
	PartialRootCapability     WarningCode = 9
	PluginUndecided           WarningCode = 10
	DimensionNotOffered       WarningCode = 11
	SettingIgnored            WarningCode = 13
	AntiAffinityAdmitsNothing WarningCode = 16
	NoAffinityFitsNothing     WarningCode = 19
	HierarchyWeightIgnored    WarningCode = 17
	WarningsTruncated         WarningCode = 18
	TasksOffNode              WarningCode = 20
	NodeBelowOne              WarningCode = 21
	MemoryIgnored             WarningCode = 22
	MemoryStale               WarningCode = 23
	MemorySwings              WarningCode = 24
	BudgetCutsGuarantee       WarningCode = 25
	BudgetWithoutEffect       WarningCode = 26
	ReservationsBlock         WarningCode = 27
)

// Warning is one of them.
type Warning struct {
	Code WarningCode
	// Path of the field within the snapshot, such as `queues[3].capability`.
	Path string
	// Text for people. {0} and {1} stand for the amounts, which are shown in people's units where the text is shown.
	Text string
	// Queue concerned, or model.None.
	Queue model.QueueID
	// Amounts of Dimension, in its units.
	Amounts   []float64
	Dimension int
	// Epochs that the time is ahead of, for MemoryStale.
	Epochs int64
}
