package kubescheduler

import (
	"maps"
	"time"
)

// Stable removes from an object of an API server what differs from run to run, and what the API server adds to every object and no
// scheduler reads.
func Stable(object map[string]any) {
	if metadata := part(object, "metadata"); metadata != nil {
		remove(metadata, "uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "finalizers")
		if metadata["deletionTimestamp"] != nil {
			metadata["deletionTimestamp"] = time.Unix(deletion, 0).UTC().Format(time.RFC3339)
		}
	}
	spec, status := part(object, "spec"), part(object, "status")
	switch object["kind"] {
	case "Pod":
		keep(status, "phase")
		remove(spec, "dnsPolicy", "restartPolicy", "securityContext", "terminationGracePeriodSeconds", "enableServiceLinks")
		for _, key := range []string{"containers", "initContainers"} {
			containers, _ := spec[key].([]any)
			for _, c := range containers {
				if container, ok := c.(map[string]any); ok {
					remove(container, "image", "imagePullPolicy", "terminationMessagePath", "terminationMessagePolicy")
				}
			}
		}
	case "Node":
		keep(status, "allocatable", "conditions")
		conditions, _ := status["conditions"].([]any)
		for _, c := range conditions {
			if condition, ok := c.(map[string]any); ok {
				keep(condition, "type", "status")
			}
		}
	case "PersistentVolume", "PersistentVolumeClaim":
		keep(status, "phase")
	case "Namespace":
		remove(object, "spec", "status")
	}
}

// part is an object below an object; nil if there is none.
func part(object map[string]any, key string) map[string]any {
	below, _ := object[key].(map[string]any)
	return below
}

func remove(object map[string]any, keys ...string) {
	for _, key := range keys {
		delete(object, key)
	}
}

// keep removes all keys but these.
func keep(object map[string]any, keys ...string) {
	kept := map[string]any{}
	for _, key := range keys {
		if value, ok := object[key]; ok {
			kept[key] = value
		}
	}
	clear(object)
	maps.Copy(object, kept)
}
