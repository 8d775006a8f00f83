package volcano

import (
	"encoding/json"
	"slices"
	"strconv"
)

// nameField is the field that identifies most objects.
const nameField = "name"

// The fields that all objects have.
const (
	kindField        = "kind"
	versionField     = "apiVersion"
	metadataField    = "metadata"
	annotationsField = "annotations"
)

// kind is the JSON type of a value.
type kind uint8

const (
	null kind = iota
	boolean
	number
	text
	array
	object
	// word is a text that was a boolean in YAML 1.1, such as yes and no: it is read as text or boolean, as the field requires.
	word
	// skipped is a value that is not read; only its name is known.
	skipped
)

// value is a node of the tree of a JSON or YAML document. It has its position, for errors.
type value struct {
	kind kind
	// at and keyAt are the positions in the document of the value and of its name.
	at, keyAt int
	// text is the content of a text, and a number, a boolean as written.
	text string
	// items are the fields of an object, or the elements of an array.
	items []*value
	// key is the name within the parent object, index the position within the parent array.
	parent *value
	key    string
	index  int
}

// field returns the value of a name in an object: the last one if there are several, nil if it is absent or null. A nil value has no
// fields.
func (v *value) field(name string) *value {
	if v == nil || v.kind != object {
		return nil
	}
	for _, item := range slices.Backward(v.items) {
		if item.key != name {
			continue
		}
		if item.kind == null {
			return nil
		}
		return item
	}
	return nil
}

// textOf returns the text under a name, or "" if there is none. Use it only where a wrong type is reported elsewhere.
func (v *value) textOf(name string) string {
	if f := v.field(name); f != nil && (f.kind == text || f.kind == word) {
		return f.text
	}
	return ""
}

// path names the place within the object, as in `spec.containers[0].resources.requests.cpu`.
func (v *value) path() string {
	if v == nil || v.parent == nil {
		return ""
	}
	if v.parent.kind == array {
		return v.parent.path() + "[" + strconv.Itoa(v.index) + "]"
	}
	if above := v.parent.path(); above != "" {
		return above + "." + v.key
	}
	return v.key
}

// add appends a child to an object or array.
func (v *value) add(child *value) {
	child.parent = v
	child.index = len(v.items)
	v.items = append(v.items, child)
}

// appendJSON appends a value as JSON; nil is null.
func appendJSON(to []byte, v *value) []byte {
	if v == nil {
		return append(to, "null"...)
	}
	switch v.kind {
	case boolean, number:
		return append(to, v.text...)
	case text, word:
		return appendText(to, v.text)
	case array:
		to = append(to, '[')
		for i, item := range v.items {
			if i > 0 {
				to = append(to, ',')
			}
			to = appendJSON(to, item)
		}
		return append(to, ']')
	case object:
		to = append(to, '{')
		for i, item := range v.items {
			if i > 0 {
				to = append(to, ',')
			}
			to = appendJSON(append(appendText(to, item.key), ':'), item)
		}
		return append(to, '}')
	case null, skipped:
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

// truth returns the boolean value of v, if it is a boolean.
func (v *value) truth() (truth, ok bool) {
	switch v.kind {
	case boolean:
		return v.text == "true", v.text == "true" || v.text == "false"
	case word:
		return words[v.text], true
	case null, number, text, array, object, skipped:
	}
	return false, false
}

// words are the booleans of YAML 1.1 that YAML 1.2 takes for texts.
var words = map[string]bool{
	"y": true, "Y": true, "yes": true, "Yes": true, "YES": true, "on": true, "On": true, "ON": true,
	"n": false, "N": false, "no": false, "No": false, "NO": false, "off": false, "Off": false, "OFF": false,
}
