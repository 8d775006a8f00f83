package reference

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Difference is an answer that is not the recorded one along some way.
type Difference struct {
	// Pointer is a JSON pointer into the case's `expect`.
	Pointer string
	Want    any
	// Got has an entry for each way.
	Got []any
}

// absent stands where there is nothing.
type absent struct{}

// comparison compares the recorded answer with the answer of each way of asking.
type comparison struct {
	// judge is nil if everything is held.
	*judge
	// only is a part of pointers to look at; empty for everything.
	only    string
	answers int
	equal   int
	unheld  map[Rule]int
	differ  []Difference
}

// tree compares the recorded value at a JSON pointer with the value received.
func (c *comparison) tree(pointer string, path []string, want any, got []any) {
	if len(path) > 0 && c.judge != nil {
		if rule := c.judge.unheld(pointer, path, want); rule != "" {
			if n := leaves(want); n > 0 && c.looksAt(pointer) {
				c.unheld[rule] += n
			}
			return
		}
		want = c.requiredAnswer(path, want)
	}
	want = asAmounts(want)
	all := append([]any{want}, got...)
	switch {
	case areAll[amounts](all):
		for _, name := range keysOf[amounts](all) {
			c.tree(pointer+amountPointer(want, name), append(path, name), member(want, name), members(got, name))
		}
	case areAll[object](all):
		for _, key := range keysOf[object](all) {
			c.tree(pointer+"/"+escape(key), append(path, key), member(want, key), members(got, key))
		}
	case areAll[[]any](all):
		for i := range longest(all) {
			key := strconv.Itoa(i)
			c.tree(pointer+"/"+key, append(path, key), member(want, key), members(got, key))
		}
	default:
		c.leaf(pointer, want, got)
	}
}

// leaf compares one answer. Where one side is no leaf, all leaves of the other side are different.
func (c *comparison) leaf(pointer string, want any, got []any) {
	if !c.looksAt(pointer) {
		return
	}
	n := leaves(want)
	same := true
	for _, g := range got {
		same = same && agree(want, g)
		n = max(n, min(1, leaves(g)))
	}
	c.answers += n
	if same {
		c.equal += n
		return
	}
	// Nothing at all against an empty container is no answer of either side.
	if n > 0 {
		c.differ = append(c.differ, Difference{pointer, want, got})
	}
}

func (c *comparison) looksAt(pointer string) bool { return strings.Contains(pointer, c.only) }

// agree compares two leaves, or two values of different forms.
func agree(want, got any) bool {
	switch w := want.(type) {
	case float64:
		g, ok := got.(float64)
		return ok && near(w, g)
	case bool, string:
		return want == got
	case nil:
		return leaves(got) == 0 || got == nil
	}
	return leaves(want) == 0 && leaves(got) == 0
}

// tolerance is the precision of the recording: Volcano adds in the random order of maps.
const tolerance = 1e-9

// near reports whether two numbers agree within a relative tolerance, or an absolute one where one of them is 0.
func near(a, b float64) bool {
	if a == b {
		return true
	}
	if math.IsInf(a, 0) || math.IsInf(b, 0) {
		return false
	}
	scale := max(math.Abs(a), math.Abs(b))
	if a == 0 || b == 0 {
		scale = 1
	}
	return math.Abs(a-b) <= tolerance*scale
}

// leaves counts the answers in a tree of the recorded form.
func leaves(v any) int {
	n := 0
	switch v := asAmounts(v).(type) {
	case absent:
	case amounts:
		n = len(v)
	case object:
		for _, below := range v {
			n += leaves(below)
		}
	case []any:
		for _, below := range v {
			n += leaves(below)
		}
	default:
		n = 1
	}
	return n
}

// asAmounts turns a resource as it is recorded, `{"v": {name: number}, "unlimited": [names]}`, into amounts. Everything else stays.
func asAmounts(v any) any {
	o, ok := v.(object)
	if !ok {
		return v
	}
	listed, ok := o["v"].(object)
	if !ok {
		return v
	}
	a := make(amounts, len(listed))
	for name, amount := range listed {
		number, ok := amount.(float64)
		if !ok {
			return v
		}
		a[name] = number
	}
	unlimited, _ := o["unlimited"].([]any)
	for _, name := range unlimited {
		if text, ok := name.(string); ok {
			a[text] = math.Inf(1)
		}
	}
	return a
}

// amountPointer returns the pointer to a dimension in a recorded resource.
func amountPointer(want any, name string) string {
	if recorded, ok := want.(amounts); ok && math.IsInf(recorded[name], 1) {
		return "/unlimited/" + escape(name)
	}
	return "/v/" + escape(name)
}

// areAll reports whether there are values and all of them are of one kind.
func areAll[T any](all []any) bool {
	some := false
	for _, v := range all {
		if v == (absent{}) {
			continue
		}
		if _, ok := v.(T); !ok {
			return false
		}
		some = true
	}
	return some
}

// keysOf lists the keys that occur anywhere, sorted.
func keysOf[M ~map[string]V, V any](all []any) []string {
	keys := map[string]bool{}
	for _, v := range all {
		if m, ok := v.(M); ok {
			for key := range m {
				keys[key] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(keys))
}

func longest(all []any) int {
	n := 0
	for _, v := range all {
		if l, ok := v.([]any); ok {
			n = max(n, len(l))
		}
	}
	return n
}

// member returns the value under a key or at a position.
func member(v any, key string) any {
	switch v := v.(type) {
	case amounts:
		if amount, ok := v[key]; ok {
			return amount
		}
	case object:
		if below, ok := v[key]; ok {
			return below
		}
	case []any:
		if below, ok := elementAt(v, key); ok {
			return below
		}
	}
	return absent{}
}

func members(all []any, key string) []any {
	below := make([]any, len(all))
	for i, v := range all {
		below[i] = member(v, key)
	}
	return below
}

// elementAt is the element of a list whose position is written as text.
func elementAt[T any](list []T, position string) (element T, ok bool) {
	i, err := strconv.Atoi(position)
	if err != nil || i < 0 || i >= len(list) {
		return element, false
	}
	return list[i], true
}

var escaper = strings.NewReplacer("~", "~0", "/", "~1")

// escape writes a key as a part of a JSON pointer.
func escape(key string) string {
	if !strings.ContainsAny(key, "~/") {
		return key
	}
	return escaper.Replace(key)
}
