package text

import (
	"strconv"

	"github.com/apportion/apportion/contract/quantity"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// WhatIf returns the arguments of `apportion whatif` that make the change of a remedy of a job.
func WhatIf(names Names, job uint32, r *apportionv1.Remedy) []string {
	var list []string
	set := func(target, value string) { list = append(list, "--set", target+"="+value) }
	of := "job/" + names.job(job)
	for _, e := range r.GetEdits() {
		queue := "queue/" + names.Queue(e.GetQueue())
		dimension := names.Dimension(e.GetDimension())
		value := strconv.FormatFloat(e.GetAfter(), 'f', -1, 64)
		amount := quantity.Format(dimension, e.GetAfter())
		switch e.GetField() {
		case apportionv1.RemedyField_REMEDY_FIELD_QUEUE_CAPABILITY:
			set(queue+".capability."+dimension, amount)
		case apportionv1.RemedyField_REMEDY_FIELD_QUEUE_GUARANTEE:
			set(queue+".guarantee."+dimension, amount)
		case apportionv1.RemedyField_REMEDY_FIELD_QUEUE_DESERVED:
			set(queue+".deserved."+dimension, amount)
		case apportionv1.RemedyField_REMEDY_FIELD_QUEUE_WEIGHT:
			set(queue+".weight", value)
		case apportionv1.RemedyField_REMEDY_FIELD_QUEUE_OPEN:
			set(queue+".state", "open")
		case apportionv1.RemedyField_REMEDY_FIELD_JOB_QUEUE:
			set(of+".queue", names.Queue(e.GetQueue()))
		case apportionv1.RemedyField_REMEDY_FIELD_JOB_MINIMUM:
			if e.Role != nil {
				set(of+".role."+e.GetRole()+".minAvailable", value)
			}
		case apportionv1.RemedyField_REMEDY_FIELD_TASK_REQUEST:
			set(of+".role."+e.GetRole()+".request."+dimension, amount)
		case apportionv1.RemedyField_REMEDY_FIELD_NODES_LIKE:
			list = append(list, "--add-nodes", value, "--like", names.node(e.GetNode()))
		case apportionv1.RemedyField_REMEDY_FIELD_NODE_UNCORDONED:
			list = append(list, "--uncordon", names.node(e.GetNode()))
		case apportionv1.RemedyField_REMEDY_FIELD_JOB_ENDED:
			list = append(list, "--finish", names.job(e.GetJob()))
		case apportionv1.RemedyField_REMEDY_FIELD_TASK_NODE:
			set(of+".otherNode", names.node(e.GetNode()))
		case apportionv1.RemedyField_REMEDY_FIELD_UNSPECIFIED:
		}
	}
	if r.MinAvailable != nil {
		set(of+".minAvailable", strconv.FormatUint(uint64(r.GetMinAvailable()), 10))
	}
	for i, dimension := range r.GetMinResources().GetDimension() {
		name := names.Dimension(dimension)
		set(of+".minResources."+name, quantity.Format(name, r.GetMinResources().GetAmount()[i]))
	}
	return list
}
