package sessions

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// The form of a recorded cluster; testdata/volcano-sessions/README.md describes it.
type (
	// Cluster is a cluster with a configuration, and what three sessions in a row did with it.
	Cluster struct {
		ID       string    `json:"id"`
		Conf     string    `json:"conf"`
		Objects  []object  `json:"objects"`
		Sessions []Session `json:"sessions"`
	}
	// Session is what one session was seen to do from one state. Unnamed are further outcomes whose nodes are not recorded.
	Session struct {
		Outcomes []Outcome `json:"outcomes"`
		Unnamed  []Outcome `json:"unnamed"`
	}
	// Outcome is what a session did: pods by namespace and name, evictions as `NAMESPACE/POD ACTION`.
	Outcome struct {
		Phases    map[string]string `json:"phases"`
		Nominated map[string]string `json:"nominated"`
		Binds     nodes             `json:"binds"`
		Pipelined nodes             `json:"pipelined"`
		Evictions []string          `json:"evictions"`
		Panic     any               `json:"panic"`
	}
)

// nodes are pods with their nodes; those of an outcome without names of nodes are a list of pods.
type nodes map[string]string

// UnmarshalJSON reads a map or a list.
func (n *nodes) UnmarshalJSON(data []byte) error {
	var pods []string
	if err := json.Unmarshal(data, &pods); err != nil {
		return json.Unmarshal(data, (*map[string]string)(n))
	}
	*n = nodes{}
	for _, pod := range pods {
		(*n)[pod] = ""
	}
	return nil
}

// object is an object of the cluster as kubectl prints it.
type object map[string]any

// part returns the map of a name, which may be empty.
func (o object) part(name string) object {
	m, _ := o[name].(map[string]any)
	return m
}

func (o object) text(name string) string {
	s, _ := o[name].(string)
	return s
}

func (o object) kind() string { return o.text("kind") }

func (o object) name() string { return o.part("metadata").text("name") }

// key is the namespace and the name.
func (o object) key() string { return o.part("metadata").text("namespace") + "/" + o.name() }

// with returns a copy with another part.
func (o object) with(name string, part object) object {
	out := maps.Clone(o)
	out[name] = map[string]any(part)
	return out
}

// States calls yield with each session and the cluster before it, until it returns false. A session after one that ended in a panic is not
// reached.
func (c *Cluster) States(yield func(number int, before []object, s *Session) bool) {
	state := withDefaults(c.Objects)
	for n := range c.Sessions {
		s := &c.Sessions[n]
		if !yield(n, state, s) || s.Outcomes[0].Panic != nil {
			return
		}
		state = after(state, &s.Outcomes[0])
	}
}

// withDefaults adds the queues that every cluster has, and the uids that the recording gave to pods without one.
func withDefaults(list []object) []object {
	list = slices.Clone(list)
	for i, o := range list {
		if meta := o.part("metadata"); o.kind() == "Pod" && meta.text("uid") == "" {
			meta = maps.Clone(meta)
			meta["uid"] = meta.text("namespace") + "-" + meta.text("name")
			list[i] = o.with("metadata", meta)
		}
	}
	for _, name := range []string{"root", "default"} {
		if !slices.ContainsFunc(list, func(o object) bool { return o.kind() == "Queue" && o.name() == name }) {
			list = append(list, object{
				"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": map[string]any{"name": name},
				"spec": map[string]any{"weight": 1}, "status": map[string]any{"state": "Open"},
			})
		}
	}
	return list
}

// after returns the cluster at the next session: bound pods run, evicted ones and those that were leaving are back as new pods that wait,
// and phases and nominations stay.
func after(list []object, o *Outcome) []object {
	gone := map[string]bool{}
	for _, e := range o.Evictions {
		var pod, action string
		_, _ = fmt.Sscan(e, &pod, &action)
		gone[pod] = true
	}
	next := make([]object, len(list))
	for i, x := range list {
		switch x.kind() {
		case "PodGroup":
			status := maps.Clone(x.part("status"))
			if status == nil {
				status = object{}
			}
			status["phase"] = o.Phases[x.key()]
			x = x.with("status", status)
		case "Pod":
			x = podAfter(x, o, gone[x.key()])
		}
		next[i] = x
	}
	return next
}

func podAfter(pod object, o *Outcome, evicted bool) object {
	key, meta := pod.key(), pod.part("metadata")
	switch _, leaves := meta["deletionTimestamp"]; {
	case o.Binds[key] != "":
		spec := maps.Clone(pod.part("spec"))
		spec["nodeName"] = o.Binds[key]
		return pod.with("spec", spec).with("status", object{"phase": "Running"})
	case evicted || leaves:
		again, spec := maps.Clone(meta), maps.Clone(pod.part("spec"))
		delete(again, "deletionTimestamp")
		again["uid"] = meta.text("uid") + "r"
		delete(spec, "nodeName")
		return pod.with("metadata", again).with("spec", spec).with("status", object{"phase": "Pending"})
	case o.Nominated[key] != "":
		status := maps.Clone(pod.part("status"))
		status["nominatedNodeName"] = o.Nominated[key]
		return pod.with("status", status)
	}
	return pod
}

// encoded returns the objects as JSON.
func encoded(list []object) ([]json.RawMessage, error) {
	out := make([]json.RawMessage, len(list))
	for i, o := range list {
		data, err := json.Marshal(o)
		if err != nil {
			return nil, err
		}
		out[i] = data
	}
	return out, nil
}
