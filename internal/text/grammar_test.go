package text_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/text"
)

// ofSeveral is a part of several things, as in `1 of 3 nodes`; the verb agrees with the part.
var ofSeveral = regexp.MustCompile(`\b([0-9]+) of (1 (node |running )?(shape|role|queue|job|node|task)|[0-9]+ [a-z ]*?(shapes|roles|queues|jobs|nodes|tasks))\b`)

// ungrammatical are a number with a noun or a verb of the wrong form.
var ungrammatical = regexp.MustCompile(
	`\b1 ((more|other|waiting|running|valid|node) )?(tasks|jobs|nodes|queues|pods|levels|roles|shapes|changes|objects)\b` +
		`|\b[Aa]ll 1 |\b[Tt]he 1 (task|job|node|queue)|\b1 ([a-z]+ )?(task|job|node|queue|pod|change|of them) (are|have|were|wait|take)\b` +
		`|\b[02-9] ((more|other|waiting|running|node) )?(task|job|node|queue|pod|level|role|shape|change)([,.;:)]|$| [a-z]*[^s ] )` +
		`|\b[02-9] (of them|tasks|jobs|nodes|queues|pods) (is|has|was|waits|takes)\b|\bof 1 [a-z]{2,}s\b|\b1 [a-z./]+ are being|\bthe 1 that are`)

// wrongIn returns what of a sentence is ungrammatical, empty if nothing is.
func wrongIn(sentence string) string {
	return ungrammatical.FindString(ofSeveral.ReplaceAllString(sentence, "$1 of them"))
}

// counted calls a function with every sentence that holds counts, each of them 0, 1 and 2.
func counted(say func(name, sentence string)) {
	for n := range 27 {
		a, b, c := n%3, n/3%3, n/9
		x, y, z := uint32(a), uint32(b), uint32(c)
		for code, name := range apportionv1.CauseCode_name {
			reason := &apportionv1.Cause{
				Code: apportionv1.CauseCode(code), Have: float64(a), Need: float64(b), Limit: float64(c), Queue: new(uint32(1)),
			}
			say(name, text.Reason(names, reason))
			reason.Dimensions, reason.Have, reason.Need, reason.Limit = []uint32{0}, 1000*reason.Have, 1000*reason.Need, 1000*reason.Limit
			say(name+" of a resource", text.Reason(names, reason))
			group := &apportionv1.PendingGroup{
				Jobs: make([]uint32, a), Verdict: apportionv1.PendingVerdict_PENDING_VERDICT_BLOCKED,
				Check: apportionv1.CheckKind_CHECK_KIND_NODES, Cause: reason,
			}
			group.Text = text.Group(names, group, nil)
			other := &apportionv1.PendingGroup{
				Jobs: make([]uint32, b), Verdict: group.GetVerdict(), Check: group.GetCheck(),
				Cause: &apportionv1.Cause{Code: reason.GetCode(), Queue: new(uint32(0)), Dimensions: []uint32{1}},
			}
			kind := &apportionv1.PendingKind{
				Verdict: group.GetVerdict(), Check: group.GetCheck(), Code: reason.GetCode(), JobCount: x + y,
				Queues: make([]*apportionv1.PendingQueue, c),
			}
			kind.Text = text.Kind(names, kind, []*apportionv1.PendingGroup{group, other})
			pending := &apportionv1.ExplainAnswer{
				NodeCount: y, SchedulableNodeCount: z, Kinds: []*apportionv1.PendingKind{kind}, WaitingCount: x + y + z,
			}
			for cause := range apportionv1.LeftOutCause_name {
				for range b {
					pending.LeftOuts = append(pending.LeftOuts,
						&apportionv1.LeftOutExplanation{LeftOut: &apportionv1.LeftOut{Cause: apportionv1.LeftOutCause(cause), Scheduler: "s"}})
				}
			}
			say("pending, "+name, text.Pending(pending))
		}
		var reasons []*apportionv1.Cause
		for i, code := range []apportionv1.CauseCode{
			apportionv1.CauseCode_CAUSE_CODE_NO_JOINT_PLACEMENT, apportionv1.CauseCode_CAUSE_CODE_NOT_PREEMPTABLE,
		} {
			reasons = append(reasons, &apportionv1.Cause{Code: code, Have: float64(a), Limit: float64(b), Count: []uint32{x, y}[i]})
		}
		for check := range apportionv1.CheckKind_name {
			for outcome := range apportionv1.CheckOutcome_name {
				finding := &apportionv1.Finding{
					Check: apportionv1.CheckKind(check), Outcome: apportionv1.CheckOutcome(outcome), Causes: reasons,
					FirstJobCount: y, FirstJobs: []uint32{0, 1}[:min(y, 1)],
					Evictable: &apportionv1.Evictable{Count: x, Returning: min(x, y), Queues: []uint32{1}, Planned: z == 1, Enough: z == 0, Least: b == 0},
				}
				job := &apportionv1.Explanation{
					WaitingTasks: x, NeededTasks: y, ReadyTasks: z, MinAvailable: z, GatedTasks: z, Findings: []*apportionv1.Finding{finding},
				}
				say(finding.GetCheck().String(), text.Finding(names, job, finding))
				finding.Task, finding.Evictable = new(uint32(0)), &apportionv1.Evictable{}
				say(finding.GetCheck().String()+" of a task", text.Finding(names, job, finding))
			}
		}
		for bound := range apportionv1.UntriedBound_name {
			for cause := range apportionv1.UntriedCause_name {
				u := &apportionv1.UntriedRemedy{
					Means: 1, Kind: 1, Cause: apportionv1.UntriedCause(cause), Bound: apportionv1.UntriedBound(bound), Tried: x + 1, Of: y,
				}
				say("untried", text.Untried(u))
			}
		}
		plans(a, b, c, func(sentence string) { say("plan", sentence) })
		found := &apportionv1.RemediesAnswer{Outcome: apportionv1.RemedyOutcome_REMEDY_OUTCOME_FOUND, Remedies: make([]*apportionv1.Remedy, a)}
		say("remedies", text.Remedies(names, found))
		for means := range apportionv1.RemedyMeans_name {
			say("remedy", text.Remedy(names, 0, &apportionv1.Remedy{
				Means: apportionv1.RemedyMeans(means), Victims: make([]uint32, a), EndedTasks: y, LosingQueues: z + 1,
				Losses: []*apportionv1.QueueLoss{{}},
				Edits: []*apportionv1.Edit{{
					Kind: apportionv1.EditKind_EDIT_KIND_NODES_LIKE, Amount: new(float64(a)), Step: new(1.0),
					Object: &apportionv1.Edit_Node{Node: &apportionv1.Ref{Index: new(uint32(0))}},
				}},
			}))
		}
	}
}

// plans writes the texts of plans and of refused plans.
func plans(a, b, c int, say func(string)) {
	made := &apportionv1.PlanAnswer{Outcome: apportionv1.PlanOutcome_PLAN_OUTCOME_MADE}
	for i := range a {
		made.Placements = append(made.Placements, &apportionv1.PlannedPlacement{Node: uint32(i)})
	}
	for i := range b {
		returns := apportionv1.VictimReturn_VICTIM_RETURN_TAKES_BACK
		if i < c {
			returns = apportionv1.VictimReturn_VICTIM_RETURN_SERVED_FIRST
		}
		made.Victims = append(made.Victims, &apportionv1.PlannedEviction{Queue: uint32(i), Returns: returns})
	}
	say(text.Plan(names, made))
	for check := range apportionv1.CheckKind_name {
		for _, victims := range []int{0, c} {
			say(text.Plan(names, &apportionv1.PlanAnswer{Outcome: apportionv1.PlanOutcome_PLAN_OUTCOME_NONE, Miss: &apportionv1.PlanMiss{
				Check: apportionv1.CheckKind(check), Placed: uint32(min(a, b)), Tasks: uint32(b), Victims: uint32(victims), Task: new(uint32(0)),
				Node: new(uint32(0)), Missing: &apportionv1.Resource{Dimensions: []uint32{0}, Amounts: []float64{1000}},
				Protections: []*apportionv1.Cause{{Code: apportionv1.CauseCode_CAUSE_CODE_NOT_PREEMPTABLE, Count: uint32(c)}},
			}}))
		}
	}
}

func TestSentencesWithCountsAreGrammaticalForNoneOneAndTwo(t *testing.T) {
	total, seen := 0, map[string]bool{}
	counted(func(name, sentence string) {
		total++
		if wrong := wrongIn(sentence); wrong != "" && !seen[wrong] {
			seen[wrong] = true
			t.Errorf("%s: %q in %q", name, wrong, sentence)
		}
	})
	require.Greater(t, total, 9_000)
}

func TestTheGrammarTestRefusesWrongForms(t *testing.T) {
	for wrong := range strings.SplitSeq("All 1 tasks have room|1 tasks ready|1 node were tried|2 node were tried|1 of 3 nodes were|the 1 task that", "|") {
		require.NotEmpty(t, wrongIn(wrong), wrong)
	}
	for _, right := range []string{fmt.Sprint(11, " tasks are ready"), "1 task is ready", "1 of 3 nodes was tried", "0 tasks are ready"} {
		require.Empty(t, wrongIn(right))
	}
}
