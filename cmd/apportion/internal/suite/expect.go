package suite

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/apportion/apportion/internal/quantity"
	"github.com/apportion/apportion/internal/spelling"
)

// Difference is an expectation that an answer does not meet.
type Difference struct {
	// Line of the file.
	Line int
	// Path is the path of the expectation, as written.
	Path string
	// Want is the expected value, Got the value in the answer.
	Want, Got string

	// place is the node of the file to update; nil if there is none.
	place *yaml.Node
	fact  *Fact
}

// Compare returns the differences between an answer to a step and an expectation, a mapping of paths to values. A failed step is a
// difference unless an error is expected. expect may be nil.
func Compare(expect, ask *yaml.Node, facts *Fact) []Difference {
	c := comparison{root: facts}
	if failed := facts.find("error"); failed != nil && (expect == nil || !mentions(expect, "error")) {
		return []Difference{{Line: ask.Line, Path: "error", Want: "an answer", Got: shown(failed.Value)}}
	}
	if expect == nil {
		return nil
	}
	c.compare(nil, expect)
	return c.differences
}

func mentions(expect *yaml.Node, key string) bool {
	for i := 0; i+1 < len(expect.Content); i += 2 {
		if expect.Content[i].Value == key {
			return true
		}
	}
	return false
}

type comparison struct {
	root        *Fact
	differences []Difference
}

// compare compares a value of the expectation with the fact at a path.
func (c *comparison) compare(path []string, n *yaml.Node) {
	if n.Kind == yaml.MappingNode && !isOperators(n) {
		for i := 0; i+1 < len(n.Content); i += 2 {
			c.compare(append(slices.Clone(path), n.Content[i].Value), n.Content[i+1])
		}
		return
	}
	fact, problem := Select(c.root, path)
	if fact == nil {
		if n.Kind == yaml.ScalarNode && n.Value == absent {
			return
		}
		c.differ(path, n, nil, written(n), problem)
		return
	}
	switch n.Kind {
	case yaml.SequenceNode:
		c.equal(path, n, fact)
	case yaml.MappingNode:
		c.operators(path, n, fact)
	default:
		if !meets(fact, n) {
			c.differ(path, n, fact, n.Value, got(fact))
		}
	}
}

func (c *comparison) differ(path []string, n *yaml.Node, fact *Fact, want, got string) {
	c.differences = append(c.differences, Difference{
		Line: n.Line, Path: strings.Join(path, "."), Want: want, Got: got, place: n, fact: fact,
	})
}

// equal compares a list with the names that the fact lists, in order.
func (c *comparison) equal(path []string, n *yaml.Node, fact *Fact) {
	want, have := texts(n), listed(fact)
	if !slices.EqualFunc(have, want, fits) {
		c.differ(path, n, fact, written(n), "["+strings.Join(have, ", ")+"]")
	}
}

// The operators on lists.
const (
	includes = "includes"
	excludes = "excludes"
	count    = "count"
	absent   = "absent"
)

// isOperators reports whether a mapping has only operators as keys.
func isOperators(n *yaml.Node) bool {
	for i := 0; i < len(n.Content); i += 2 {
		if !slices.Contains([]string{includes, excludes, count}, n.Content[i].Value) {
			return false
		}
	}
	return len(n.Content) > 0
}

func (c *comparison) operators(path []string, n *yaml.Node, fact *Fact) {
	have := listed(fact)
	for i := 0; i+1 < len(n.Content); i += 2 {
		operator, value := n.Content[i].Value, n.Content[i+1]
		if operator == count {
			number := &Fact{Value: float64(len(have))}
			if !meets(number, value) {
				c.differ(append(slices.Clone(path), count), value, number, value.Value, strconv.Itoa(len(have)))
			}
			continue
		}
		for _, name := range texts(value) {
			if slices.ContainsFunc(have, func(h string) bool { return fits(h, name) }) != (operator == includes) {
				c.differ(path, value, nil, operator+" "+name, "["+strings.Join(have, ", ")+"]")
			}
		}
	}
}

// texts returns the texts of a list, or the one of a scalar.
func texts(n *yaml.Node) []string {
	if n.Kind != yaml.SequenceNode {
		return []string{n.Value}
	}
	list := make([]string, len(n.Content))
	for i, item := range n.Content {
		list[i] = item.Value
	}
	return list
}

// written returns an expectation in one line.
func written(n *yaml.Node) string {
	if n.Kind == yaml.SequenceNode {
		return "[" + strings.Join(texts(n), ", ") + "]"
	}
	return n.Value
}

// listed returns the texts of a list, the keys of a group, or the value itself.
func listed(f *Fact) []string {
	if list, ok := f.Value.([]string); ok {
		return list
	}
	if f.Value != nil {
		return []string{shown(f.Value)}
	}
	keys := make([]string, len(f.Below))
	for i, below := range f.Below {
		keys[i] = below.Key
	}
	return keys
}

// fits reports whether a written name matches: the name itself, or its last part after a slash.
func fits(name, written string) bool {
	return name == written || written != "" && strings.HasSuffix(name, "/"+written)
}

// Select returns the fact of a path: the one nearest to the root in whose path the keys occur in this order, possibly with other keys
// between them. A key may contain several, separated by dots. nil: there is none, or there are several; the text describes this.
func Select(root *Fact, path []string) (*Fact, string) {
	level := []reached{{root, path, ""}}
	for len(level) > 0 {
		var next, found []reached
		for _, at := range level {
			for _, below := range at.fact.Below {
				for _, rest := range step(below.Key, at.rest) {
					hit := reached{below, rest, join(at.path, below.Key)}
					if len(rest) == 0 && !slices.ContainsFunc(found, func(f reached) bool { return f.fact == below }) {
						found = append(found, hit)
					}
					next = append(next, hit)
				}
				next = append(next, reached{below, at.rest, join(at.path, below.Key)})
			}
		}
		if len(found) == 1 {
			return found[0].fact, ""
		}
		if len(found) > 1 {
			return nil, fmt.Sprintf("%d parts of the answer have this name, such as %s and %s: name more of the path",
				len(found), found[0].path, found[1].path)
		}
		level = next
	}
	return nil, "no such part of the answer" + similar(root, path)
}

// reached is a fact on the path, with the rest of the path below it.
type reached struct {
	fact *Fact
	rest []string
	path string
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// step returns the possible rests of a path after a key, if the path can begin with it.
func step(key string, path []string) [][]string {
	if len(path) == 0 {
		return nil
	}
	if fits(key, path[0]) {
		return [][]string{path[1:]}
	}
	var rests [][]string
	for i, r := range path[0] {
		if r == '.' && fits(key, path[0][:i]) {
			rests = append(rests, append([]string{path[0][i+1:]}, path[1:]...))
		}
	}
	return rests
}

// similar suggests an existing key for an unknown one.
func similar(root *Fact, path []string) string {
	keys := map[string]bool{}
	var walk func(*Fact)
	walk = func(f *Fact) {
		for _, below := range f.Below {
			keys[below.Key] = true
			walk(below)
		}
	}
	walk(root)
	for _, key := range strings.FieldsFunc(strings.Join(path, "."), func(r rune) bool { return r == '.' }) {
		if !keys[key] {
			if like := spelling.Suggestion(key, maps.Keys(keys)); like != "" {
				return like
			}
		}
	}
	return ""
}

// operator is a comparison that begins a text: `>= 20`, `contains GPU`.
var operator = regexp.MustCompile(`^(?:([<>]=?)\s*([-+.\d].*)|(contains|matches|not)\s+(.*))$`)

// meets reports whether a fact meets the expectation of a scalar.
func meets(f *Fact, n *yaml.Node) bool {
	yes, known := says(f, n.Value)
	return yes && known
}

// says reports whether a fact has a value or meets a comparison; known is false if it can never have such a value, so that neither the
// value nor its contrary is met.
func says(f *Fact, expected string) (yes, known bool) {
	match := operator.FindStringSubmatch(expected)
	switch {
	case match == nil:
		return is(f, expected), possible(f, expected)
	case match[3] == "not":
		yes, known = says(f, match[4])
		return !yes, known
	case match[3] == "matches":
		_, err := regexp.Compile(match[4])
		return compares(f, match[3], match[4]), err == nil
	}
	return compares(f, match[1]+match[3], match[2]+match[4]), match[3] != "" || possible(f, match[2])
}

// possible reports whether a value is one of the kind of a fact: an amount or a number for those.
func possible(f *Fact, value string) bool {
	switch f.Value.(type) {
	case Amount, float64:
		_, _, ok := numbers(f, value)
		return ok || value == absent
	}
	return true
}

func compares(f *Fact, operator, operand string) bool {
	switch operator {
	case "contains":
		return slices.ContainsFunc(said(f), func(s string) bool { return strings.Contains(s, operand) })
	case "matches":
		pattern, err := regexp.Compile(operand)
		return err == nil && slices.ContainsFunc(said(f), pattern.MatchString)
	}
	have, want, ok := numbers(f, operand)
	if !ok {
		return false
	}
	return map[string]bool{">=": have >= want, "<=": have <= want, ">": have > want, "<": have < want}[operator]
}

// said returns the texts of a fact: of a group its reason or text.
func said(f *Fact) []string {
	if f.Value == nil {
		for _, key := range []string{"reason", "text"} {
			if told := f.find(key); told != nil {
				return said(told)
			}
		}
	}
	return listed(f)
}

// numbers returns the numbers of a fact and of an operand, both in the unit of the fact.
func numbers(f *Fact, operand string) (have, want float64, ok bool) {
	var err error
	switch v := f.Value.(type) {
	case Amount:
		want, err = parse(v.Dimension, operand)
		return v.Value, want, err == nil
	case float64:
		want, err = strconv.ParseFloat(operand, 64)
		return v, want, err == nil
	}
	return 0, 0, false
}

// parse reads an amount, which may be negative.
func parse(dimension, operand string) (float64, error) {
	if positive, negative := strings.CutPrefix(operand, "-"); negative {
		amount, err := quantity.Parse(dimension, positive)
		return -amount, err
	}
	return quantity.Parse(dimension, operand)
}

// is reports whether a fact equals a value. A number with decimals equals every number that rounds to it.
func is(f *Fact, want string) bool {
	switch v := f.Value.(type) {
	case bool:
		return strconv.FormatBool(v) == want
	case Amount:
		if want == absent {
			return !v.Present
		}
		have, expected, ok := numbers(f, want)
		return ok && (have == expected || quantity.Short(v.Dimension, have) == want || near(have, expected, unitOf(v.Dimension, want)))
	case float64:
		have, expected, ok := numbers(f, want)
		return ok && (have == expected || near(have, expected, decimal(want)))
	case string:
		return v == want
	case []string:
		return len(v) == 1 && fits(v[0], want)
	}
	// A group: its verdict, or its reason.
	if verdict := f.find("permitted"); verdict != nil && (want == "true" || want == "false") {
		return is(verdict, want)
	}
	told := said(f)
	return len(told) == 1 && told[0] == want
}

// near reports whether a number rounds to another at its last decimal; never if it has none.
func near(have, want, unit float64) bool {
	return unit > 0 && math.Abs(have-want) <= unit/2*(1+1e-9)
}

// decimal is the value of the last decimal of a number, 0 if it has none.
func decimal(number string) float64 {
	_, decimals, found := strings.Cut(number, ".")
	if !found || decimals == "" {
		return 0
	}
	return math.Pow10(-len(decimals))
}

// unitOf is the value of the last decimal of a quantity, in the unit of the dimension; 0 if it has none.
func unitOf(dimension, written string) float64 {
	number := strings.TrimRight(written, "KMGTPEkmnui")
	one, err := quantity.Parse(dimension, "1"+written[len(number):])
	if err != nil {
		return 0
	}
	return one * decimal(number)
}

// shown formats a value.
func shown(value any) string {
	switch v := value.(type) {
	case Amount:
		if !v.Present {
			return absent
		}
		return quantity.Short(v.Dimension, v.Value)
	case float64:
		return strconv.FormatFloat(v, 'g', 6, 64)
	case bool:
		return strconv.FormatBool(v)
	case string:
		return v
	case []string:
		return "[" + strings.Join(v, ", ") + "]"
	}
	return ""
}

// got formats a fact; of a group, its reason or its keys.
func got(f *Fact) string {
	if f.Value != nil {
		return shown(f.Value)
	}
	return strings.Join(said(f), ", ")
}
