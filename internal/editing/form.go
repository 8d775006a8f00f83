// Package editing reads and writes edits as people do: `queue/vision.capability.gpu=64`. It makes none of them: they are sent.
package editing

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// value says how the value of a setting is written.
type value uint8

const (
	// number is a count, or a fraction.
	number value = iota + 1
	// amount is a quantity of the resource that follows the setting, quota one of RESOURCE@FLAVOR, seconds one of quantum-seconds.
	amount
	quota
	seconds
	// textual is as it is.
	textual
	// toQueue and toNode are names.
	toQueue
	toNode
	// words are the few values that the form lists.
	words
)

// The objects, as they are written. A ClusterQueue has a cohort, too.
const (
	aQueue        = "queue"
	aJob          = "job"
	aNode         = "node"
	aClusterQueue = "clusterqueue"
	aCohort       = "cohort"
	aFlavor       = "flavor"
)

// yes is the word for what is so.
const yes = "true"

// None is the value that removes a setting.
const None = "none"

// forget is the edit that has neither object nor setting.
const forget = "memory=" + None

// form is how edits of a kind are written: OBJECT/NAME.SETTING=VALUE. A setting that ends in a period is followed by a resource.
type form struct {
	object, setting string
	kind            apportionv1.EditKind
	value           value
	// words are the values, each with the edit that it means. The first one of an edit is written.
	words []word
	// kept: the value cannot be removed.
	kept bool
	// role: ROLE. may stand before the setting; ofRole: it must.
	role, ofRole bool
	// about says in the help what is not clear from the name.
	about string
}

type word struct {
	word string
	kind apportionv1.EditKind
	text string
}

// forms are all settings, those of an object in the order of the help.
var forms = []form{
	{object: aQueue, setting: "weight", kind: apportionv1.EditKind_EDIT_KIND_WEIGHT, value: number},
	{object: aQueue, setting: "priority", kind: apportionv1.EditKind_EDIT_KIND_PRIORITY, value: number},
	{object: aQueue, setting: "state", value: words, words: []word{
		{"open", apportionv1.EditKind_EDIT_KIND_OPEN, ""},
		{"closing", apportionv1.EditKind_EDIT_KIND_CLOSE, "closing"},
		{"closed", apportionv1.EditKind_EDIT_KIND_CLOSE, ""},
	}},
	{object: aQueue, setting: "reclaimable", value: words, words: []word{
		{yes, apportionv1.EditKind_EDIT_KIND_RECLAIMABLE, ""}, {"false", apportionv1.EditKind_EDIT_KIND_UNRECLAIMABLE, ""},
	}},
	{object: aQueue, setting: "parent", kind: apportionv1.EditKind_EDIT_KIND_PARENT, value: textual},
	{object: aQueue, setting: "capability.", kind: apportionv1.EditKind_EDIT_KIND_CAPABILITY, value: amount},
	{object: aQueue, setting: "guarantee.", kind: apportionv1.EditKind_EDIT_KIND_GUARANTEE, value: amount},
	{object: aQueue, setting: "deserved.", kind: apportionv1.EditKind_EDIT_KIND_DESERVED, value: amount},
	{object: aQueue, setting: "usage.", kind: apportionv1.EditKind_EDIT_KIND_USAGE, value: seconds, about: "quantum-seconds"},
	{object: aQueue, setting: "budget.", kind: apportionv1.EditKind_EDIT_KIND_BUDGET, value: seconds, about: "quantum-seconds"},
	{object: aQueue, setting: "spent.", kind: apportionv1.EditKind_EDIT_KIND_SPENT, value: seconds, about: "of the budget"},
	{object: aQueue, setting: "budgetKind", value: words, words: []word{
		{"hard", apportionv1.EditKind_EDIT_KIND_BUDGET_KIND, "hard"},
		{"soft", apportionv1.EditKind_EDIT_KIND_BUDGET_KIND, "soft"},
		{None, apportionv1.EditKind_EDIT_KIND_BUDGET_KIND, ""},
	}},
	{object: aClusterQueue, setting: "weight", kind: apportionv1.EditKind_EDIT_KIND_WEIGHT, value: number},
	{object: aClusterQueue, setting: aCohort, kind: apportionv1.EditKind_EDIT_KIND_PARENT, value: textual},
	{object: aClusterQueue, setting: "stopPolicy", value: words, words: []word{
		{"None", apportionv1.EditKind_EDIT_KIND_OPEN, ""},
		{"Hold", apportionv1.EditKind_EDIT_KIND_CLOSE, ""},
		{"HoldAndDrain", apportionv1.EditKind_EDIT_KIND_CLOSE, ""},
	}},
	{object: aClusterQueue, setting: "nominal.", kind: apportionv1.EditKind_EDIT_KIND_NOMINAL, value: quota, kept: true},
	{object: aClusterQueue, setting: "borrowingLimit.", kind: apportionv1.EditKind_EDIT_KIND_BORROWING_LIMIT, value: quota},
	{object: aClusterQueue, setting: "lendingLimit.", kind: apportionv1.EditKind_EDIT_KIND_LENDING_LIMIT, value: quota},
	{object: aCohort, setting: "nominal.", kind: apportionv1.EditKind_EDIT_KIND_NOMINAL, value: quota, kept: true},
	{object: aCohort, setting: "borrowingLimit.", kind: apportionv1.EditKind_EDIT_KIND_BORROWING_LIMIT, value: quota},
	{object: aCohort, setting: "lendingLimit.", kind: apportionv1.EditKind_EDIT_KIND_LENDING_LIMIT, value: quota},
	{object: aFlavor, setting: "created", value: words, words: []word{{yes, apportionv1.EditKind_EDIT_KIND_FLAVOR, ""}}},
	{object: aJob, setting: "priority", kind: apportionv1.EditKind_EDIT_KIND_PRIORITY, value: number},
	{object: aJob, setting: "queue", kind: apportionv1.EditKind_EDIT_KIND_QUEUE, value: toQueue},
	{object: aJob, setting: "minAvailable", kind: apportionv1.EditKind_EDIT_KIND_MINIMUM, value: number, role: true},
	{object: aJob, setting: "minResources.", kind: apportionv1.EditKind_EDIT_KIND_MIN_RESOURCES, value: amount},
	{
		object: aJob, setting: "request.", kind: apportionv1.EditKind_EDIT_KIND_REQUEST, value: amount, kept: true,
		role: true, ofRole: true, about: "of each waiting task at most",
	},
	{
		object: aJob, setting: "otherNode", kind: apportionv1.EditKind_EDIT_KIND_ALLOWED_NODE, value: toNode,
		about: "that its waiting tasks may use besides those that taints, selectors and affinities leave",
	},
	{object: aJob, setting: "ended", value: words, words: []word{{yes, apportionv1.EditKind_EDIT_KIND_END, ""}}},
	{object: aNode, setting: "allocatable.", kind: apportionv1.EditKind_EDIT_KIND_ALLOCATABLE, value: amount},
	{
		object: aNode, setting: "maintenance", kind: apportionv1.EditKind_EDIT_KIND_MAINTENANCE, value: textual,
		about: "2006-01-02T15:04:05Z/2006-01-02T17:04:05Z, or several with commas, in place of what is planned",
	},
	{object: aNode, setting: "copies", kind: apportionv1.EditKind_EDIT_KIND_NODES_LIKE, value: number, about: "that are added"},
	{object: aNode, setting: "cordoned", value: words, words: []word{
		{yes, apportionv1.EditKind_EDIT_KIND_CORDON, ""}, {"false", apportionv1.EditKind_EDIT_KIND_UNCORDON, ""},
	}},
	{object: aNode, setting: "removed", value: words, words: []word{{yes, apportionv1.EditKind_EDIT_KIND_REMOVE, ""}}},
}

// named are the objects with their names in the help, in its order.
var named = []struct{ object, name string }{
	{aQueue, "queue/NAME"},
	{aJob, "job/NAMESPACE/NAME"},
	{aNode, "node/NAME"},
	{aClusterQueue, "clusterqueue/NAME"},
	{aCohort, "cohort/NAME"},
	{aFlavor, "flavor/NAME"},
}

func objects() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, n := range named {
			if !yield(n.object) {
				return
			}
		}
	}
}

// of returns the settings of an object.
func of(object string) []*form {
	var list []*form
	for i := range forms {
		if forms[i].object == object {
			list = append(list, &forms[i])
		}
	}
	return list
}

// resourced reports whether a resource follows the setting.
func (f *form) resourced() bool { return strings.HasSuffix(f.setting, ".") }

// bare is the setting without the resource that follows.
func (f *form) bare() string { return strings.TrimSuffix(f.setting, ".") }

// written returns the ways to write the setting for roles and resources.
func (f *form) written(roles, resources []string) []string {
	var list []string
	if !f.ofRole {
		list = []string{f.setting}
	}
	if f.role {
		for _, role := range roles {
			list = append(list, "role."+role+"."+f.setting)
		}
	}
	if !f.resourced() {
		return list
	}
	var all []string
	for _, begin := range list {
		for _, resource := range resources {
			all = append(all, begin+resource)
		}
	}
	return all
}

// Settings returns the settings of each object as they are written, by the form of its name: NAME.SETTING=VALUE.
func Settings() map[string][]string {
	all := map[string][]string{}
	for _, n := range named {
		for _, f := range of(n.object) {
			all[n.name] = append(all[n.name], f.written([]string{"ROLE"}, []string{"RESOURCE"})...)
		}
		slices.Sort(all[n.name])
	}
	return all
}

// Help lists the settings of all objects for a terminal.
func Help() string {
	const width = 104
	var lines strings.Builder
	for _, n := range named {
		line := "  " + n.name
		for i, f := range of(n.object) {
			for _, one := range f.written([]string{"ROLE"}, []string{"RESOURCE"}) {
				part := "." + one
				if about := cmp.Or(f.about, strings.Join(f.values(), ", ")); about != "" {
					part += " (" + about + ")"
				}
				if i > 0 {
					line += ","
					part = " " + part
				}
				if len(line)+len(part) > width {
					lines.WriteString(line + "\n")
					line = "   "
				}
				line += part
			}
		}
		lines.WriteString(line + "\n")
	}
	return lines.String()
}

// values are the words of the form.
func (f *form) values() []string {
	var list []string
	for _, w := range f.words {
		list = append(list, w.word)
	}
	return list
}

// isSetting reports whether a word stands for a setting, so that a name that contains it is written in quotation marks.
var isSetting = func() func(string) bool {
	known := map[string]bool{"role": true}
	for i := range forms {
		known[forms[i].bare()] = true
	}
	return func(word string) bool { return known[word] }
}()

// quoted returns a name as it is read: in quotation marks if it could be taken for another name with a setting behind it.
func quoted(name string) string {
	if strings.HasPrefix(name, `"`) || strings.ContainsAny(name, "=@") || slices.ContainsFunc(strings.Split(name, "."), isSetting) {
		return strconv.Quote(name)
	}
	return name
}

// cutQuoted returns the name in quotation marks at the beginning of a text, and what is behind it.
func cutQuoted(text string) (name, after string, quoted bool) {
	prefix, err := strconv.QuotedPrefix(text)
	if err != nil || prefix[0] != '"' {
		return "", text, false
	}
	name, err = strconv.Unquote(prefix)
	return name, text[len(prefix):], err == nil
}

// unquoted returns a name that may be in quotation marks.
func unquoted(name string) string {
	if inside, after, quoted := cutQuoted(name); quoted && after == "" {
		return inside
	}
	return name
}

func list(names iter.Seq[string]) string { return strings.Join(slices.Sorted(names), ", ") }

// described lists the settings of an object.
func described(object string) string {
	known := map[string]bool{}
	for _, f := range of(object) {
		for _, one := range f.written([]string{"ROLE"}, []string{"RESOURCE"}) {
			known[one] = true
		}
	}
	return list(maps.Keys(known))
}
