package extender

import "github.com/apportion/apportion/adapter/volcano"

// Names of members that occur in several places.
const (
	nameField    = "Name"
	tasksField   = "Tasks"
	statusField  = "Status"
	requestField = "Resreq"
	// Of Kubernetes' objects.
	metadataField = "metadata"
	specField     = "spec"
	stateField    = "status"
)

// The parts of Volcano's objects that are read. A test checks that reading with and without a shape gives the same result.
var (
	cooldownShape = &shape{members: members{volcano.CooldownKey: whole}}

	podShape = &shape{members: members{
		metadataField: {members: members{"creationTimestamp": whole, "labels": cooldownShape, "annotations": cooldownShape}},
		specField:     {members: members{"priorityClassName": whole, "schedulingGates": whole}},
		stateField:    {members: members{"phase": whole, "conditions": whole}},
	}}

	taskShape = &shape{members: members{
		"UID": whole, nameField: whole, "TaskRole": whole, requestField: whole, "NodeName": whole, statusField: whole, "Priority": whole,
		"Preemptable": whole, "Pod": podShape,
	}, small: true}

	groupShape = &shape{members: members{
		specField: {members: members{"minResources": whole}}, stateField: {members: members{"phase": whole}},
	}}

	jobShape = &shape{members: members{
		"UID": whole, nameField: whole, "Namespace": whole, "Queue": whole, "Priority": whole, "MinAvailable": whole,
		"TaskMinAvailable": whole, "CreationTimestamp": whole, "PodGroup": groupShape, tasksField: {each: taskShape},
	}}

	nodeShape = &shape{members: members{
		nameField: whole, "Allocatable": whole,
		"Node":     {members: members{metadataField: {members: members{"labels": {members: members{volcano.NodeGroupKey: whole}}}}}},
		tasksField: {each: &shape{members: members{"UID": whole, requestField: whole, statusField: whole}}},
	}}

	pushShape = &shape{members: members{"Jobs": {each: jobShape}, "Nodes": {each: nodeShape}, "Queues": {each: whole}}}

	stateShape    = &shape{members: members{"UID": whole, "NodeName": whole, statusField: whole}}
	namedShape    = &shape{members: members{"UID": whole, nameField: whole}}
	questionShape = &shape{members: members{
		"task": stateShape, "node": namedShape, "nodes": {each: namedShape}, "queue": namedShape,
		"job": {members: members{"UID": whole, tasksField: {each: stateShape}}},
	}}
)
