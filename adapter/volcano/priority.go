package volcano

import (
	"strconv"

	"github.com/apportion/apportion/adapter/objects"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// priorityClass holds the fields of a PriorityClass.
type priorityClass struct {
	name   string
	value  int32
	global bool
}

// classShape is what is read of a PriorityClass.
var classShape = objects.Select("value", "globalDefault")

// priorityClass reads a PriorityClass. Of several global defaults the last one counts, as for Volcano.
func (r *reader) priorityClass(m objects.Metadata, root *objects.Value) {
	class := priorityClass{name: m.Name, value: r.WholeAt(root.Field("value"))}
	if global := r.FlagAt(root.Field("globalDefault")); global != nil {
		class.global = *global
	}
	r.classes = append(r.classes, class)
}

// priorities are the values of classes by name, and the one of jobs without a class.
type priorities struct {
	values map[string]int32
	global int32
}

// of returns the priority of a job of a class, "" for none. A class that does not exist counts as none, as for Volcano.
func (p *priorities) of(class string) int32 {
	if value, ok := p.values[class]; ok {
		return value
	}
	return p.global
}

// priorities returns the values of the classes that were read, or else those that pods state: the API server writes the name and the value
// of a class into each pod. Pods of one class that differ state nothing.
func (r *reader) priorities() *priorities {
	p := &priorities{values: make(map[string]int32, len(r.classes))}
	for _, class := range r.classes {
		p.values[class.name] = class.value
		if class.global {
			p.global = class.value
		}
	}
	if r.knowsClasses() {
		return p
	}
	differ := map[string]bool{}
	for i := range r.pods {
		pod := &r.pods[i]
		class := pod.task.GetDetail().GetPriorityClass()
		if pod.priority == nil || class == "" {
			continue
		}
		value, known := p.values[class]
		differ[class] = differ[class] || known && value != *pod.priority
		p.values[class] = *pod.priority
	}
	for class, differs := range differ {
		if differs {
			delete(p.values, class)
		}
	}
	return p
}

// knowsClasses reports whether all PriorityClasses were given.
func (r *reader) knowsClasses() bool { return len(r.classes) > 0 || r.Listed[classKind] }

// provesClasses names a PodGroup whose priority is not known without its class: it has not ended, and no pod states the value. That of a
// PodGroup without a class is 0 unless a class is the default of the cluster, as it may be if its pods have one and no pod has none.
func (r *reader) provesClasses() string {
	p, none, classes := r.priorities(), false, map[objects.Identity]string{}
	for i := range r.pods {
		pod := &r.pods[i]
		switch class := pod.task.GetDetail().GetPriorityClass(); {
		case pod.priority == nil:
		case class == "":
			none = true
		case *pod.priority != 0:
			classes[objects.Identity{Namespace: pod.namespace, Name: pod.group}] = class
		}
	}
	for i := range r.jobs {
		j := &r.jobs[i]
		if j.message.GetPhase() == apportionv1.JobPhase_JOB_PHASE_COMPLETED {
			continue
		}
		name := "PodGroup " + j.message.GetNamespace() + "/" + j.message.GetName()
		if _, known := p.values[j.priorityClass]; !known && j.priorityClass != "" {
			return name + " has the class " + strconv.Quote(j.priorityClass)
		}
		if class := classes[j.identity()]; class != "" && j.priorityClass == "" && !none {
			return name + " has no class, but its pods have " + strconv.Quote(class) + ", which may be the default of the cluster"
		}
	}
	return ""
}
