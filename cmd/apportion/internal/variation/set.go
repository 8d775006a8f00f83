package variation

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/spelling"
)

// setting is one --set: KIND/NAME.FIELD=VALUE, where a resource may follow the field.
type setting struct {
	edit                   *edit
	name, resource, value  string
	before, after, subject string
}

// fields of a kind by name, each with the function that sets it. A field that ends in a period is followed by a resource.
type fields map[string]func(*setting) error

var kinds = map[string]fields{
	"queue": {
		"weight":      queueField((*setting).weight),
		"priority":    queueField(func(s *setting, q *apportionv1.Queue) error { return s.priority(&q.Priority) }),
		"state":       queueField((*setting).state),
		"reclaimable": queueField((*setting).reclaimable),
		"capability.": queueField(func(s *setting, q *apportionv1.Queue) error { return s.amount(&q.Capability) }),
		"guarantee.":  queueField(func(s *setting, q *apportionv1.Queue) error { return s.amount(&q.Guarantee) }),
		"deserved.":   queueField(func(s *setting, q *apportionv1.Queue) error { return s.amount(&q.Deserved) }),
		"usage.":      queueField(func(s *setting, q *apportionv1.Queue) error { return s.usage(&q.Usage) }),
		"budget.":     queueField((*setting).budget),
		"budgetKind":  queueField((*setting).budgetKind),
		"spent.":      queueField((*setting).spent),
	},
	"job": {
		"priority":      jobField(func(s *setting, j *apportionv1.Job) error { return s.priority(&j.Priority) }),
		"queue":         jobField((*setting).moveTo),
		"minAvailable":  jobField((*setting).minimum),
		"minResources.": jobField(func(s *setting, j *apportionv1.Job) error { return s.amount(&j.MinResources) }),
		"role.":         jobField((*setting).role),
		"otherNode":     jobField((*setting).otherNode),
	},
	"clusterqueue": clusterQueue,
	"node": {
		"allocatable.": nodeField(func(s *setting, n *apportionv1.Node) error { return s.amount(&n.Allocatable) }),
		"maintenance":  nodeField((*setting).maintenance),
	},
}

// set reads one --set.
func (e *edit) set(flag, text string) {
	kind, rest, named := strings.Cut(text, "/")
	if !named || strings.Contains(kind, "=") || !strings.Contains(rest, "=") {
		e.fault(flag, "KIND/NAME.FIELD=VALUE is expected, such as queue/research.weight=5")
		return
	}
	known, ok := kinds[kind]
	if !ok {
		like := spelling.Suggestion(kind, maps.Keys(kinds))
		e.fault(flag, "no kind %q%s", kind, spelling.Then(like, "there are "+list(maps.Keys(kinds))))
		return
	}
	s := &setting{edit: e}
	field := s.read(kind, known, rest)
	if kind == "job" && (field == "" || !e.snapshot.Has(kind, s.name)) && s.readRole(rest) {
		field = "role."
	}
	if field == "" {
		target, _, _ := strings.Cut(rest, "=")
		e.fault(flag, "a %s has no such field%s", kind, spelling.Then(meantField(target, known), "there are "+described(known)))
		return
	}
	if err := known[field](s); err != nil {
		e.fault(flag, "%w", err)
		return
	}
	if s.resource != "" {
		field += s.resource
	}
	e.line("set %s of %s %s to %s (now %s)", field, kind, s.subject, s.after, s.before)
}

// read reads NAME.FIELD=VALUE and returns the field, "" if there is none. A name in quotation marks is read as in Go. Any other name may
// contain periods, equals signs and words that are fields, so the longest name that exists and has a field behind it is meant.
func (s *setting) read(kind string, known fields, rest string) string {
	if name, after, quoted := cutQuoted(rest); quoted && strings.HasPrefix(after, ".") {
		s.name = name
		return s.field(known, after[1:])
	}
	for at := strings.LastIndexByte(rest, '.'); at > 0; at = strings.LastIndexByte(rest[:at], '.') {
		if s.edit.snapshot.Has(kind, rest[:at]) {
			if field := s.field(known, rest[at+1:]); field != "" {
				s.name = rest[:at]
				return field
			}
		}
	}
	// No such name exists. The first field ends the name that is meant.
	for at := range len(rest) {
		if rest[at] == '.' && at > 0 {
			if field := s.field(known, rest[at+1:]); field != "" {
				s.name = rest[:at]
				return field
			}
		}
	}
	return ""
}

// field reads FIELD=VALUE or FIELD.RESOURCE=VALUE and returns the field, "" if there is none.
func (s *setting) field(known fields, text string) string {
	for field := range known {
		after, found := strings.CutPrefix(text, field)
		if !found {
			continue
		}
		if value, plain := strings.CutPrefix(after, "="); plain && !strings.HasSuffix(field, ".") {
			s.resource, s.value = "", value
			return field
		}
		// The values of resources have no equals sign, names may have one.
		if at := strings.LastIndexByte(after, '='); at >= 0 && strings.HasSuffix(field, ".") {
			s.resource, s.value = after[:at], after[at+1:]
			return field
		}
	}
	return ""
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

// valueName returns a value that is a name of a thing of a kind, which may be in quotation marks.
func (s *setting) valueName(kind string) string {
	if name, after, quoted := cutQuoted(s.value); quoted && after == "" && !s.edit.snapshot.Has(kind, s.value) {
		s.value = name
	}
	return s.value
}

func queueField(apply func(*setting, *apportionv1.Queue) error) func(*setting) error {
	return func(s *setting) error {
		e := s.edit
		index, err := e.snapshot.Queue(s.name)
		if err != nil {
			return err
		}
		if e.queues[index] == nil {
			e.queues[index] = proto.CloneOf(e.snapshot.GetQueues()[index])
		}
		s.subject = s.name
		return apply(s, e.queues[index])
	}
}

func jobField(apply func(*setting, *apportionv1.Job) error) func(*setting) error {
	return func(s *setting) error {
		e := s.edit
		index, err := e.snapshot.Job(s.name)
		if err != nil {
			return err
		}
		if earlier, goes := e.ended[index]; goes {
			return fmt.Errorf("the job is ended by %s", earlier)
		}
		if e.jobs[index] == nil {
			e.jobs[index] = proto.CloneOf(e.snapshot.GetJobs()[index])
			e.leaveNodes(e.jobs[index])
		}
		s.subject = lookup.JobName(e.jobs[index])
		return apply(s, e.jobs[index])
	}
}

func nodeField(apply func(*setting, *apportionv1.Node) error) func(*setting) error {
	return func(s *setting) error {
		e := s.edit
		index, err := e.snapshot.Node(s.name)
		if err != nil {
			return err
		}
		if earlier, goes := e.gone[index]; goes {
			return fmt.Errorf("the node is removed by %s", earlier)
		}
		s.subject = s.name
		return apply(s, e.changedNode(index))
	}
}
