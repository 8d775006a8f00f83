package objects

import (
	"math"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/resource"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
)

// Account says what became of each object of an input: Objects is the sum of Read, Hidden, Lists, the faulty ones and those not read.
type Account struct {
	// Objects counts all objects, and Read those that were read.
	Objects, Read int
	// Hidden counts objects that do not count because another one does, and Lists the empty lists of one kind.
	Hidden, Lists int
	// Faulty lists the objects that are left out because they are invalid, or because the snapshot has no room for them.
	Faulty []*Faulty
	// Unread counts the objects of kinds that are not read, by kind with its apiVersion.
	Unread map[string]int
	// Empty names the sources without objects.
	Empty []string
}

// Reader reads one object after the other, and accounts for each of them.
type Reader struct {
	Account

	// Doc is the document of the object being read.
	Doc      *Document
	Found    Problems
	Warnings Warnings
	// Lenient readers leave out faulty objects; any other fails for them.
	Lenient bool
	// Clashes are objects of one name in two files, for which a lenient reader fails too.
	Clashes Problems
	// Limits are those of the server that the objects are for.
	Limits decode.Limits
	// Listed are the kinds of which all objects were given, if only none; Unlisted those that could not be read, and why.
	Listed   map[string]bool
	Unlisted map[string]string
	// Progress is called with the number of bytes read so far; nil: progress is not reported.
	Progress func(read int)

	// root is the object being read, and meta its metadata.
	root *Value
	meta Metadata
	// seen is the position of each object that was read.
	seen map[Identity]Origin
	// sources is the number of bytes of earlier sources, and cut of those items of the current one that were read.
	sources, cut int
}

// NewReader returns a Reader that has read nothing.
func NewReader() Reader {
	return Reader{Account: Account{Unread: map[string]int{}}, Listed: map[string]bool{}, seen: map[Identity]Origin{}}
}

// Base returns the reader itself, to an adapter that embeds it.
func (r *Reader) Base() *Reader { return r }

// Seen reports whether an object was read.
func (r *Reader) Seen(of Identity) bool {
	_, seen := r.seen[of]
	return seen
}

// Origin is where an object was read; zero for one that was not read from a source.
func (r *Reader) Origin(of Identity) Origin { return r.seen[of] }

// Take accounts for an object that was read before.
func (r *Reader) Take(c *Content) {
	r.Objects++
	r.Warnings.Take(c.Warnings)
	if c.Fault != nil {
		r.Faulty = append(r.Faulty, c.Fault)
	} else {
		r.Read++
	}
}

// Fault adds a problem at a path of the object being read. The line is that of the last part of the path that exists.
func (r *Reader) Fault(path, format string, args ...any) {
	if r.Found.counted() {
		r.Found.list(r.Doc, r.root.at(path).At, path, format, args...)
	}
}

// skip accounts for an object of a kind that is not read, and warns of the first one.
func (r *Reader) skip(kind Kind, root *Value) {
	full := kind.String()
	if r.Unread[full]++; r.Unread[full] == 1 {
		r.Warn(apportionv1.WarningCode_WARNING_CODE_DROPPED, root, "objects of kind %s are not read", full)
	}
}

// advance reports the progress after root, of doc, has been read.
func (r *Reader) advance(doc *Document, root *Value) {
	if r.Progress == nil {
		return
	}
	if !doc.Lines {
		r.Progress(r.sources + root.At)
		return
	}
	if r.Doc == nil || r.Doc.Name != doc.Name {
		r.cut = 0
	}
	if r.Doc != doc {
		r.cut += len(doc.Data)
	}
	r.Progress(r.sources + r.cut)
}

// Expected is a kind that other objects may prove to exist.
type Expected struct {
	Kind string
	// Count is the number of objects that were read.
	Count int
	// Proof names what proves that there are some; "" is none.
	Proof func() string
}

// Lacks returns what proves that a kind was not read although the cluster has some of it; "" if nothing does. That a kind is absent proves
// nothing by itself, as kubectl prints several kinds in one list: it is absent by mistake if another object cannot be without it. A list of
// one kind, as `kind: PodList`, says that there are no other objects of its kind.
func (r *Reader) Lacks(k Expected) string {
	faulty := func(f *Faulty) bool { return f.Kind == k.Kind }
	if _, said := r.Unlisted[k.Kind]; said || k.Count > 0 || r.Listed[k.Kind] || slices.ContainsFunc(r.Faulty, faulty) {
		return ""
	}
	return k.Proof()
}

// Unreadable returns that a kind was not read, and why.
func (r *Reader) Unreadable(kind, why string) *apportionv1.LeftOut {
	return &apportionv1.LeftOut{Cause: apportionv1.LeftOutCause_LEFT_OUT_CAUSE_UNREAD, Kind: kind, Detail: r.Shortened(why)}
}

// longestText bounds quotations from a cluster, in bytes, and numberBytes what is added to one to make it unique.
const longestText, numberBytes = 1000, 12

// Shortened returns a text, cut so that it is a short text within the limits.
func (r *Reader) Shortened(text string) string {
	longest := longestText
	if most := r.Limits.TextBytes; most > 0 {
		longest = int(min(longestText, most-numberBytes))
	}
	if len(text) <= longest {
		return text
	}
	end := longest - len("…")
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}

// Warn adds a warning about a value of the object being read.
func (r *Reader) Warn(code apportionv1.WarningCode, v *Value, format string, args ...any) {
	doc := r.Doc
	r.Warnings.Add(code, func() string { return Place(doc, v) }, format, args...)
}

// WarnDropped adds a warning that something was left out.
func (r *Reader) WarnDropped(v *Value, format string, args ...any) {
	r.Warn(apportionv1.WarningCode_WARNING_CODE_DROPPED, v, format, args...)
}

// Each method below reads a value of one type. An absent value gives the zero value; a wrong one adds a problem and gives the zero value.

// TextAt reads a text.
func (r *Reader) TextAt(v *Value) string {
	if v == nil {
		return ""
	}
	if v.Type != Text && v.Type != Word {
		r.Found.Add(r.Doc, v, "not a text")
		return ""
	}
	return v.Text
}

// FlagAt reads true or false; nil: absent.
func (r *Reader) FlagAt(v *Value) *bool {
	if v == nil {
		return nil
	}
	flag, ok := v.Truth()
	if !ok {
		r.Found.Add(r.Doc, v, "neither true nor false%s", Shown(v))
		return nil
	}
	return &flag
}

// WholeAt reads a whole number of 32 bits.
func (r *Reader) WholeAt(v *Value) int32 {
	if v == nil {
		return 0
	}
	parsed, err := strconv.ParseInt(v.Text, 10, 32)
	if v.Type != Number || err != nil {
		r.Found.Add(r.Doc, v, "not a whole number between %d and %d%s", math.MinInt32, math.MaxInt32, Shown(v))
		return 0
	}
	return int32(parsed)
}

// CountAt reads a whole number that is not negative.
func (r *Reader) CountAt(v *Value) uint32 {
	count := r.WholeAt(v)
	if count < 0 {
		r.Found.Add(r.Doc, v, "negative: %d", count)
		return 0
	}
	return uint32(count)
}

// MomentAt reads a time in Unix nanoseconds.
func (r *Reader) MomentAt(v *Value) int64 {
	if v == nil {
		return 0
	}
	moment, err := time.Parse(time.RFC3339, v.Text)
	if v.Type != Text || err != nil {
		r.Found.Add(r.Doc, v, "not a time like 2006-01-02T15:04:05Z%s", Shown(v))
		return 0
	}
	if year := moment.UTC().Year(); year < 1678 || year > 2261 {
		r.Found.Add(r.Doc, v, "not between the years 1678 and 2261%s", Shown(v))
		return 0
	}
	return moment.UnixNano()
}

// TextsAt reads a list of texts.
func (r *Reader) TextsAt(v *Value) []string {
	if !r.Is(v, List) {
		return nil
	}
	var texts []string
	for _, item := range v.Items {
		texts = append(texts, r.TextAt(item))
	}
	return texts
}

// QuantityAt reads a quantity, which must not be negative.
func (r *Reader) QuantityAt(v *Value) (resource.Quantity, bool) {
	if v.Type != Text && v.Type != Number {
		r.Found.Add(r.Doc, v, "not a quantity")
		return resource.Quantity{}, false
	}
	q, err := Quantity(v.Text)
	if err != nil {
		r.Found.Add(r.Doc, v, "%v", err)
		return resource.Quantity{}, false
	}
	if q.Sign() < 0 {
		r.Found.Add(r.Doc, v, "negative: %q", v.Text)
		return resource.Quantity{}, false
	}
	return q, true
}

// Is reports whether v is present and has a kind, and adds a problem if it has another one.
func (r *Reader) Is(v *Value, want Type) bool {
	if v == nil {
		return false
	}
	if v.Type == want {
		return true
	}
	if want == List {
		r.Found.Add(r.Doc, v, "not a list")
	} else {
		r.Found.Add(r.Doc, v, "not an object")
	}
	return false
}

// Shown returns a scalar for a message.
func Shown(v *Value) string {
	switch v.Type {
	case Text, Word, Number, Boolean:
		return ": " + strconv.Quote(v.Text)
	case Null, List, Map, Skipped:
	}
	return ""
}
