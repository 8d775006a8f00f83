package volcano

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/apportion/apportion/adapter/objects"
)

// The shapes of the kinds that are read. All kinds have the same one, because the kind often comes last.
var (
	containerShape = &objects.Shape{Fields: objects.Fields{
		objects.NameField: objects.Leaf, "restartPolicy": objects.Leaf, "resources": {Fields: objects.Fields{"requests": objects.Leaf}},
		"ports": {Fields: objects.Fields{"hostPort": objects.Leaf, "protocol": objects.Leaf, "hostIP": objects.Leaf}},
	}}
	containerStatusShape = &objects.Shape{Fields: objects.Fields{
		objects.NameField: objects.Leaf, "allocatedResources": objects.Leaf, "resources": {Fields: objects.Fields{"requests": objects.Leaf}},
	}}
	conditionShape = &objects.Shape{Fields: objects.Fields{"type": objects.Leaf, "status": objects.Leaf, "reason": objects.Leaf, "message": objects.Leaf, "lastTransitionTime": objects.Leaf}}
	termsShape     = &objects.Shape{Names: true, Fields: objects.Fields{
		"requiredDuringSchedulingIgnoredDuringExecution": objects.Leaf, "preferredDuringSchedulingIgnoredDuringExecution": objects.Leaf,
	}}

	volumeShape = &objects.Shape{Names: true, Fields: objects.Fields{objects.NameField: objects.Leaf, "persistentVolumeClaim": objects.Leaf, "ephemeral": {}}}

	requiredShape = &objects.Shape{Fields: objects.Fields{requiredField: objects.Deep}}

	metadataShape = &objects.Shape{Fields: objects.Fields{
		objects.NameField: objects.Leaf, "namespace": objects.Leaf, "uid": objects.Leaf, "creationTimestamp": objects.Leaf, "deletionTimestamp": objects.Leaf,
		"labels":                 objects.Leaf,
		objects.AnnotationsField: annotationsShape,
	}}
	annotationsShape = &objects.Shape{Fields: objects.Fields{
		groupNameAnnotation: objects.Leaf, taskRoleKey: objects.Leaf, preemptableKey: objects.Leaf, cooldownKey: objects.Leaf, taskPriorityAnnotation: objects.Leaf,
		hierarchyAnnotation: objects.Leaf, hierarchyWeightsAnnotation: objects.Leaf, nodeGroupLimitsAnnotation: objects.Leaf,
		oversubscribedCPUAnnotation: objects.Leaf, oversubscribedMemoryAnnotation: objects.Leaf,
		bindCompleted: objects.Leaf, selectedNode: objects.Leaf, corev1.BetaStorageClassAnnotation: objects.Leaf,
		ExpectedEndAnnotation: objects.Leaf, ExpectedRuntimeAnnotation: objects.Leaf, OwnerKey: objects.Leaf,
		MaintenanceAnnotation: objects.Leaf,
	}}

	specShape = &objects.Shape{Names: true, Fields: objects.Fields{
		// Queue
		"weight": objects.Leaf, "capability": objects.Leaf, "reclaimable": objects.Leaf, "parent": objects.Leaf, "deserved": objects.Leaf, "priority": objects.Leaf,
		"guarantee": {Names: true, Fields: objects.Fields{"resource": objects.Leaf}},
		"affinity": {Names: true, Fields: objects.Fields{
			"nodeGroupAffinity": termsShape, "nodeGroupAntiAffinity": termsShape,
			// Pod
			"nodeAffinity": requiredShape, "podAffinity": requiredShape, "podAntiAffinity": requiredShape,
		}},
		// PodGroup
		"minMember": objects.Leaf, "minTaskMember": objects.Leaf, "queue": objects.Leaf, "priorityClassName": objects.Leaf, "minResources": objects.Leaf,
		"networkTopology": {Names: true, Fields: objects.Fields{"mode": objects.Leaf}},
		"subGroupPolicy":  {Names: true, Fields: objects.Fields{"networkTopology": {Names: true}}},
		// Pod
		"containers": containerShape, "initContainers": containerShape, "overhead": objects.Leaf, "nodeName": objects.Leaf, "schedulerName": objects.Leaf,
		"activeDeadlineSeconds": objects.Leaf,
		"schedulingGates":       {Fields: objects.Fields{objects.NameField: objects.Leaf}}, "resources": {Fields: objects.Fields{"requests": objects.Leaf}},
		"nodeSelector": objects.Leaf, "tolerations": objects.Deep, "topologySpreadConstraints": objects.Deep,
		"volumes": volumeShape, "resourceClaims": {Fields: objects.Fields{objects.NameField: objects.Leaf}},
		// Node
		"unschedulable": objects.Leaf, "taints": objects.Deep,
		// PersistentVolume, PersistentVolumeClaim and CSIDriver
		"nodeAffinity": {Fields: objects.Fields{"required": objects.Deep}}, "capacity": objects.Leaf, "accessModes": objects.Leaf, "claimRef": objects.Leaf,
		"storageClassName": objects.Leaf, "volumeMode": objects.Leaf, "volumeAttributesClassName": objects.Leaf, "volumeName": objects.Leaf, "selector": objects.Deep,
		"storageCapacity": objects.Leaf, "csi": {Fields: objects.Fields{"driver": objects.Leaf, "volumeHandle": objects.Leaf}},
		// CSINode
		"drivers": {Fields: objects.Fields{objects.NameField: objects.Leaf, "allocatable": {Fields: objects.Fields{"count": objects.Leaf}}}},
	}}

	statusShape = &objects.Shape{Fields: objects.Fields{
		"state": objects.Leaf, "phase": objects.Leaf, "startTime": objects.Leaf, "allocatable": objects.Leaf, "conditions": conditionShape,
		"containerStatuses": containerStatusShape, "initContainerStatuses": containerStatusShape,
	}}

	objectShape = &objects.Shape{Fields: objects.Fields{
		objects.VersionField: objects.Leaf, objects.KindField: objects.Leaf, objects.MetadataField: metadataShape, "spec": specShape, "status": statusShape,
		"value": objects.Leaf, "globalDefault": objects.Leaf, "provisioner": objects.Leaf, "volumeBindingMode": objects.Leaf, "allowedTopologies": objects.Deep,
		"nodeTopology": objects.Deep, "storageClassName": objects.Leaf, "capacity": objects.Leaf, "maximumVolumeSize": objects.Leaf,
	}}
)

// ReadPage reads one page of a list in JSON.
func ReadPage(name string, data []byte) (*objects.Page, error) {
	return objects.ReadPage(name, data, objectShape)
}
