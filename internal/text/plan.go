package text

import (
	"fmt"
	"strings"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Plan summarises a plan in a few sentences.
func Plan(names Names, a *apportionv1.PlanAnswer) string {
	p := planned{names, a}
	if a.GetMiss() != nil {
		return Sentence(p.none())
	}
	sentences := []string{p.placement()}
	if a.GetEnters() {
		sentences = append(sentences, "The job is still to be admitted, and may be.")
	}
	if len(a.GetVictims()) > 0 {
		if a.GetLeast() {
			sentences = append(sentences, "No plan evicts fewer tasks.")
		} else {
			sentences = append(sentences, "A plan that evicts fewer tasks is not ruled out.")
		}
	}
	if a.GetCutShort() {
		sentences = append(sentences, "The search ended at a bound on its work.")
	}
	if len(a.GetUnjudgedConstraints()) > 0 {
		sentences = append(sentences, capital(alsoDepends(a.GetUnjudgedConstraints()))+".")
	}
	if a.GetByChance() {
		sentences = append(sentences, ByChance)
	}
	sentences = append(sentences, p.returns()...)
	return Sentence(strings.Join(sentences, " "))
}

// ByChance says where the outcome of Volcano is random.
const ByChance = "Whether Volcano evicts here depends on chance: gang and capacity each choose some tasks of a job, Volcano's order of " +
	"tasks is random, and a task that only one of them chooses stays."

// planned is a plan that is put into words.
type planned struct {
	names  Names
	answer *apportionv1.PlanAnswer
}

func (p planned) job() string { return p.names.job(p.answer.GetJob()) }

func (p planned) placement() string {
	nodes, later := make(map[uint32]bool), 0
	for _, placed := range p.answer.GetPlacements() {
		nodes[placed.GetNode()] = true
		if placed.GetAfterRelease() {
			later++
		}
	}
	what := fmt.Sprintf("The %s that %s needs", Count(len(p.answer.GetPlacements()), "task"), p.job())
	if len(p.answer.GetPlacements()) == 1 {
		what = "The task that " + p.job() + " needs"
	}
	sentence := what + " can be placed on " + Count(len(nodes), "node")
	if victims := p.answer.GetVictims(); len(victims) > 0 {
		is := "are"
		if len(victims) == 1 {
			is = "is"
		}
		sentence += fmt.Sprintf(" if %s %s (%s) %s evicted",
			Count(len(victims), "running task"), p.from(), amounts(p.names, p.answer.GetFreed()), is)
	} else {
		sentence += " without evictions"
	}
	if later > 0 {
		sentence += ", once tasks are gone that are being released already"
	}
	return sentence + "."
}

// from names the queues that lose tasks.
func (p planned) from() string {
	const few = 3
	var queues []string
	seen := make(map[uint32]bool)
	for _, victim := range p.answer.GetVictims() {
		if queue := victim.GetQueue(); !seen[queue] {
			seen[queue] = true
			queues = append(queues, p.names.Queue(queue))
		}
	}
	switch {
	case len(queues) == 1:
		return "of queue " + queues[0]
	case len(queues) > few:
		return "of " + Count(len(queues), "queue")
	}
	return "of queues " + and(queues)
}

// returns warns of victims that could get their place back at once.
func (p planned) returns() []string {
	first, back := 0, 0
	for _, victim := range p.answer.GetVictims() {
		switch victim.GetReturns() { //nolint:exhaustive // The others do not return.
		case apportionv1.VictimReturn_VICTIM_RETURN_SERVED_FIRST:
			first++
		case apportionv1.VictimReturn_VICTIM_RETURN_TAKES_BACK:
			back++
		}
	}
	var sentences []string
	if first > 0 {
		is, them := "are", "they leave"
		if first == 1 {
			is, them = "is", "it leaves"
		}
		sentences = append(sentences, fmt.Sprintf(
			"%s %s served before the job and could take the room that %s: keep it for the job until the job is placed.",
			capital(ofThem(first, len(p.answer.GetVictims()))), is, them))
	}
	if back > 0 {
		sentences = append(sentences, capital(ofThem(back, len(p.answer.GetVictims())))+
			" could evict a task of the job in turn when the job runs: under this policy the plan may go in circles.")
	}
	return sentences
}

// none returns the reason why there is no plan.
func (p planned) none() string {
	miss := p.answer.GetMiss()
	head := "No plan was found for " + p.job()
	if p.answer.GetOutcome() == apportionv1.PlanOutcome_PLAN_OUTCOME_NONE {
		head = "There is no plan for " + p.job()
	}
	if p.answer.GetCutShort() {
		head += " before the search ended at a bound on its work"
	}
	switch {
	case nothingOffered(miss.GetCauses()):
		return head + ": " + reasonsOf(p.names, miss.GetCauses()) + "."
	case miss.GetVictims() > 0:
		return head + fmt.Sprintf(" with so few victims: the best one found evicts %s.", Count(int(miss.GetVictims()), "task"))
	case miss.GetCheck() == apportionv1.CheckKind_CHECK_KIND_NODES:
		if reasons := miss.GetCauses(); len(reasons) > 0 {
			return head + ": " + lacking(p.names, miss) + ". No task may be evicted for it: " + reasonsOf(p.names, reasons) + "."
		}
		return head + ": " + lacking(p.names, miss) + "."
	case len(miss.GetCauses()) > 0:
		return head + ": " + reasonsOf(p.names, miss.GetCauses()) + "."
	case miss.GetCheck() == apportionv1.CheckKind_CHECK_KIND_TASKS &&
		p.answer.GetOutcome() == apportionv1.PlanOutcome_PLAN_OUTCOME_NOT_FOUND:
		return head + ": tasks of it are counted, not listed, so that their placement is not known."
	case miss.GetCheck() == apportionv1.CheckKind_CHECK_KIND_TASKS:
		return head + ": no task of it waits to be placed."
	}
	return head + ": the policy does not let all tasks go that are in its way."
}

// lacking says what the task that has no place lacks, and who keeps it.
func lacking(names Names, miss *apportionv1.PlanMiss) string {
	placed := ""
	if miss.GetTasks() > 1 {
		placed = fmt.Sprintf("%d of %s %s a place; ", miss.GetPlaced(), Count(int(miss.GetTasks()), "task"),
			Verb(int(miss.GetPlaced()), "has", "have"))
	}
	if miss.Task == nil {
		return placed + "the nodes have no room for all of them at the same time"
	}
	counted := "no node takes " + names.task(miss.GetTask())
	if len(miss.GetNodes()) > 0 {
		counted = ofNodes(names, miss.GetTask(), miss.GetNodes())
	}
	if miss.Node == nil || miss.GetMissing() == nil {
		return placed + counted
	}
	text := fmt.Sprintf("%s%s; it lacks %s on the node that is nearest, %s",
		placed, counted, amounts(names, miss.GetMissing()), names.node(miss.GetNode()))
	var clauses []string
	for _, reason := range miss.GetProtections() {
		count := int(reason.GetCount())
		clauses = append(clauses, Count(count, "task")+" there "+protection(reason, count))
	}
	if len(clauses) > 0 {
		text += ": " + strings.Join(clauses, "; ")
	}
	return text
}
