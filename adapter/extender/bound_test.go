package extender

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/adapter/extender/extendertest"
	"github.com/apportion/apportion/internal/decode"
)

// pushOf is a push of given numbers of objects; queues lie one below the other.
func pushOf(nodes, queues, jobs, tasks, strays int) string {
	list := func(n int, one func(i int) string) string {
		members := make([]string, n)
		for i := range members {
			members[i] = fmt.Sprintf("%q:%s", fmt.Sprint(i), one(i))
		}
		return "{" + strings.Join(members, ",") + "}"
	}
	return `{"Jobs":` + list(jobs, func(i int) string {
		return fmt.Sprintf(`{"UID":"n/%d","Name":"%d","Namespace":"n","Queue":"q0","Tasks":%s}`, i, i, list(tasks, func(k int) string {
			return fmt.Sprintf(`{"UID":"t%d-%d","Name":"t","TaskRole":"r%d","Status":1,"Resreq":{"ScalarResources":{"x/y%d":1}}}`, i, k, k, k)
		}))
	}) + `,"Nodes":` + list(nodes, func(i int) string {
		return fmt.Sprintf(`{"Name":"%d","Tasks":%s}`, i, list(strays, func(k int) string { return fmt.Sprintf(`{"UID":"s%d-%d"}`, i, k) }))
	}) + `,"Queues":` + list(queues, func(i int) string {
		return fmt.Sprintf(`{"Name":"q%d","Queue":{"spec":{"parent":"q%d"}}}`, i, i-1)
	}) + `}`
}

func TestAPushIsHeldToTheLimitsOfEverySnapshot(t *testing.T) {
	build := func(text string, most bound) error {
		read, err := readPruned(prune(inParts(strings.NewReader(text), chunk), pushShape), most)
		if err != nil {
			return err
		}
		m, err := read.build(0)
		if err != nil {
			return err
		}
		return most.held(m, read.read)
	}
	push := pushOf(3, 5, 4, 2, 0)
	for name, c := range map[string]struct {
		push string
		most bound
		says string
	}{
		"nodes":             {push, bound{Limits: decode.Limits{Nodes: 3}}, "3 nodes"},
		"queues":            {push, bound{Limits: decode.Limits{Queues: 5}}, "5 queues"},
		"depth of queues":   {push, bound{Limits: decode.Limits{QueueDepth: 5}}, "5"},
		"jobs":              {push, bound{Limits: decode.Limits{Jobs: 4}}, "4 jobs"},
		"groups":            {push, bound{Limits: decode.Limits{Groups: 8}}, "8 groups"},
		"tasks":             {push, bound{Limits: decode.Limits{Tasks: 8}}, "8 tasks"},
		"tasks without job": {pushOf(3, 1, 0, 0, 2), bound{Limits: decode.Limits{Tasks: 6}}, "6 tasks"},
		"dimensions":        {push, bound{Limits: decode.Limits{Dimensions: 4}}, "4 dimensions"},
		"text":              {strings.Replace(push, `"UID":"t0-0"`, `"UID":"`+strings.Repeat("x", 200)+`"`, 1), bound{Limits: decode.Limits{TextBytes: 200}}, "200 bytes"},
		"memory":            {push, bound{memory: 40_000}, "bytes of memory"},
		"no bound and all":  {push, bound{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, build(c.push, c.most), "as many as allowed")
			if c.says == "" {
				return
			}
			for _, limit := range []*int64{
				&c.most.Nodes, &c.most.Queues, &c.most.QueueDepth, &c.most.Jobs, &c.most.Groups, &c.most.Tasks, &c.most.Dimensions, &c.most.TextBytes,
			} {
				if *limit > 0 {
					*limit--
				}
			}
			c.most.memory /= 4
			var fault *decode.Fault
			require.ErrorAs(t, build(c.push, c.most), &fault)
		})
	}
}

// endless is a text whose middle comes again and again.
func endless(head, item, tail string, bytes int) io.Reader {
	const many = 100
	parts := []io.Reader{strings.NewReader(head)}
	for range bytes / (many * len(item)) {
		parts = append(parts, strings.NewReader(strings.Repeat(item, many)))
	}
	return io.MultiReader(append(parts, strings.NewReader(tail))...)
}

// TestWhatIsSmallInVolcanoIsRefusedWhereItIsNot sends what a decoder would have to hold as a whole.
func TestWhatIsSmallInVolcanoIsRefusedWhereItIsNot(t *testing.T) {
	for name, text := range map[string]io.Reader{
		"a text":                    endless(`{"Jobs":{"j":{"UID":"`, "x", `"}}}`, maxValue*3/2),
		"a number":                  endless(`{"Jobs":{"j":{"Priority":`, "1", `}}}`, maxValue*3/2),
		"a name":                    endless(`{"Jobs":{"`, "x", `":{}}}`, 3*maxKey),
		"a queue":                   endless(`{"Queues":{"q":{"Queue":{"a":"`, "x", `"}}}}`, maxValue*3/2),
		"a list where a text is":    endless(`{"Jobs":{"j":{"UID":[[`, `[],`, `0]]}}}`, maxValue*3/2),
		"a task of many parts":      endless(`{"Jobs":{"j":{"Tasks":{"t":{"UID":"t"`, `,"UID":"`+strings.Repeat("t", 500)+`"`, `}}}}}`, maxValue*3/2),
		"no object at all":          endless(`"`, "x", `"`, maxValue*3/2),
		"a pod of many annotations": endless(`{"Jobs":{"j":{"Tasks":{"t":{"Pod":{"status":{"phase":"a"`, `,"phase":"`+strings.Repeat("a", 500)+`"`, `}}}}}}}`, maxValue*3/2),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readPush(text)
			require.ErrorIs(t, err, errLong)
		})
	}
	// Members that are not read may have any size, and lists that are read any length.
	long := strings.Repeat("x", 2000)
	for name, text := range map[string]io.Reader{
		"a pod":         endless(`{"Jobs":{"j":{"Tasks":{"t":{"Pod":{"spec":{"a":"`, "x", `"}}}}}}}`, maxValue*3/2),
		"tasks":         endless(`{"Jobs":{"j":{"Tasks":{"":{}`, `,"":{"UID":"`+long+`"}`, `}}}}`, maxValue*3/2),
		"tasks of node": endless(`{"Nodes":{"n":{"Tasks":{"":{}`, `,"":{"UID":"`+long+`"}`, `}}}}`, maxValue*3/2),
		"queues":        endless(`{"Queues":{"":{}`, `,"":{"Name":"`+long+`"}`, `}}`, maxValue*3/2),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readPush(text)
			require.NoError(t, err)
		})
	}
}

func TestQuestionsShareWhatTheyMayKeep(t *testing.T) {
	a := &allowance{all: 100_000}
	job := func() *bytes.Buffer {
		return bytes.NewBufferString(`{"job":{"Tasks":{"a":{}` + strings.Repeat(`,"b":{"UID":"0123456789"}`, 600) + `}}}`)
	}
	first, second := &share{of: a}, &share{of: a}
	_, err := readJob(job(), first)
	require.NoError(t, err)
	_, err = readJob(job(), second)
	require.ErrorIs(t, err, errBusy)
	second.giveBack()
	first.giveBack()
	require.Zero(t, a.taken.Load())
	_, err = readJob(job(), second)
	require.NoError(t, err)
	second.giveBack()
	for name, read := range map[string]func(*share) error{
		"a job": func(s *share) error {
			_, err := readJob(endless(`{"job":{"Tasks":{"a":{}`, `,"a":{}`, `}}}`, 50_000), s)
			return err
		},
		"nodes": func(s *share) error {
			_, _, err := readPrioritize(endless(`{"nodes":[{}`, `,{}`, `]}`, 50_000), s)
			return err
		},
		"victims": func(s *share) error {
			_, err := readEviction(extendertest.Victims(extendertest.Shape{Pods: 2000}, 1500), s)
			return err
		},
	} {
		s := &share{of: a}
		require.ErrorIs(t, read(s), errTooLarge, name)
		s.giveBack()
	}
	require.Zero(t, a.taken.Load())
	// A session that cannot be echoed is not kept either.
	e, err := readEviction([]byte(`{"evictees":[{}`+strings.Repeat(`,null,{},{"UID":"a"}`, 10_000)+`]}`), &share{of: a})
	require.NoError(t, err)
	require.Empty(t, e.uids)
}
