package policy

import "github.com/apportion/apportion/engine/model"

// Vote is a plugin's, or a whole policy's, word on a question.
type Vote int8

// The votes.
const (
	Abstain Vote = iota
	Permit
	Reject
)

// Code says which rule a reason is about. The values are those of the contract's CauseCode.
type Code int32

// The codes, explained in the contract (cause.proto).
const (
	QueueNotOpen              Code = 1
	AboveRealCapability       Code = 2
	AboveDeserved             Code = 3
	NoDimensionWithinDeserved Code = 4
	HierarchyRefused          Code = 5
	QueueTakesNoPart          Code = 6
	AboveOvercommit           Code = 7
	BestEffortClaimant        Code = 8
	Overused                  Code = 9
	JobNotPending             Code = 10
	NoMinResources            Code = 11
	NoAction                  Code = 12
	AboveNamespaceQuota       Code = 13
	PluginNotModelled         Code = 14
	NotInCycle                Code = 15
	NotEnoughTasks            Code = 20
	NotEnoughTasksOfRole      Code = 21
	NotReady                  Code = 22
	RoleNotReady              Code = 23
	NotStarving               Code = 24
	NotPipelined              Code = 25
	TasksGated                Code = 26
	NoSharedDimension         Code = 40
	GuaranteeKept             Code = 41
	WithinDeserved            Code = 42
	BestEffortSubtree         Code = 43
	GangMinimum               Code = 44
	PriorityNotLower          Code = 45
	ShareNotHigher            Code = 46
	SystemCritical            Code = 47
	SystemNamespace           Code = 48
	CooldownActive            Code = 49
	HierarchyOrder            Code = 50
	NotRunning                Code = 51
	NotPreemptable            Code = 52
	QueueNotReclaimable       Code = 53
	SameQueue                 Code = 54
	OtherQueue                Code = 55
	BestEffortVictim          Code = 56
	NotInDecidingTier         Code = 57
	NotACandidate             Code = 58
	SameJob                   Code = 59
	DisruptionBudget          Code = 60
	Unlabelled                Code = 61
	ClaimantPreemptable       Code = 62
	OnRevocableNode           Code = 63
	JobDisruption             Code = 64
	NodeGroupMissing          Code = 70
	NodeGroupNotInAffinity    Code = 71
	NodeGroupAntiAffinity     Code = 72
	InsufficientResource      Code = 73
	NodeUnschedulable         Code = 74
	NodeNotInSet              Code = 75
	LargerThanAnyNode         Code = 76
	Fragmented                Code = 77
	NoNodeHasAll              Code = 78
	NoJointPlacement          Code = 79
	JointPlacementNotFound    Code = 80
	BeingReleased             Code = 81
	NothingOffered            Code = 82
	NodeTooSmall              Code = 83
	HostPortTaken             Code = 84
	PodAffinity               Code = 85
	PodAntiAffinity           Code = 86
	PodAntiAffinityOfOthers   Code = 87
	TopologySpread            Code = 88
	TopologyLabelMissing      Code = 89
	AboveNodeGroupLimit       Code = 90
	NodeGroupLimitsInvalid    Code = 91
	NodeReserved              Code = 92
	RevocableZoneClosed       Code = 93
	RevocableZoneForbidden    Code = 94
	Entitled                  Code = 100
	Borrowed                  Code = 101
	AboveLimit                Code = 102
	NotIdle                   Code = 103
	NeverFits                 Code = 104
	AboveTotal                Code = 105
	NotEntitled               Code = 106
	NoPlan                    Code = 107
	NotCalm                   Code = 108
	NotNeeded                 Code = 109
	Reserved                  Code = 111
	NotNominated              Code = 120
	NoFlavor                  Code = 121
	QuotaInUse                Code = 122
	WithinEntitlement         Code = 110
)

// Reason says by which rule something was refused or spared, and with which numbers.
type Reason struct {
	// Plugin is Volcano's name of the plugin, empty for a rule of the frame.
	Plugin string
	Code   Code
	// Queue is the queue whose numbers were compared, or model.None.
	Queue model.QueueID
	// Dimension of the numbers, or -1.
	Dimension int
	// Have, Need and Limit are the compared amounts; Code defines the comparison.
	Have, Need, Limit float64
	// Fault is the fault of the queue tree, if that is the reason; the values are those of the contract's HierarchyFault.
	Fault uint8
	// Detail are words of the snapshot that the rule rests on, such as the role of the job that is meant, or empty.
	Detail string
}

// Because returns a reason about a queue (or model.None) without a dimension.
func Because(plugin string, code Code, queue model.QueueID) Reason {
	return Reason{Plugin: plugin, Code: code, Queue: queue, Dimension: -1}
}

// Reasons collects reasons. A nil *Reasons collects nothing, at no cost.
type Reasons struct {
	List []Reason
	// Every asks for what exceeds the limits of every queue on the way up, not only of the first that refuses.
	Every bool
}

// All reports whether every queue that refuses must be named.
func (r *Reasons) All() bool { return r != nil && r.Every }

// Add records a reason.
func (r *Reasons) Add(reason Reason) {
	if r != nil {
		r.List = append(r.List, reason)
	}
}

// Len returns how many reasons there are.
func (r *Reasons) Len() int {
	if r == nil {
		return 0
	}
	return len(r.List)
}

// Drop removes the reasons from … to-1.
func (r *Reasons) Drop(from, to int) {
	if r != nil && from < to {
		r.List = append(r.List[:from], r.List[to:]...)
	}
}

// Check is one test that a plugin made, of a candidate or of an account.
type Check struct {
	// Task is the candidate tested, or model.None.
	Task model.TaskID
	// Tier is filled in by the engine.
	Tier   int
	Passed bool
	Reason Reason
}

// Checks collects tests. A nil *Checks collects nothing, at no cost.
type Checks struct {
	List []Check
}

// Add records a test.
func (c *Checks) Add(task model.TaskID, passed bool, reason Reason) {
	if c != nil {
		c.List = append(c.List, Check{Task: task, Passed: passed, Reason: reason})
	}
}

// Refuse records a reason in both, and returns false, the verdict that it is for.
func Refuse(why *Reasons, checks *Checks, reason Reason) bool {
	why.Add(reason)
	checks.Add(model.None, false, reason)
	return false
}

// Grounds collects the reasons of an answer about victims.
type Grounds struct {
	// Spared holds one failed check for each candidate that a plugin protects: the first that failed.
	Spared Checks
	// Checks holds every check made, passed ones too; nil unless wanted.
	Checks *Checks
}

// Extent is the amount that has been recorded.
type Extent struct{ spared, checked int }

// Extent returns how much has been recorded.
func (g *Grounds) Extent() Extent {
	switch {
	case g == nil:
		return Extent{}
	case g.Checks == nil:
		return Extent{len(g.Spared.List), 0}
	}
	return Extent{len(g.Spared.List), len(g.Checks.List)}
}

// SetTier fills in the tier of what was recorded since.
func (g *Grounds) SetTier(since Extent, tier int) {
	if g == nil {
		return
	}
	for i := range g.Spared.List[since.spared:] {
		g.Spared.List[since.spared+i].Tier = tier
	}
	if g.Checks == nil {
		return
	}
	for i := range g.Checks.List[since.checked:] {
		g.Checks.List[since.checked+i].Tier = tier
	}
}

// Protect records that reason speaks against taking a candidate.
func (g *Grounds) Protect(task model.TaskID, reason Reason) {
	if g == nil {
		return
	}
	g.Spared.List = append(g.Spared.List, Check{Task: task, Reason: reason})
	if g.Checks != nil {
		g.Checks.Add(task, false, reason)
	}
}

// Pass records a check that speaks for taking a candidate.
func (g *Grounds) Pass(task model.TaskID, reason Reason) {
	if g != nil {
		g.Checks.Add(task, true, reason)
	}
}

// Explains reports whether passed checks are wanted, so that their numbers need not be put together in vain.
func (g *Grounds) Explains() bool { return g != nil && g.Checks != nil }
