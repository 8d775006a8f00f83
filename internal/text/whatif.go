package text

import (
	"slices"
	"strconv"
	"strings"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/quantity"
)

// WhatIf returns the arguments of `apportion whatif` that make the change of a remedy of a job.
func WhatIf(names Names, job uint32, r *apportionv1.Remedy) []string {
	if r.GetKueue() != nil {
		return kueueWhatIf(names, "job/"+quoted(names.job(job)), r)
	}
	var list []string
	set := func(target, value string) { list = append(list, "--set", target+"="+value) }
	of := "job/" + quoted(names.job(job))
	for _, e := range r.GetEdits() {
		queue := "queue/" + quoted(names.Queue(e.GetQueue()))
		dimension := names.Dimension(e.GetDimension())
		resource, role := quoted(dimension), quoted(e.GetRole())
		value := strconv.FormatFloat(e.GetAfter(), 'f', -1, 64)
		amount := quantity.Format(dimension, e.GetAfter())
		switch e.GetField() { //nolint:exhaustive // The others are Kueue's.
		case apportionv1.RemedyField_REMEDY_FIELD_QUEUE_CAPABILITY:
			set(queue+".capability."+resource, amount)
		case apportionv1.RemedyField_REMEDY_FIELD_QUEUE_GUARANTEE:
			set(queue+".guarantee."+resource, amount)
		case apportionv1.RemedyField_REMEDY_FIELD_QUEUE_DESERVED:
			set(queue+".deserved."+resource, amount)
		case apportionv1.RemedyField_REMEDY_FIELD_QUEUE_WEIGHT:
			set(queue+".weight", value)
		case apportionv1.RemedyField_REMEDY_FIELD_QUEUE_OPEN:
			set(queue+".state", "open")
		case apportionv1.RemedyField_REMEDY_FIELD_JOB_QUEUE:
			set(of+".queue", quoted(names.Queue(e.GetQueue())))
		case apportionv1.RemedyField_REMEDY_FIELD_JOB_MINIMUM:
			if e.Role != nil {
				set(of+".role."+role+".minAvailable", value)
			}
		case apportionv1.RemedyField_REMEDY_FIELD_TASK_REQUEST:
			set(of+".role."+role+".request."+resource, amount)
		case apportionv1.RemedyField_REMEDY_FIELD_NODES_LIKE:
			list = append(list, "--add-nodes", value, "--like", names.node(e.GetNode()))
		case apportionv1.RemedyField_REMEDY_FIELD_NODE_UNCORDONED:
			list = append(list, "--uncordon", names.node(e.GetNode()))
		case apportionv1.RemedyField_REMEDY_FIELD_JOB_ENDED:
			list = append(list, "--finish", names.job(e.GetJob()))
		case apportionv1.RemedyField_REMEDY_FIELD_TASK_NODE:
			set(of+".otherNode", quoted(names.node(e.GetNode())))
		case apportionv1.RemedyField_REMEDY_FIELD_UNSPECIFIED:
		}
	}
	if r.MinAvailable != nil {
		set(of+".minAvailable", strconv.FormatUint(uint64(r.GetMinAvailable()), 10))
	}
	for i, dimension := range r.GetMinResources().GetDimensions() {
		name := names.Dimension(dimension)
		set(of+".minResources."+quoted(name), quantity.Format(name, r.GetMinResources().GetAmounts()[i]))
	}
	return list
}

// kueueWhatIf returns the arguments for a remedy of the policy kueue; none for one with a change that `apportion whatif` cannot make.
func kueueWhatIf(names Names, job string, r *apportionv1.Remedy) []string {
	var list []string
	for _, e := range r.GetEdits() {
		queue, quota := "clusterqueue/"+quoted(names.Queue(e.GetQueue())), quoted(e.GetResource())+"@"+quoted(e.GetFlavor())
		amount := KueueSetting(e.GetResource(), int64(e.GetAfter()))
		set := ""
		switch e.GetField() { //nolint:exhaustive // The others cannot be made.
		case apportionv1.RemedyField_REMEDY_FIELD_QUEUE_OPEN:
			set = queue + ".stopPolicy=None"
		case apportionv1.RemedyField_REMEDY_FIELD_QUEUE_NOMINAL:
			set = queue + ".nominal." + quota + "=" + amount
		case apportionv1.RemedyField_REMEDY_FIELD_QUEUE_BORROWING_LIMIT:
			set = queue + ".borrowingLimit." + quota + "=" + amount
		case apportionv1.RemedyField_REMEDY_FIELD_QUEUE_LENDING_LIMIT:
			set = queue + ".lendingLimit." + quota + "=" + amount
		case apportionv1.RemedyField_REMEDY_FIELD_JOB_PRIORITY:
			set = job + ".priority=" + amount
		case apportionv1.RemedyField_REMEDY_FIELD_JOB_ENDED:
			list = append(list, "--finish", names.job(e.GetJob()))
			continue
		}
		if set == "" || e.GetCohort() != "" {
			return nil
		}
		list = append(list, "--set", set)
	}
	return list
}

// settings are the words of `apportion whatif --set` behind a name.
var settings = []string{
	"allocatable", "borrowingLimit", "budget", "budgetKind", "capability", "cohort", "deserved", "guarantee", "lendingLimit",
	"maintenance", "minAvailable", "minResources", "nominal", "otherNode", "priority", "queue", "reclaimable", "request", "role", "spent",
	"state", "stopPolicy", "usage", "weight",
}

// quoted returns a name as `--set` reads it: in quotation marks if it could be taken for another name with a setting behind it.
func quoted(name string) string {
	isSetting := func(word string) bool { return slices.Contains(settings, word) }
	if strings.HasPrefix(name, `"`) || strings.Contains(name, "=") || slices.ContainsFunc(strings.Split(name, "."), isSetting) {
		return strconv.Quote(name)
	}
	return name
}
