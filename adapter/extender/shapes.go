package extender

import "github.com/apportion/apportion/adapter/volcano"

// The parts of Volcano's objects that are read. A test holds these shapes to the functions that read them: what is read through a shape is
// what is read without.
var (
	cooldownShape = &shape{members: members{volcano.CooldownKey: whole}}

	podShape = &shape{members: members{
		"metadata": {members: members{"creationTimestamp": whole, "labels": cooldownShape, "annotations": cooldownShape}},
		"spec":     {members: members{"priorityClassName": whole, "schedulingGates": whole}},
		"status":   {members: members{"phase": whole, "conditions": whole}},
	}}

	taskShape = &shape{members: members{
		"UID": whole, "Name": whole, "TaskRole": whole, "Resreq": whole, "NodeName": whole, "Status": whole, "Priority": whole,
		"Preemptable": whole, "Pod": podShape,
	}}

	jobShape = &shape{members: members{
		"UID": whole, "Name": whole, "Namespace": whole, "Queue": whole, "Priority": whole, "MinAvailable": whole, "TaskMinAvailable": whole,
		"CreationTimestamp": whole,
		"PodGroup":          {members: members{"spec": {members: members{"minResources": whole}}, "status": {members: members{"phase": whole}}}},
		"Tasks":             {each: taskShape},
	}}

	nodeShape = &shape{members: members{
		"Name": whole, "Allocatable": whole,
		"Node":  {members: members{"metadata": {members: members{"labels": {members: members{volcano.NodeGroupKey: whole}}}}}},
		"Tasks": {each: &shape{members: members{"UID": whole, "Resreq": whole, "Status": whole}}},
	}}

	pushShape = &shape{members: members{"Jobs": {each: jobShape}, "Nodes": {each: nodeShape}, "Queues": whole}}

	stateShape    = &shape{members: members{"UID": whole, "NodeName": whole, "Status": whole}}
	namedShape    = &shape{members: members{"UID": whole, "Name": whole}}
	questionShape = &shape{members: members{
		"task": stateShape, "node": namedShape, "nodes": {each: namedShape}, "queue": namedShape,
		"job": {members: members{"UID": whole, "Tasks": {each: stateShape}}},
	}}
)
