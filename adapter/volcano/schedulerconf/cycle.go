package schedulerconf

import (
	"bytes"
	"slices"
	"strings"

	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/engine"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/spelling"
)

// Instead says what Volcano runs in place of a file that it refuses (pkg/scheduler/scheduler.go, loadSchedulerConf).
const Instead = "Volcano refuses such a file as a whole and goes on with the last one that it accepted, after a start with the one " +
	"that is " +
	"compiled in; with --disable-default-scheduler-config it ends"

// RefusedError is the error of a file that Volcano refuses.
type RefusedError struct {
	// Why has the faults, those included that only Apportion refuses.
	Why error
}

func (e *RefusedError) Error() string { return e.Why.Error() + "\n" + Instead }

func (e *RefusedError) Unwrap() error { return e.Why }

// refuse adds a fault for which Volcano refuses the file.
func (c *configuration) refuse(v *objects.Value, format string, args ...any) {
	c.refused = true
	c.found.Add(c.doc, v, format, args...)
}

// err returns the faults of the file, nil if it has none.
func (c *configuration) err() error {
	err := c.found.Err()
	if err != nil && c.refused {
		return &RefusedError{Why: err}
	}
	return err
}

// actions reads the list of actions as Volcano does: it is cut at each comma, and the names have no spaces around them.
func (c *configuration) actions(root *objects.Value) *apportionv1.Policy_Volcano {
	v := root.Field("actions")
	known := engine.Actions()
	if v == nil || v.Type == objects.Null || v.Type == objects.Text && strings.TrimSpace(v.Text) == "" {
		c.refuse(or(v, root), "there are no actions; known ones are %s", strings.Join(known, ", "))
		return nil
	}
	if v.Type == objects.List || v.Type == objects.Map {
		c.refuse(v, "not a text; write actions: %q", "enqueue, allocate, backfill")
		return nil
	}
	cycle := &apportionv1.VolcanoCycle{}
	for name := range strings.SplitSeq(v.Text, ",") {
		switch name = strings.TrimSpace(name); {
		case name == "":
			c.refuse(v, "an action without a name: a comma too many")
		case !slices.Contains(known, name):
			like := spelling.Suggestion(strings.ToLower(name), slices.Values(known))
			c.refuse(v, "there is no action %q%s", name, spelling.Then(like, "there are "+strings.Join(known, ", ")))
		default:
			cycle.Actions = append(cycle.Actions, name)
		}
	}
	return &apportionv1.Policy_Volcano{Volcano: cycle}
}

// or returns the first value that is there.
func or(v, instead *objects.Value) *objects.Value {
	if v != nil {
		return v
	}
	return instead
}

// trimmed returns a file without the spaces before its first line with content, as Volcano reads it: lines keep their numbers.
func trimmed(data []byte) []byte {
	rest := bytes.TrimLeft(data, " \t\r\n")
	head := data[:len(data)-len(rest)]
	if bytes.IndexByte(head, ' ') < 0 && bytes.IndexByte(head, '\t') < 0 {
		return data
	}
	return append(bytes.Repeat([]byte("\n"), bytes.Count(head, []byte("\n"))), rest...)
}

// sourceOf returns a file's name as the source of a policy, of which only the end is kept if it is long.
func sourceOf(name string) string {
	const most = 1000
	return strings.ToValidUTF8(name[max(len(name)-most, 0):], "")
}
