package volcano

import (
	corev1 "k8s.io/api/core/v1"
)

// shape selects the parts of an object that are read. The scanner skips everything else, which is most of a cluster's dump. All kinds have
// the same shape, because the kind often comes last.
type shape struct {
	fields map[string]*shape
	// rest is the shape of all other fields; nil skips them.
	rest *shape
	// names keeps the names of skipped fields, so that misspelt ones can be found.
	names bool
}

// of returns the shape of a field, nil if it is skipped. A nil shape skips everything.
func (s *shape) of(name string) *shape {
	if f, ok := s.fields[name]; ok {
		return f
	}
	return s.rest
}

type fields = map[string]*shape

var (
	// leaf is a scalar, or a map or list of scalars.
	leaf = &shape{rest: &shape{}}

	// deepShape is the shape of a value of any depth.
	deepShape = func() *shape {
		s := &shape{}
		s.rest = s
		return s
	}()

	containerShape = &shape{fields: fields{
		nameField: leaf, "restartPolicy": leaf, "resources": {fields: fields{"requests": leaf}},
		"ports": {fields: fields{"hostPort": leaf, "protocol": leaf, "hostIP": leaf}},
	}}
	containerStatusShape = &shape{fields: fields{
		nameField: leaf, "allocatedResources": leaf, "resources": {fields: fields{"requests": leaf}},
	}}
	conditionShape = &shape{fields: fields{"type": leaf, "status": leaf, "reason": leaf, "message": leaf, "lastTransitionTime": leaf}}
	termsShape     = &shape{names: true, fields: fields{
		"requiredDuringSchedulingIgnoredDuringExecution": leaf, "preferredDuringSchedulingIgnoredDuringExecution": leaf,
	}}

	volumeShape = &shape{names: true, fields: fields{nameField: leaf, "persistentVolumeClaim": leaf, "ephemeral": {}}}

	requiredShape = &shape{fields: fields{requiredField: deepShape}}

	metadataShape = &shape{fields: fields{
		nameField: leaf, "namespace": leaf, "uid": leaf, "creationTimestamp": leaf, "deletionTimestamp": leaf,
		"labels":         leaf,
		annotationsField: annotationsShape,
	}}
	annotationsShape = &shape{fields: fields{
		groupNameAnnotation: leaf, taskRoleKey: leaf, preemptableKey: leaf, cooldownKey: leaf, taskPriorityAnnotation: leaf,
		hierarchyAnnotation: leaf, hierarchyWeightsAnnotation: leaf, nodeGroupLimitsAnnotation: leaf,
		oversubscribedCPUAnnotation: leaf, oversubscribedMemoryAnnotation: leaf,
		bindCompleted: leaf, selectedNode: leaf, corev1.BetaStorageClassAnnotation: leaf,
		ExpectedEndAnnotation: leaf, ExpectedRuntimeAnnotation: leaf, OwnerKey: leaf,
		MaintenanceAnnotation: leaf,
	}}

	specShape = &shape{names: true, fields: fields{
		// Queue
		"weight": leaf, "capability": leaf, "reclaimable": leaf, "parent": leaf, "deserved": leaf, "priority": leaf,
		"guarantee": {names: true, fields: fields{"resource": leaf}},
		"affinity": {names: true, fields: fields{
			"nodeGroupAffinity": termsShape, "nodeGroupAntiAffinity": termsShape,
			// Pod
			"nodeAffinity": requiredShape, "podAffinity": requiredShape, "podAntiAffinity": requiredShape,
		}},
		// PodGroup
		"minMember": leaf, "minTaskMember": leaf, "queue": leaf, "priorityClassName": leaf, "minResources": leaf,
		"networkTopology": {names: true, fields: fields{"mode": leaf}},
		"subGroupPolicy":  {names: true, fields: fields{"networkTopology": {names: true}}},
		// Pod
		"containers": containerShape, "initContainers": containerShape, "overhead": leaf, "nodeName": leaf, "schedulerName": leaf,
		"activeDeadlineSeconds": leaf,
		"schedulingGates":       {fields: fields{nameField: leaf}}, "resources": {fields: fields{"requests": leaf}},
		"nodeSelector": leaf, "tolerations": deepShape, "topologySpreadConstraints": deepShape,
		"volumes": volumeShape, "resourceClaims": {fields: fields{nameField: leaf}},
		// Node
		"unschedulable": leaf, "taints": deepShape,
		// PersistentVolume, PersistentVolumeClaim and CSIDriver
		"nodeAffinity": {fields: fields{"required": deepShape}}, "capacity": leaf, "accessModes": leaf, "claimRef": leaf,
		"storageClassName": leaf, "volumeMode": leaf, "volumeAttributesClassName": leaf, "volumeName": leaf, "selector": deepShape,
		"storageCapacity": leaf, "csi": {fields: fields{"driver": leaf, "volumeHandle": leaf}},
		// CSINode
		"drivers": {fields: fields{nameField: leaf, "allocatable": {fields: fields{"count": leaf}}}},
	}}

	statusShape = &shape{fields: fields{
		"state": leaf, "phase": leaf, "startTime": leaf, "allocatable": leaf, "conditions": conditionShape,
		"containerStatuses": containerStatusShape, "initContainerStatuses": containerStatusShape,
	}}

	objectShape = &shape{fields: fields{
		versionField: leaf, kindField: leaf, metadataField: metadataShape, "spec": specShape, "status": statusShape,
		"value": leaf, "globalDefault": leaf, "provisioner": leaf, "volumeBindingMode": leaf, "allowedTopologies": deepShape,
		"nodeTopology": deepShape, "storageClassName": leaf, "capacity": leaf, "maximumVolumeSize": leaf,
	}}
)
