package delegation_test

import (
	"cmp"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/adapter/extender/delegation"
	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/adapter/volcano/schedulerconf"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/catalogue"
)

// Volcano's walks over plugins that vote in any way, as Session of pkg/scheduler/framework/session_plugins.go has them in v1.15.1: what a
// configuration decides and what its delegating form decides, with an extender that decides as the original's plugins would.

// registered are the plugins that register a function in Volcano v1.15.1; magic is a custom plugin, which registers all.
var registered = map[apportionv1.Decision][]string{
	apportionv1.Decision_DECISION_OVERUSED:     {"proportion", "extender", "magic"},
	apportionv1.Decision_DECISION_JOB_ENQUEUED: {"proportion", "capacity", "overcommit", "resourcequota", "sla", "extender", "magic"},
	apportionv1.Decision_DECISION_RECLAIMABLE:  {"proportion", "capacity", "cdp", "conformance", "gang", "drf/hierarchical", "pdb", "extender", "magic"},
	apportionv1.Decision_DECISION_PREEMPTABLE: {
		"cdp", "conformance", "drf", "drf/hierarchical", "gang", "pdb", "priority", "tdm", "extender", "magic",
	},
}

var verbs = map[string]apportionv1.Decision{
	"queueOverused": apportionv1.Decision_DECISION_OVERUSED, "jobEnqueueable": apportionv1.Decision_DECISION_JOB_ENQUEUED,
	"reclaimable": apportionv1.Decision_DECISION_RECLAIMABLE, "preemptable": apportionv1.Decision_DECISION_PREEMPTABLE,
}

// walk is the plugins that are asked about a decision, tier by tier.
type walk [][]string

// walkOf returns the walk of a policy; without those that Apportion does not decide for, if only is set.
func walkOf(p *apportionv1.Policy, d apportionv1.Decision, only bool) walk {
	var w walk
	for _, tier := range p.GetTiers() {
		var names []string
		for _, plugin := range tier.GetPlugins() {
			name, ours := plugin.GetUndecided().GetName(), false
			if row, ok := catalogue.Of(plugin); ok && name == "" {
				name, ours = row.Name, !slices.Contains([]string{"sla", "resourcequota", "pdb", "tdm"}, row.Name)
			}
			if plugin.GetHierarchicalDrf() != nil {
				name = "drf/hierarchical"
			}
			if slices.Contains(registered[d], name) && !slices.Contains(plugin.GetDisabledDecisions(), d) && (ours || !only) {
				names = append(names, name)
			}
		}
		w = append(w, names)
	}
	return w
}

// ballot is a plugin's answer about victims.
type ballot struct {
	status  int
	victims []int
}

func (w walk) victims(ask func(string) ballot) (victims []int, voted bool) {
	for _, tier := range w {
		for _, name := range tier {
			b := ask(name)
			if b.status == 0 {
				continue
			}
			voted = true
			if len(b.victims) == 0 {
				victims = nil
				break
			}
			if victims == nil {
				victims = b.victims
				continue
			}
			var both []int
			for _, v := range victims {
				if slices.Contains(b.victims, v) {
					both = append(both, v)
				}
			}
			victims = both
		}
		if victims != nil {
			return victims, voted
		}
	}
	return nil, voted
}

// admits is Session.JobEnqueueable, with the vote that an extender gives for the walk: 0 if no plugin votes.
func (w walk) admits(ask func(string) int) (admitted bool, vote int) {
	for _, tier := range w {
		yes := false
		for _, name := range tier {
			switch v := ask(name); {
			case v < 0:
				return false, -1
			case v > 0:
				yes = true
			}
		}
		if yes {
			return true, 1
		}
	}
	return true, 0
}

// books are those of plugins that count what they have let in: overcommit when a job is admitted, the others at their own yes.
type books map[string]int

// room is the amount that each of them admits.
const room = 5

func (b books) vote(name string, size int, others func(string) int) int {
	switch name {
	case "proportion", "capacity", "overcommit":
		if b[name]+size > room {
			return -1
		}
		if name != "overcommit" {
			b[name] += size
		}
		return 1
	}
	vote := others(name)
	if vote > 0 && name != "sla" {
		if b[name]+size > room {
			return -1
		}
		b[name] += size
	}
	return vote
}

// admitted is Session.JobEnqueued without the extender, which Volcano 1.15 does not tell.
func (b books) admitted(w walk, size int) {
	for _, tier := range w {
		if slices.Contains(tier, "overcommit") {
			b["overcommit"] += size
		}
	}
}

// bridge is Apportion behind the extender. It keeps accounts of its own: a job is booked after the bridge's permit, or when Volcano 1.16
// reports its admission, and only once.
type bridge struct {
	walk    walk
	books   books
	entered map[int]bool
}

func newBridge(w walk) *bridge { return &bridge{walk: w, books: books{}, entered: map[int]bool{}} }

func (b *bridge) vote(job, size int) int {
	_, vote := b.walk.admits(func(name string) int { return b.books.vote(name, size, nil) })
	if vote > 0 {
		b.enqueued(job, size)
	}
	return vote
}

func (b *bridge) enqueued(job, size int) {
	if !b.entered[job] {
		b.entered[job] = true
		b.books.admitted(b.walk, size)
	}
}

// forms are the walks of a configuration and of its delegating form.
type forms struct {
	original, delegating, apportion walk
	// reordered says that plugins which Apportion does not implement change the order in which capacity goes through candidates.
	reordered bool
}

// view is a plugin's name, and for capacity the order that it sees, if it is not Volcano's.
func (f *forms) view(name string) string {
	if name == "capacity" && f.reordered {
		return "capacity in another order"
	}
	return name
}

// reorders reports whether plugins that Apportion does not implement take part in the order of jobs or tasks in Volcano v1.15.1.
func reorders(p *apportionv1.Policy) bool {
	for _, tier := range p.GetTiers() {
		for _, plugin := range tier.GetPlugins() {
			off := func(d apportionv1.Decision) bool { return slices.Contains(plugin.GetDisabledDecisions(), d) }
			name := plugin.GetUndecided().GetName()
			switch row, _ := catalogue.Of(plugin); cmp.Or(name, row.Name) {
			case "magic":
				return true
			case "sla", "tdm":
				if !off(apportionv1.Decision_DECISION_JOB_ORDER) {
					return true
				}
			case "task-topology":
				if !off(apportionv1.Decision_DECISION_TASK_ORDER) {
					return true
				}
			}
		}
	}
	return false
}

func formsOf(t require.TestingT, source objects.Source, d apportionv1.Decision) (f forms, delegated bool) {
	converted, _, err := delegation.New(source, options)
	require.NoError(t, err)
	for _, verb := range converted.Delegated {
		delegated = delegated || verbs[verb] == d
	}
	read := func(data []byte) *apportionv1.Policy {
		p, _, err := schedulerconf.ReadAll(objects.Source{Name: "form", Data: data})
		require.NoError(t, err)
		return p
	}
	original := read(source.Data)
	f.original, f.apportion, f.reordered = walkOf(original, d, false), walkOf(original, d, true), reorders(original)
	f.delegating = walkOf(read(converted.Delegating), d, false)
	if !delegated {
		for i := range f.delegating {
			f.delegating[i] = slices.DeleteFunc(f.delegating[i], func(name string) bool { return name == "extender" })
		}
	}
	return f, delegated
}

// TestTheWalksAreVolcanos compares the walks with what Volcano v1.15.1's own session made of an extender's answers: the extender alone in the
// first tier, and behind it conformance, which permits both tasks that were offered.
func TestTheWalksAreVolcanos(t *testing.T) {
	data, err := os.ReadFile("testdata/sessions.json")
	require.NoError(t, err)
	var recorded []struct {
		Function string          `json:"function"`
		Plugin   json.RawMessage `json:"pluginReturns"`
		Session  json.RawMessage `json:"sessionReturns"`
	}
	require.NoError(t, json.Unmarshal(data, &recorded))
	tiers := walk{{"extender"}, {"conformance"}}
	for _, r := range recorded {
		var want, got any
		require.NoError(t, json.Unmarshal(r.Session, &want))
		switch r.Function {
		case "queueOverused":
			got = string(r.Plugin) == "true"
		case "jobEnqueueable":
			var vote int
			require.NoError(t, json.Unmarshal(r.Plugin, &vote))
			got, _ = tiers[:1].admits(func(string) int { return vote })
		default:
			var named struct {
				Vote    int      `json:"vote"`
				Victims []string `json:"victims"`
			}
			require.NoError(t, json.Unmarshal(r.Plugin, &named))
			tasks := []string{"run-0", "run-1", "no-such-task"}
			b := ballot{status: named.Vote}
			for _, name := range named.Victims {
				b.victims = append(b.victims, slices.Index(tasks, name))
			}
			victims, _ := tiers.victims(func(name string) ballot {
				if name == "conformance" {
					return ballot{1, []int{0, 1}}
				}
				return b
			})
			var names []any
			for _, v := range victims {
				names = append(names, tasks[v])
			}
			got = names
		}
		require.Equal(t, want, got, "%s: %s", r.Function, r.Plugin)
	}
}

func requireVictimsAlike(t *rapid.T, f forms) {
	votes := map[string]ballot{}
	ask := func(name string) ballot {
		if _, ok := votes[name]; !ok {
			votes[name] = ballot{
				rapid.IntRange(-1, 1).Draw(t, name), rapid.SliceOfNDistinct(rapid.IntRange(0, 4), 0, 4, rapid.ID[int]).Draw(t, name+" names"),
			}
		}
		return votes[name]
	}
	want, _ := f.original.victims(ask)
	got, _ := f.delegating.victims(func(name string) ballot {
		if name != "extender" {
			return ask(name)
		}
		victims, voted := f.apportion.victims(func(name string) ballot { return ask(f.view(name)) })
		switch {
		case len(victims) > 0:
			return ballot{1, victims}
		case voted && rapid.Bool().Draw(t, "nobody"):
			return ballot{-1, nil}
		}
		return ballot{}
	})
	require.Equal(t, want, got)
}

func requireAdmissionAlike(t *rapid.T, f forms) {
	native, residual, apportion := books{}, books{}, newBridge(f.apportion)
	tells := rapid.Bool().Draw(t, "Volcano tells who is admitted")
	for job := range rapid.IntRange(1, 8).Draw(t, "jobs") {
		size := rapid.IntRange(0, 3).Draw(t, "size")
		votes := map[string]int{}
		others := func(name string) int {
			if _, ok := votes[name]; !ok {
				votes[name] = rapid.IntRange(-1, 1).Draw(t, name)
			}
			return votes[name]
		}
		want, _ := f.original.admits(func(name string) int { return native.vote(name, size, others) })
		if want {
			native.admitted(f.original, size)
		}
		got, _ := f.delegating.admits(func(name string) int {
			if name != "extender" {
				return residual.vote(name, size, others)
			}
			return apportion.vote(job, size)
		})
		if got {
			residual.admitted(f.delegating, size)
			if tells {
				apportion.enqueued(job, size)
			}
		}
		require.Equal(t, want, got)
	}
}

func requireOverusedAlike(t *rapid.T, f forms) {
	votes := map[string]bool{}
	ask := func(name string) bool {
		if _, ok := votes[name]; !ok {
			votes[name] = rapid.Bool().Draw(t, name)
		}
		return votes[name]
	}
	anyOf := func(w walk, ask func(string) bool) bool { return slices.ContainsFunc(slices.Concat(w...), ask) }
	require.Equal(t, anyOf(f.original, ask), anyOf(f.delegating, func(name string) bool {
		return name == "extender" && anyOf(f.apportion, ask) || name != "extender" && ask(name)
	}))
}

func requireAlike(t *rapid.T, source objects.Source) {
	for _, verb := range slices.Sorted(maps.Keys(verbs)) {
		d := verbs[verb]
		f, delegated := formsOf(t, source, d)
		if !delegated {
			require.Equal(t, slices.Concat(f.original...), slices.Concat(f.delegating...), "%s stays as it is", verb)
			continue
		}
		switch verb {
		case "queueOverused":
			requireOverusedAlike(t, f)
		case "jobEnqueueable":
			requireAdmissionAlike(t, f)
		default:
			requireVictimsAlike(t, f)
		}
	}
}

func TestTheDelegatingFormDecidesAsTheOriginal(t *testing.T) {
	for name, source := range configurations(t) {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { requireAlike(t, source) })
		})
	}
}

// someConfiguration draws tiers of any plugins, each once, with any switches.
func someConfiguration(t *rapid.T) string {
	names := []string{
		"priority", "gang", "conformance", "cdp", "drf", "proportion", "capacity", "overcommit", "pdb", "tdm", "sla", "resourcequota", "magic", "binpack",
		"predicates", "task-topology",
	}
	chosen := rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, 8, rapid.ID[string]).Draw(t, "plugins")
	flags := []string{"enablePreemptable", "enableReclaimable", "enableJobEnqueued", "enabledOverused", "enableJobOrder", "enableTaskOrder"}
	conf := "tiers:\n- plugins:\n"
	for _, name := range chosen {
		if rapid.IntRange(0, 3).Draw(t, "tier") == 0 {
			conf += "- plugins:\n"
		}
		conf += "  - name: " + name + "\n"
		for _, flag := range flags {
			if rapid.IntRange(0, 5).Draw(t, flag) == 0 {
				conf += "    " + flag + ": false\n"
			}
		}
	}
	return conf + "actions: allocate\n"
}

func TestAnyDelegatingFormDecidesAsItsOriginal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		source := objects.Source{Name: "v.conf", Data: []byte(someConfiguration(t))}
		if _, _, err := delegation.New(source, options); err != nil {
			require.Regexp(t, "no plugin takes part|no decision can be delegated", err)
			return
		}
		requireAlike(t, source)
	})
}

// TestWhatIsKeptWouldDiffer delegates what is kept, wherever the extender may stand, and requires that votes exist with another result.
func TestWhatIsKeptWouldDiffer(t *testing.T) {
	for name, verb := range map[string]string{
		"pdb": "reclaimable", "custom": "reclaimable", "capacity-and-sla": "reclaimable", "sla-and-overcommit": "jobEnqueueable", "quota-between": "jobEnqueueable",
	} {
		t.Run(name, func(t *testing.T) {
			original, _, err := schedulerconf.ReadAll(configurations(t)[name])
			require.NoError(t, err)
			full, ours := walkOf(original, verbs[verb], false), walkOf(original, verbs[verb], true)
			for tier := range full {
				others := slices.DeleteFunc(slices.Clone(full[tier]), func(n string) bool { return slices.Contains(ours[tier], n) })
				for place := range len(others) + 1 {
					f := forms{original: full, apportion: ours, reordered: reorders(original)}
					for i := range full {
						rest := slices.DeleteFunc(slices.Clone(full[i]), func(n string) bool { return slices.Contains(ours[i], n) })
						if i == tier {
							rest = slices.Insert(rest, place, "extender")
						}
						f.delegating = append(f.delegating, rest)
					}
					require.True(t, differs(f, verb), "tier %d, place %d", tier, place)
				}
			}
		})
	}
}

// differs looks for votes by which two forms decide differently.
func differs(f forms, verb string) bool {
	state := uint64(1)
	draw := func(n int) int {
		state = state*6364136223846793005 + 1442695040888963407
		return int(state >> 33 % uint64(n))
	}
	for range 20_000 {
		if verb == "jobEnqueueable" {
			if admissionDiffers(f, draw) {
				return true
			}
			continue
		}
		votes := map[string]ballot{}
		for _, name := range append(slices.Sorted(maps.Keys(toSet(f.original))), "capacity in another order") {
			b := ballot{status: draw(3) - 1}
			for v := range 4 {
				if draw(2) == 0 {
					b.victims = append(b.victims, v)
				}
			}
			votes[name] = b
		}
		ask := func(name string) ballot { return votes[name] }
		want, _ := f.original.victims(ask)
		got, _ := f.delegating.victims(func(name string) ballot {
			if name != "extender" {
				return votes[name]
			}
			victims, voted := f.apportion.victims(func(name string) ballot { return votes[f.view(name)] })
			if len(victims) > 0 {
				return ballot{1, victims}
			}
			return ballot{status: -cmp.Compare(toInt(voted), 0)}
		})
		if !slices.Equal(want, got) {
			return true
		}
	}
	return false
}

func toInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func toSet(w walk) map[string]bool {
	all := map[string]bool{}
	for _, name := range slices.Concat(w...) {
		all[name] = true
	}
	return all
}

func admissionDiffers(f forms, draw func(int) int) bool {
	native, residual, apportion := books{}, books{}, newBridge(f.apportion)
	for job := range 6 {
		size, votes := draw(4), map[string]int{}
		for _, name := range slices.Sorted(maps.Keys(toSet(f.original))) {
			votes[name] = draw(3) - 1
		}
		others := func(name string) int { return votes[name] }
		want, _ := f.original.admits(func(name string) int { return native.vote(name, size, others) })
		if want {
			native.admitted(f.original, size)
		}
		got, _ := f.delegating.admits(func(name string) int {
			if name != "extender" {
				return residual.vote(name, size, others)
			}
			return apportion.vote(job, size)
		})
		if want != got {
			return true
		}
	}
	return false
}
