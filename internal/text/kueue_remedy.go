package text

import (
	"fmt"
	"strconv"
	"strings"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/visible"
)

// KueuePlan tells how the policy kueue would admit a job, and what the jobs do that it evicts.
func KueuePlan(names Names, a *apportionv1.PlanAnswer) string {
	n := a.GetKueue()
	sentences := []string{Kueue(names, a.GetJob(), n)}
	if a.GetMiss() != nil {
		switch {
		case n.GetAdmitted():
		case a.GetMiss().GetVictims() > 0:
			sentences = append(sentences, "There is no plan with so few victims.")
		case len(n.GetVictims()) > 0:
			sentences = append(sentences, "There is no plan by these means.")
		default:
			sentences = append(sentences, "There is no plan.")
		}
		return strings.Join(sentences, " ")
	}
	var first, back []string
	for _, v := range n.GetVictims() {
		switch {
		case v.GetServedFirst():
			first = append(first, visible.Text(v.GetName()))
		case v.GetTakesBack():
			back = append(back, visible.Text(v.GetName()))
		}
	}
	if len(n.GetVictims()) > 0 && !a.GetReady() {
		sentences = append(sentences, "That is not enough: once they have left, it still does not fit.")
	}
	if len(first) > 0 {
		sentences = append(sentences, Few(first)+" would be admitted again before it.")
	}
	if len(back) > 0 {
		sentences = append(sentences,
			"When it holds quota, "+Few(back)+" could evict it in turn: under this policy the plan may go in circles.")
	}
	return strings.Join(sentences, " ")
}

// kueueRemedy tells what a remedy for the policy kueue changes, and what follows.
func kueueRemedy(names Names, r *apportionv1.Remedy) string {
	var clauses []string
	for _, e := range r.GetEdits() {
		clauses = append(clauses, kueueEdit(names, e))
	}
	n := r.GetKueue()
	switch {
	case r.GetMeans() == apportionv1.RemedyMeans_REMEDY_MEANS_EVICTION:
		return "Evict, as plan says: " + strings.TrimPrefix(kueueVictims(n), "It would evict ")
	case len(n.GetVictims()) > 0:
		return capital(and(clauses)) + ". " + kueueVictims(n)
	}
	return capital(and(clauses)) + ". It then fits" + borrowing(n) + ": " + kueueFlavors(n) + "."
}

func kueueEdit(names Names, e *apportionv1.Edit) string {
	owner := "queue " + names.Queue(e.GetQueue().GetIndex())
	if names.cohort(e) {
		owner = "cohort " + names.Queue(e.GetQueue().GetIndex())
	}
	flavor := visible.Text(e.GetNodeSet())
	resource := ""
	if e.Dimension != nil {
		resource = names.Dimension(e.GetDimension())
	}
	before, after := kueueExactly(resource, e.GetBefore()), kueueExactly(resource, e.GetAmount())
	amounts := "from " + before + " to " + after
	if resource != "" {
		amounts += " " + visible.Text(resource)
	}
	switch e.GetKind() {
	case apportionv1.EditKind_EDIT_KIND_MINIMUM:
		return fmt.Sprintf("let it be admitted with fewer pods of %s: lower the least number %s", visible.Text(e.GetRole()), amounts)
	case apportionv1.EditKind_EDIT_KIND_REQUEST:
		return fmt.Sprintf("lower what each pod of %s asks for %s", visible.Text(e.GetRole()), amounts)
	case apportionv1.EditKind_EDIT_KIND_OPEN:
		return "let " + owner + " admit (stopPolicy None)"
	case apportionv1.EditKind_EDIT_KIND_NOMINAL:
		return fmt.Sprintf("raise the nominal quota of %s in flavor %s %s", owner, flavor, amounts)
	case apportionv1.EditKind_EDIT_KIND_BORROWING_LIMIT:
		return fmt.Sprintf("raise the borrowing limit of %s in flavor %s %s", owner, flavor, amounts)
	case apportionv1.EditKind_EDIT_KIND_LENDING_LIMIT:
		return fmt.Sprintf("raise the lending limit of %s in flavor %s %s", owner, flavor, amounts)
	case apportionv1.EditKind_EDIT_KIND_FLAVOR:
		return "create flavor " + flavor
	case apportionv1.EditKind_EDIT_KIND_PRIORITY:
		return "raise its priority " + amounts
	case apportionv1.EditKind_EDIT_KIND_END:
		return "end " + names.job(e.GetJob().GetIndex())
	default:
		return "make a change that this version does not know"
	}
}

// kueueExactly writes an amount for a text that Sentence completes. Without a resource it is a number.
func kueueExactly(resource string, amount float64) string {
	if resource == "" {
		return strconv.FormatFloat(amount, 'f', -1, 64)
	}
	return exactly(resource, amount)
}

// Exactly writes an amount as people do, with all decimals.
func Exactly(resource string, amount float64) string { return Sentence(exactly(resource, amount)) }
