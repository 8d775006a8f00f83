package reference

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/apportion/apportion/internal/test/recording"
)

// words are the keys of the recorded form that are no names of something in the cluster. Dimensions are left out: all are alike.
var words = func() map[string]bool {
	known := map[string]bool{}
	for word := range strings.FieldsSeq(`total tasks jobInfo nodeInfo queues drfJobs hdrfTree hierarchyReady verdicts queueOrder jobOrder
		reclaims preempts victimQueueOrder simulate nodes enqueue queuesAfterEnqueue events afterEvents openSession
		bestEffort gated initResreq job node preemptable priority resreq role status allocated elastic minAvailable minResources queue
		readyTaskNum totalRequest validTaskNum allocatable idle used proportion capacity ancestors capability children deserved guarantee
		inqueue realCapability request share weight dominant name saturated overused preemptive preemptiveAllPendingOfJob jobs pipelined ready
		starving valid pass reason pairs cmp l r less sorted tieGroups intransitive victims byPlugin vote victimPopOrder verdict drfJob
		binpack.score nodegroup.score nodegroup.predicate cdp conformance drf gang v unlimited`) {
		known[word] = true
	}
	return known
}()

// kindBelow is a path without names and positions, one step further.
func kindBelow(kind, key string) string {
	if !words[key] || strings.HasSuffix(kind, "/v") {
		key = "*"
	}
	if key == "children" {
		kind = strings.TrimSuffix(kind, "/children/*")
	}
	return kind + "/" + key
}

// leaf is one recorded answer.
type leaf struct {
	kind, pointer string
	path          []string
	value         any
	// record puts another value in its place.
	record func(v any)
}

// leavesHeld visits the recorded answers that the rules hold us to.
func (j *judge) leavesHeld(at leaf, visit func(leaf)) {
	if len(at.path) > 0 && j.unheld(at.pointer, at.path, at.value) != "" {
		return
	}
	below := func(key string, value any, record func(any)) {
		j.leavesHeld(leaf{kindBelow(at.kind, key), at.pointer + "/" + escape(key), append(at.path, key), value, record}, visit)
	}
	switch value := at.value.(type) {
	case object:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			below(key, value[key], func(v any) { value[key] = v })
		}
	case []any:
		for i := range value {
			below(strconv.Itoa(i), value[i], func(v any) { value[i] = v })
		}
	default:
		visit(at)
	}
}

// another returns a value that we would have to differ from if the recorded one is right.
func (j *judge) another(l leaf) any {
	switch last := l.path[len(l.path)-1]; value := l.value.(type) {
	case bool:
		return !value
	case float64:
		switch {
		case last == "cmp" && value > 0:
			return -1.0
		case value == 0:
			return 2e-9
		}
		return value * (1 + 2e-9)
	case string:
		if l.path[0] != "tasks" || last != "node" {
			return "something else"
		}
		for _, name := range slices.Sorted(maps.Keys(j.nodes)) {
			if name != value {
				return name
			}
		}
		return value
	}
	return []any{"something"}
}

// subjectOf is a case with its subject.
type subjectOf struct {
	*Case
	*subject
	judge *judge
}

// eachCase reads all recorded cases but those of the trees that are refused here alone: their answers are not the recorded ones.
func eachCase(t *testing.T, visit func(c *subjectOf)) {
	t.Helper()
	for line, err := range recording.Lines(recordings) {
		require.NoError(t, err)
		c, err := ReadCase(line)
		require.NoError(t, err)
		s, err := c.subject()
		require.NoError(t, err)
		if j := c.judge(s); j.tree != ParentCycle {
			visit(&subjectOf{c, s, j})
		}
	}
}

// TestAnyOtherAnswerWouldBeReported replaces one recorded answer of each kind by another value.
func TestAnyOtherAnswerWouldBeReported(t *testing.T) {
	if testing.Short() {
		t.Skip("reads all recorded cases")
	}
	seen := map[string]bool{}
	eachCase(t, func(c *subjectOf) {
		var form any
		c.judge.leavesHeld(leaf{value: c.Expect}, func(l leaf) {
			kind := strings.TrimPrefix(l.kind, "/")
			if l.value == nil {
				kind += " null"
			}
			if seen[kind] {
				return
			}
			other := c.judge.another(l)
			if text, ok := other.(string); ok && text == l.value {
				return
			}
			seen[kind] = true
			if form == nil {
				var err error
				form, err = c.evaluate(t.Context(), c.subject, InProcess())
				require.NoError(t, err)
			}
			l.record(other)
			compared := comparison{judge: c.judge, unheld: map[Rule]int{}}
			compared.tree("", nil, c.Expect, []any{form})
			l.record(l.value)
			reported := pointers(compared.differ)
			if resource, _, ok := strings.Cut(l.pointer, "/unlimited/"); ok {
				// What is called unlimited in place of a dimension is one answer, what the dimension is instead another.
				require.Len(t, reported, 2, l.pointer)
				reported = []string{commonPrefix(reported[0], reported[1])}
				l.pointer = resource
			}
			require.Len(t, reported, 1, "%s %s %s", c.Profile, c.Label(), l.pointer)
			require.True(t, strings.HasPrefix(reported[0], l.pointer), "%s for %s", reported[0], l.pointer)
		})
	})
	require.Greater(t, len(seen), 200, "kinds of answers")
	for _, kind := range []string{
		"total/v/*", "tasks/*/status", "jobInfo/*/elastic/v/*", "nodeInfo/*/idle/v/*", "queues/proportion/*/weight",
		"queues/capacity/*/capability/unlimited/*", "queues/capacity/*/ancestors/*", "queues/capacity/*/children/*", "hierarchyReady",
		"drfJobs/*/dominant", "hdrfTree/children/*/saturated", "verdicts/overused/*", "verdicts/allocatable/*", "verdicts/preemptive/*",
		"verdicts/preemptiveAllPendingOfJob/*", "verdicts/jobs/*/valid/reason", "verdicts/jobs/*/pipelined", "queueOrder/pairs/*/cmp",
		"queueOrder/pairs/*/less", "queueOrder/intransitive", "jobOrder/sorted/*", "jobOrder/tieGroups/*/*", "reclaims/*/victims null",
		"reclaims/*/victims/*", "reclaims/*/byPlugin/capacity/vote", "reclaims/*/byPlugin/proportion/victims/*", "reclaims/*/victimPopOrder/*",
		"reclaims/*", "preempts/*/victims/*", "preempts/*/byPlugin/drf/victims null", "preempts/*/victimPopOrder/*",
		"victimQueueOrder/*/sorted/*", "victimQueueOrder/*/intransitive", "simulate/*", "simulate/*/*", "nodes/*/*/binpack.score",
		"nodes/*/*/nodegroup.score", "nodes/*/*/nodegroup.predicate", "enqueue/*/verdict", "queuesAfterEnqueue/capacity/*/inqueue/v/*",
		"events/*/queues/proportion/*/share", "events/*/queues/capacity/*/allocated/v/*", "events/*/drfJob/share", "events/*",
		"afterEvents/queues/capacity/*/share", "afterEvents/verdicts/jobs/*/starving", "afterEvents/queueOrder/sorted/*",
		"afterEvents/jobOrder/pairs/*/less", "afterEvents/drfJobs/*/share", "afterEvents/hdrfTree/share", "openSession",
	} {
		require.True(t, seen[kind], kind)
	}
}

func commonPrefix(a, b string) string {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return a[:n]
}

// notRecorded are the fields of answers that are not in the recording: Volcano does not report them, or reports them elsewhere as well.
var notRecorded = strings.Fields(`
	Answer.changed EventAnswer.first_task SharesAnswer.standings QueueStanding.name QueueStanding.rank QueueStanding.causes PluginShares.hierarchy_causes
	PluginShares.proportion PluginShares.capacity QueueShare.name QueueShare.dominant QueueShare.overused JobShare.uid
	TreeNode.job
	JobStanding.uid JobStanding.ready_tasks JobStanding.valid_tasks JobStanding.pipelined_tasks JobStanding.pending_best_effort_tasks
	JobStanding.total_tasks JobStanding.min_available
	EnqueueVerdict.job EnqueueVerdict.uid
	TaskVerdict.checks
	VictimsAnswer.decided VictimsAnswer.tier VictimsAnswer.protections VictimsAnswer.checks VictimsAnswer.evictions VictimsAnswer.by_chance
	Victim.uid PluginVictims.tier
	TaskNodes.fits TaskNodes.scores
	InspectAnswer.queue_count InspectAnswer.job_count InspectAnswer.task_count InspectAnswer.node_count InspectAnswer.policy
	InspectedNode.name InspectedNode.group InspectedNode.unschedulable NodeUnschedulable.cause NodeUnschedulable.detail
	InspectedJob.uid InspectedJob.phase InspectedJob.name InspectedJob.namespace InspectedTask.uid InspectedTask.name`)

// isRecorded reports whether the recording has a place for a field. Of reasons it has the kind alone.
func isRecorded(field string) bool {
	return !slices.Contains(notRecorded, field) && (!strings.HasPrefix(field, "Cause.") || field == "Cause.code")
}

// tries is the number of changes to a field in one case after which the field counts as irrelevant there, and the number of cases of each
// profile in which this is tried.
const tries = 4

// TestEveryFieldOfAnAnswerIsCompared changes a value of each field of our answers.
func TestEveryFieldOfAnAnswerIsCompared(t *testing.T) {
	if testing.Short() {
		t.Skip("reads all recorded cases")
	}
	noticed, ofGroup := map[string]bool{}, map[string]int{}
	eachCase(t, func(c *subjectOf) {
		if _, ok := c.Expect[opening]; ok || c.judge.tree != "" {
			return
		}
		if ofGroup[c.Group()]++; c.Group() != probes && ofGroup[c.Group()] > tries {
			return
		}
		tried := map[string]int{}
		p := c.plan(&c.Script)
		answers, basis, err := InProcess().Evaluate(t.Context(), c.input, p.steps)
		require.NoError(t, err)
		changed := func() bool {
			form, err := p.form(answers, basis)
			require.NoError(t, err)
			compared := comparison{judge: c.judge, unheld: map[Rule]int{}}
			compared.tree("", nil, c.Expect, []any{form})
			return len(compared.differ) > 0
		}
		require.False(t, changed(), "%s %s", c.Profile, c.Label())
		for _, answer := range answers {
			eachField(answer.ProtoReflect(), func(m protoreflect.Message, field protoreflect.FieldDescriptor) {
				name := nameOf(field)
				_, before := noticed[name]
				if noticed[name] || tried[name] >= tries || before && !isRecorded(name) {
					return
				}
				undo := change(m, field)
				if undo == nil {
					return
				}
				defer undo()
				noticed[name] = changed()
				tried[name]++
			})
		}
	})
	var silent, loud []string
	for name, matters := range noticed {
		switch {
		case isRecorded(name) && !matters:
			silent = append(silent, name)
		case matters && !isRecorded(name):
			loud = append(loud, name)
		}
	}
	require.Empty(t, silent, "these fields are not compared: compare them, or name them in notRecorded")
	require.Empty(t, loud, "these fields are looked at after all: take them out of notRecorded")
	require.Greater(t, len(noticed), 80, "fields")
}

// eachField visits all fields of a message and of the messages in it, those of other packages left out.
func eachField(m protoreflect.Message, visit func(protoreflect.Message, protoreflect.FieldDescriptor)) {
	if m.Descriptor().ParentFile().Package() != "apportion.v1" {
		return
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		if field.ContainingOneof() == nil || field.HasOptionalKeyword() {
			visit(m, field)
		}
		if field.Message() == nil || !m.Has(field) || !isRecorded(nameOf(field)) {
			continue
		}
		if !field.IsList() {
			eachField(m.Get(field).Message(), visit)
			continue
		}
		for k := range m.Get(field).List().Len() {
			eachField(m.Get(field).List().Get(k).Message(), visit)
		}
	}
}

// nameOf is the name of a field within its message.
func nameOf(field protoreflect.FieldDescriptor) string {
	return strings.TrimPrefix(string(field.FullName()), "apportion.v1.")
}

// change puts another value into a field, and returns what puts the old one back; nil if there is nothing to change.
func change(m protoreflect.Message, field protoreflect.FieldDescriptor) (undo func()) {
	old := m.Get(field)
	switch {
	case field.IsList():
		if old.List().Len() == 0 {
			return nil
		}
		// A list is a view of the field: a value that must be restored has to be copied.
		whole, shorter := m.NewField(field), m.NewField(field)
		for k := range old.List().Len() {
			whole.List().Append(old.List().Get(k))
			if k > 0 {
				shorter.List().Append(old.List().Get(k))
			}
		}
		old = whole
		m.Set(field, shorter)
	case field.Message() != nil:
		if !m.Has(field) {
			return nil
		}
		m.Clear(field)
	default:
		if field.HasPresence() && !m.Has(field) {
			return nil
		}
		m.Set(field, otherScalar(field.Kind(), old))
	}
	return func() { m.Set(field, old) }
}

func otherScalar(kind protoreflect.Kind, old protoreflect.Value) protoreflect.Value {
	switch kind {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(!old.Bool())
	case protoreflect.EnumKind:
		if old.Enum() == 1 {
			return protoreflect.ValueOfEnum(3)
		}
		return protoreflect.ValueOfEnum(1)
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(uint32(old.Uint()) + 1)
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(int32(-old.Int()) + 1)
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(old.Int() + 1)
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(old.String() + "x")
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(old.Float()*1.0001 + 1)
	default:
		panic(kind)
	}
}
