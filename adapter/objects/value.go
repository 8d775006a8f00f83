package objects

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/apportion/apportion/internal/quantity"
)

// NameField is the field that identifies most objects.
const NameField = "name"

// The fields that all objects have.
const (
	namespaceField       = "namespace"
	itemsField           = "items"
	KindField            = "kind"
	VersionField         = "apiVersion"
	MetadataField        = "metadata"
	AnnotationsField     = "annotations"
	ResourceVersionField = "resourceVersion"
)

// Type is the JSON type of a value.
type Type uint8

// The types.
const (
	Null Type = iota
	Boolean
	Number
	Text
	List
	Map
	// Word is a text that was a boolean in YAML 1.1, such as yes and no: it is read as text or boolean, as the field requires.
	Word
	// Skipped is a value that is not read; only its name is known.
	Skipped
)

// Value is a node of the tree of a JSON or YAML document. It has its position, for errors.
type Value struct {
	Type Type
	// At and keyAt are the positions in the document of the value and of its name.
	At, KeyAt int
	// Text is the content of a text, and a number, a boolean as written.
	Text string
	// Items are the fields of an object, or the elements of an array.
	Items []*Value
	// key is the name within the parent object, index the position within the parent array.
	Parent *Value
	Key    string
	index  int
}

// Field returns the value of a name in an object: the last one if there are several, nil if it is absent or null. A nil value has no
// fields.
func (v *Value) Field(name string) *Value {
	if v == nil || v.Type != Map {
		return nil
	}
	for _, item := range slices.Backward(v.Items) {
		if item.Key != name {
			continue
		}
		if item.Type == Null {
			return nil
		}
		return item
	}
	return nil
}

// TextOf returns the text under a name, or "" if there is none. Use it only where a wrong type is reported elsewhere.
func (v *Value) TextOf(name string) string {
	if f := v.Field(name); f != nil && (f.Type == Text || f.Type == Word) {
		return f.Text
	}
	return ""
}

// Path names the place within the object, as in `spec.containers[0].resources.requests.cpu`.
func (v *Value) Path() string {
	if v == nil || v.Parent == nil {
		return ""
	}
	if v.Parent.Type == List {
		return v.Parent.Path() + "[" + strconv.Itoa(v.index) + "]"
	}
	if above := v.Parent.Path(); above != "" {
		return above + "." + v.Key
	}
	return v.Key
}

// at returns the value at a path, or the innermost one on the way to it that exists.
func (v *Value) at(path string) *Value {
	for _, item := range v.Items {
		step := item.Key
		if v.Type == List {
			step = "[" + strconv.Itoa(item.index) + "]"
		}
		if rest, ok := strings.CutPrefix(path, step); ok && step != "" && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return item.at(strings.TrimPrefix(rest, "."))
		}
	}
	return v
}

// Add appends a child to an object or array.
func (v *Value) Add(child *Value) {
	child.Parent = v
	child.index = len(v.Items)
	v.Items = append(v.Items, child)
}

// AppendJSON appends a value as JSON; nil is null.
func AppendJSON(to []byte, v *Value) []byte {
	if v == nil {
		return append(to, "null"...)
	}
	switch v.Type {
	case Boolean, Number:
		if !json.Valid([]byte(v.Text)) {
			return appendText(to, v.Text) // As YAML writes it, such as .5: quantities are texts, too.
		}
		return append(to, v.Text...)
	case Text, Word:
		return appendText(to, v.Text)
	case List:
		to = append(to, '[')
		for i, item := range v.Items {
			if i > 0 {
				to = append(to, ',')
			}
			to = AppendJSON(to, item)
		}
		return append(to, ']')
	case Map:
		to = append(to, '{')
		for i, item := range v.Items {
			if i > 0 {
				to = append(to, ',')
			}
			to = AppendJSON(append(appendText(to, item.Key), ':'), item)
		}
		return append(to, '}')
	case Null, Skipped:
	}
	return append(to, "null"...)
}

func appendText(to []byte, s string) []byte {
	quoted, err := json.Marshal(s)
	if err != nil {
		return append(to, `""`...) // not reached: a text is always marshaled
	}
	return append(to, quoted...)
}

// Truth returns the boolean value of v, if it is a boolean.
func (v *Value) Truth() (truth, ok bool) {
	switch v.Type {
	case Boolean:
		return v.Text == "true", v.Text == "true" || v.Text == "false"
	case Word:
		return words[v.Text], true
	case Null, Number, Text, List, Map, Skipped:
	}
	return false, false
}

// words are the booleans of YAML 1.1 that YAML 1.2 takes for texts.
var words = map[string]bool{
	"y": true, "Y": true, "yes": true, "Yes": true, "YES": true, "on": true, "On": true, "ON": true,
	"n": false, "N": false, "no": false, "No": false, "NO": false, "off": false, "Off": false, "OFF": false,
}

// Quantity reads a quantity as Kubernetes does, of any size that a real one has.
func Quantity(text string) (resource.Quantity, error) {
	if err := quantity.Check(text); err != nil {
		return resource.Quantity{}, err //nolint:wrapcheck // It is said as a fault of the field.
	}
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return resource.Quantity{}, fmt.Errorf("not a quantity: %q", text)
	}
	return q, nil
}
