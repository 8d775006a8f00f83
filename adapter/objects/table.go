package objects

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation/path"
)

// Resource is a kind of objects, and how a cluster lists them.
type Resource struct {
	// Kind is the name of the kind, and Group that of its API; "" is Kubernetes' core.
	Kind, Group string
	// Versions are those that a cluster may serve, the newest first. Objects of older ones are read alike.
	Versions, Older []string
	// List is the name of the list in the API; "" if the kind is never listed from a cluster.
	List string
	// Namespaced lists may be readable in one namespace only.
	Namespaced bool
	// Needed lists are required for any answer. Most answers depend on lists that decide, and are not known without them.
	Needed, Decides bool
	// Judges names what is not judged without the list, which then lacks nothing else. Answers are complete without it.
	Judges string
	// Named is the only name that is read; "" for all.
	Named string
}

// Version is the apiVersion of a version of the kind.
func (s *Resource) Version(version string) string {
	if s.Group == "" {
		return version
	}
	return s.Group + "/" + version
}

// Path is the path of the list in a version.
func (s *Resource) Path(version string) string {
	if s.Group == "" {
		return "/api/" + version + "/" + s.List
	}
	return "/apis/" + s.Group + "/" + version + "/" + s.List
}

// Newest names the kind in its newest version.
func (s *Resource) Newest() Kind { return Kind{Name: s.Kind, Version: s.Version(s.Versions[0])} }

// Kind names a kind of objects by their kind and apiVersion.
type Kind struct{ Name, Version string }

// String gives apiVersion and kind.
func (k Kind) String() string { return strings.TrimPrefix(k.Version+" "+k.Name, " ") }

// Adapter keeps what objects mean, in a Reader that it embeds.
type Adapter interface {
	// Base returns the Reader.
	Base() *Reader
	// Hides reports whether an object does not count, because another one does.
	Hides(of Identity, root *Value) bool
	// Mark notes what is kept. It is called before each object.
	Mark()
	// Refuse adds problems of what was kept since the mark, which has none by itself: those for which every server would refuse it.
	Refuse(root *Value)
	// Undo keeps nothing of what was kept since the mark, because the object is faulty. It returns what could be read of it, for Faulty.
	Undo() any
}

// Row says what reads a kind.
type Row[A Adapter] struct {
	Resource

	// Shape is what is read of an object, beside what all objects have.
	Shape *Shape
	// Read reads an object, whose name is its own within its kind. nil: the objects are known, and nothing of them is needed.
	Read func(A, Metadata, *Value)
}

// Table has a row for each kind that an adapter reads.
type Table[A Adapter] struct {
	rows []Row[A]
	// byKind are the rows by the name of their kind: two groups may have kinds of one name.
	byKind map[string][]*Row[A]
	shape  *Shape
}

// NewTable returns the table of some rows. Its order is that in which a cluster's objects are given.
func NewTable[A Adapter](rows ...Row[A]) *Table[A] {
	t := &Table[A]{rows: rows, byKind: map[string][]*Row[A]{}, shape: headShape}
	for i := range rows {
		t.byKind[rows[i].Kind] = append(t.byKind[rows[i].Kind], &rows[i])
		t.shape = Union(t.shape, rows[i].Shape)
	}
	return t
}

// Shape selects what is read of any object: its kind often comes last.
func (t *Table[A]) Shape() *Shape { return t.shape }

// Resources are the kinds of the table that a cluster lists, in its order.
func (t *Table[A]) Resources() []*Resource {
	var list []*Resource
	for i := range t.rows {
		if t.rows[i].List != "" {
			list = append(list, &t.rows[i].Resource)
		}
	}
	return list
}

// Resource returns a kind of the table; nil if it is not there.
func (t *Table[A]) Resource(kind string) *Resource {
	for _, row := range t.byKind[kind] {
		return &row.Resource
	}
	return nil
}

// Each reads the objects of sources.
func (t *Table[A]) Each(a A, sources []Source) {
	r := a.Base()
	for _, source := range sources {
		before := r.Objects
		Each(source, t.shape, &r.Found, func(doc *Document, root *Value) { t.Object(a, doc, root) })
		if r.Objects == before && r.Found.Total == 0 {
			r.Empty = append(r.Empty, source.Name)
		}
		r.sources += len(source.Data)
	}
}

// Object reads one object, and accounts for it.
func (t *Table[A]) Object(a A, doc *Document, root *Value) {
	r := a.Base()
	r.advance(doc, root)
	r.Doc, r.root = doc, root
	r.Objects++
	warned, found := r.Warnings, r.Found
	r.Found = Problems{}
	a.Mark()
	f := &Faulty{At: Origin{Doc: doc, At: root.At}}
	row := t.row(r, root, f)
	if row != nil && r.identify(a, root, f) {
		if row.Read != nil {
			row.Read(a, r.meta, root)
		}
		if row.Read != nil && r.Found.Total == 0 {
			a.Refuse(root)
		}
		if r.Found.Total == 0 {
			r.Read++
		}
	}
	own := r.Found
	if r.Found = found; own.Total == 0 {
		return
	}
	if !r.Lenient {
		r.Found.Append(&own)
		return
	}
	f.Problems, f.Entity, r.Warnings = own.All(), a.Undo(), warned
	r.Faulty = append(r.Faulty, f)
}

// row returns the row of an object. Without one the object is of a kind that is not read, or it is faulty, or it is an empty list.
func (t *Table[A]) row(r *Reader, root *Value, f *Faulty) *Row[A] {
	if root.Type != Map {
		r.Found.Add(r.Doc, root, "not an object of Kubernetes")
		return nil
	}
	kind := Kind{Name: r.TextAt(root.Field(KindField))}
	if kind.Name == "" {
		r.Found.Add(r.Doc, root, "not an object of Kubernetes: no kind")
		return nil
	}
	f.Kind, kind.Version = kind.Name, r.TextAt(root.Field(VersionField))
	name := root.Field(MetadataField).TextOf(NameField)
	if of, list := strings.CutSuffix(kind.Name, "List"); list && name == "" {
		// An empty list: of another one its objects are visited.
		r.Listed[of] = true
		r.Lists++
		return nil
	}
	for _, row := range t.byKind[kind.Name] {
		group, version, grouped := strings.Cut(kind.Version, "/")
		if !grouped {
			group, version = "", kind.Version
		}
		switch {
		case row.Named != "" && row.Named != name, kind.Version != "" && group != row.Group:
		case kind.Version == "" || slices.Contains(row.Versions, version) || slices.Contains(row.Older, version):
			return row
		default:
			var known []string
			for _, of := range slices.Backward(row.Versions) {
				known = append(known, row.Version(of))
			}
			f.Namespace, f.Name = root.Field(MetadataField).TextOf(namespaceField), name
			r.Found.Add(r.Doc, root.Field(VersionField), "%q is not read; there are %s", kind.Version, strings.Join(known, " and "))
			return nil
		}
	}
	r.skip(kind, root)
	return nil
}

// identify reads an object's metadata. It is false if the object has no name, or does not count, or if another one of its kind has the same
// name.
func (r *Reader) identify(a Adapter, root *Value, f *Faulty) bool {
	v := root.Field(MetadataField)
	m := Metadata{
		Name: r.TextAt(v.Field(NameField)), Namespace: r.TextAt(v.Field(namespaceField)), UID: r.TextAt(v.Field("uid")),
		Created: r.MomentAt(v.Field("creationTimestamp")),
		Labels:  v.Field("labels"), Annotations: v.Field(AnnotationsField), Value: v,
	}
	r.meta, f.Namespace, f.Name = m, m.Namespace, m.Name
	if m.Name == "" {
		r.Found.Add(r.Doc, root, "%s without metadata.name", f.Kind)
		return false
	}
	for _, name := range []string{m.Name, m.Namespace} {
		for _, why := range path.IsValidPathSegmentName(name) {
			r.Found.Add(r.Doc, root, "no name of Kubernetes: %q %s", r.Shortened(name), why)
		}
	}
	id := Identity{Kind: f.Kind, Namespace: m.Namespace, Name: m.Name}
	if a.Hides(id, root) {
		r.Hidden++
		return false
	}
	if first, ok := r.seen[id]; ok {
		found := &r.Found
		if r.Lenient && first.Doc.Name != r.Doc.Name {
			// With two files it is not known which one is meant.
			found = &r.Clashes
		}
		found.Add(r.Doc, root, "%s %s is already at %s", f.Kind, m.Full(), first)
		return false
	}
	r.seen[id] = f.At
	return true
}

// Metadata are the fields that are read of every object.
type Metadata struct {
	Name, Namespace, UID string
	// Created is in Unix nanoseconds; 0: not known.
	Created             int64
	Labels, Annotations *Value
	Value               *Value
}

// Full returns namespace/name, or name without a namespace.
func (m *Metadata) Full() string { return fullName(m.Namespace, m.Name) }

func fullName(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// headShape is what is read of every object.
var headShape = &Shape{Fields: Fields{
	VersionField: Leaf, KindField: Leaf,
	MetadataField: {Fields: Fields{NameField: Leaf, namespaceField: Leaf, "uid": Leaf, "creationTimestamp": Leaf}},
}}

// Identity distinguishes objects.
type Identity struct{ Kind, Namespace, Name string }

// Listing names the lists that most answers depend on, as `kubectl get` takes them; those of systems of their own with their group.
func Listing(kinds []*Resource) string {
	var lists []string
	for _, kind := range kinds {
		if !kind.Needed && !kind.Decides {
			continue
		}
		if name := kind.List; kind.Group == "" || strings.HasSuffix(kind.Group, "k8s.io") {
			lists = append(lists, name)
		} else {
			lists = append(lists, name+"."+kind.Group)
		}
	}
	return strings.Join(lists, ",")
}
