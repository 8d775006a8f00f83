package editing

import (
	"fmt"
	"slices"
	"strings"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/quantity"
	"github.com/apportion/apportion/internal/text"
)

// Write writes an edit as Read reads it. Its objects are named by their positions.
func Write(names text.Names, e *apportionv1.Edit) string {
	if e.GetKind() == apportionv1.EditKind_EDIT_KIND_FORGET {
		return forget
	}
	for i := range forms {
		f := &forms[i]
		value, is := f.write(names, e)
		if name := nameOf(names, f.object, e); is && name != nil {
			return f.object + "/" + quoted(*name) + "." + f.roleOf(e) + f.setting + f.resource(names, e) + "=" + value
		}
	}
	return ""
}

// write writes the value of an edit; false: the form is not that of the edit.
func (f *form) write(names text.Names, e *apportionv1.Edit) (string, bool) {
	for _, w := range f.words {
		if w.kind == e.GetKind() && w.text == e.GetText() {
			return w.word, true
		}
	}
	if f.kind != e.GetKind() || f.value == words {
		return "", false
	}
	switch {
	case f.value == toQueue:
		return quoted(names.Queue(e.GetTo().GetIndex())), true
	case f.value == toNode:
		return quoted(called(names.Node, e.GetTo())), true
	case f.value == textual && e.GetText() != "":
		return e.GetText(), true
	case e.Amount == nil:
		return None, true
	case f.value == amount || f.value == quota:
		return quantity.Format(names.Dimension(e.GetDimension()), e.GetAmount()), true
	}
	return plain(e.GetAmount()), true
}

func (f *form) roleOf(e *apportionv1.Edit) string {
	if e.Role == nil || !f.role {
		return ""
	}
	return "role." + quoted(e.GetRole()) + "."
}

// resource writes the resource behind a setting.
func (f *form) resource(names text.Names, e *apportionv1.Edit) string {
	switch {
	case !f.resourced():
		return ""
	case f.value == quota && e.GetNodeSet() != "":
		return quoted(names.Dimension(e.GetDimension())) + "@" + quoted(e.GetNodeSet())
	}
	return quoted(names.Dimension(e.GetDimension()))
}

// nameOf returns the name of the object of an edit; nil if it is no such object.
func nameOf(names text.Names, object string, e *apportionv1.Edit) *string {
	cohort := names.Cohort != nil && names.Cohort(e.GetQueue().GetIndex())
	switch of := e.GetObject().(type) {
	case *apportionv1.Edit_Queue:
		if object == aQueue || object == aCohort && cohort || object == aClusterQueue && !cohort {
			return new(names.Queue(of.Queue.GetIndex()))
		}
	case *apportionv1.Edit_Job:
		if object == aJob {
			return new(called(names.Job, of.Job))
		}
	case *apportionv1.Edit_Node:
		if object == aNode {
			return new(called(names.Node, of.Node))
		}
	default:
		if object == aFlavor {
			return new(e.GetNodeSet())
		}
	}
	return nil
}

// called is the name of a job or a node.
func called(name func(uint32) string, of *apportionv1.Ref) string {
	if name == nil {
		return fmt.Sprintf("#%d", of.GetIndex())
	}
	return name(of.GetIndex())
}

// Flags are the flags that stand for settings, each with what its value is put into.
var Flags = map[apportionv1.EditKind]string{
	apportionv1.EditKind_EDIT_KIND_END: "--finish", apportionv1.EditKind_EDIT_KIND_UNCORDON: "--uncordon",
	apportionv1.EditKind_EDIT_KIND_CORDON: "--cordon", apportionv1.EditKind_EDIT_KIND_REMOVE: "--remove-node",
}

// Arguments returns the arguments of `apportion whatif` that make the edits of a remedy.
func Arguments(names text.Names, r *apportionv1.Remedy) []string {
	var list []string
	for _, e := range r.GetEdits() {
		switch flag := Flags[e.GetKind()]; {
		case flag != "" && e.GetJob() != nil:
			list = append(list, flag, called(names.Job, e.GetJob()))
		case flag != "":
			list = append(list, flag, called(names.Node, e.GetNode()))
		case e.GetKind() == apportionv1.EditKind_EDIT_KIND_NODES_LIKE:
			list = append(list, "--add-nodes", plain(e.GetAmount()), "--like", called(names.Node, e.GetNode()))
		default:
			list = append(list, "--set", Write(names, e))
		}
	}
	return list
}

// Completions returns what begins an edit of a snapshot, up to the equals sign.
func Completions(s *lookup.Snapshot) []string {
	var all []string
	add := func(object, name string, roles, resources []string) {
		for _, f := range of(object) {
			for _, one := range f.written(roles, resources) {
				all = append(all, object+"/"+name+"."+one+"=")
			}
		}
	}
	for _, q := range s.GetQueues() {
		add(aQueue, q.GetName(), nil, s.GetDimensions())
		switch own := q.GetKueue(); {
		case own.GetCohort():
			add(aCohort, q.GetName(), nil, quotas(s, own))
		case own != nil:
			add(aClusterQueue, q.GetName(), nil, quotas(s, own))
		}
	}
	for _, j := range s.GetJobs() {
		name, roles := lookup.JobName(j), RolesOf(j)
		add(aJob, name, roles, s.GetDimensions())
		for _, f := range of("job") {
			if f.role {
				for _, one := range f.written(roles, s.GetDimensions()) {
					if short, found := strings.CutPrefix(one, "role."); found {
						all = append(all, "job/"+name+"."+short+"=")
					}
				}
			}
		}
	}
	for _, n := range s.GetNodes() {
		add(aNode, n.GetName(), nil, s.GetDimensions())
	}
	slices.Sort(all)
	return all
}

// quotas returns what a queue has quota of: RESOURCE, and RESOURCE@FLAVOR where several flavors have it.
func quotas(s *lookup.Snapshot, q *apportionv1.KueueQueue) []string {
	flavors := map[string][]string{}
	for _, o := range q.GetQuotas() {
		for _, d := range o.GetNominal().GetDimensions() {
			name := s.GetDimensions()[d]
			flavors[name] = append(flavors[name], name+"@"+o.GetNodeSet())
		}
	}
	var all []string
	for resource, of := range flavors {
		if len(of) == 1 {
			of = []string{resource}
		}
		all = append(all, of...)
	}
	return all
}
