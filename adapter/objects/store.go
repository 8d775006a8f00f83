package objects

import (
	"errors"
	"hash/maphash"
	"slices"
	"strings"
	"sync"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Object holds the fields of one object that are read: about half a kilobyte of a pod. It is immutable.
type Object struct {
	// Namespace is "" for kinds without namespaces.
	Namespace, Name, ResourceVersion string
	// Synced is true for the bookmark that an API server sends after the objects that existed when the watch began.
	Synced bool

	// content is nil for a bookmark.
	content *Content
}

// Content is what was read of an object. Equal objects share it.
type Content struct {
	// Kind is that of the object. Key identifies it within its kind. API servers order lists by it.
	Kind, Key string
	// Entity is what an adapter keeps of the object; nil if that is nothing.
	Entity   any
	Warnings []*apportionv1.Warning
	// Fault says that the object is left out; nil if it is not.
	Fault *Faulty
	// Sum is a hash of the fields that are read. An adapter that keeps less may set another one.
	Sum uint64
}

// Store holds the objects of a cluster as a watch tells of them. It is safe for concurrent use.
type Store struct {
	mutex sync.Mutex
	seed  maphash.Seed
	shape *Shape
	kinds map[string]*objectList
	// read reads one object into a Content that has its key. changed is called with the kind after an object was set or removed, or all of
	// the kind were replaced.
	read    func(doc *Document, root *Value, into *Content)
	changed func(kind string)
	buffer  []byte
}

// NewStore returns an empty Store. It calls read for one object at a time, with the fields that the shape selects, and changed with a kind
// whenever objects of that kind have changed; both under its lock.
func NewStore(shape *Shape, read func(doc *Document, root *Value, into *Content), changed func(kind string)) *Store {
	// A watch needs these beside what is read.
	shape = Annotated(Union(shape, Select(MetadataField+"."+ResourceVersionField)), syncedAnnotation)
	return &Store{seed: maphash.MakeSeed(), shape: shape, kinds: map[string]*objectList{}, read: read, changed: changed}
}

// syncedAnnotation marks the bookmark that ends the first objects of a watch (Kubernetes' metav1.InitialEventsAnnotationKey).
const syncedAnnotation = "k8s.io/initial-events-end"

// Read reads one object in JSON; without a kind of its own it has the given one.
func (s *Store) Read(kind Kind, data []byte) (*Object, error) {
	root, err := Scan(kind.Name, data, s.shape)
	if err != nil {
		return nil, err
	}
	return s.object(kind, root)
}

// ReadList reads one page of a list in JSON.
func (s *Store) ReadList(kind Kind, data []byte) (read []*Object, next, resourceVersion string, err error) {
	list, items, err := ReadItems(kind.Name+" list", data, s.shape)
	if err != nil {
		return nil, "", "", err
	}
	for _, item := range items {
		object, err := s.object(kind, item)
		if err != nil {
			return nil, "", "", err
		}
		read = append(read, object)
	}
	metadata := list.Field(MetadataField)
	return read, metadata.TextOf("continue"), metadata.TextOf(ResourceVersionField), nil
}

// object makes an Object from the fields of a manifest.
func (s *Store) object(kind Kind, root *Value) (*Object, error) {
	if root.Type != Map {
		return nil, errors.New(kind.Name + ": not an object")
	}
	metadata := root.Field(MetadataField)
	out := &Object{
		Namespace: metadata.TextOf(namespaceField), Name: metadata.TextOf(NameField),
		ResourceVersion: metadata.TextOf(ResourceVersionField),
		Synced:          metadata.Field(AnnotationsField).TextOf(syncedAnnotation) == "true",
	}
	if metadata != nil {
		metadata.Items = slices.DeleteFunc(metadata.Items, func(v *Value) bool { return v.Key == ResourceVersionField })
	}
	root.take(kind)
	if out.Name == "" {
		return out, nil // A bookmark.
	}
	key := fullName(out.Namespace, out.Name)
	// The names share the memory of the key.
	out.Namespace, out.Name = key[:len(out.Namespace)], key[len(key)-len(out.Name):]
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.buffer = AppendJSON(s.buffer[:0], root)
	sum := maphash.Bytes(s.seed, s.buffer)
	if held := s.kind(kind.Name).byKey[key]; held != nil && held.Sum == sum {
		out.content = held
		return out, nil
	}
	out.content = &Content{Kind: kind.Name, Key: key, Sum: sum}
	s.read(&Document{Name: kind.Name + " " + key}, root, out.content)
	return out, nil
}

// kind returns the list of a kind.
func (s *Store) kind(name string) *objectList {
	list := s.kinds[name]
	if list == nil {
		list = &objectList{byKey: map[string]*Content{}}
		s.kinds[name] = list
	}
	return list
}

// Put sets an object that was read. It reports whether anything changes by it.
func (s *Store) Put(object *Object) (changed bool) {
	c := object.content
	if c == nil {
		return false
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if held := s.kind(c.Kind).byKey[c.Key]; held == c || held != nil && held.Sum == c.Sum {
		return false
	}
	s.kind(c.Kind).put(c)
	s.changed(c.Kind)
	return true
}

// Remove removes an object. It reports whether it was there.
func (s *Store) Remove(object *Object) (changed bool) {
	c := object.content
	if c == nil {
		return false
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	list := s.kind(c.Kind)
	if list.byKey[c.Key] == nil {
		return false
	}
	list.remove(c.Key)
	s.changed(c.Kind)
	return true
}

// Replace makes these the objects of a kind. It reports whether anything changes by it.
func (s *Store) Replace(kind Kind, objects []*Object) (changed bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	old, list := s.kind(kind.Name), &objectList{byKey: make(map[string]*Content, len(objects))}
	changed = len(old.byKey) != len(objects)
	for _, object := range objects {
		c := object.content
		if c == nil {
			continue
		}
		if held := old.byKey[c.Key]; held != nil && held.Sum == c.Sum {
			c = held
		} else {
			changed = true
		}
		list.put(c)
	}
	s.kinds[kind.Name], list.whole = list, true
	if changed {
		s.changed(kind.Name)
	}
	return changed
}

// Count returns the number of objects of a kind.
func (s *Store) Count(kind Kind) int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return len(s.kind(kind.Name).byKey)
}

// View gives the objects by kind, in the order of their keys, and whether all of a kind were given at once. They stay until it returns.
func (s *Store) View(view func(list func(kind string) (objects []*Content, whole bool))) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	view(func(kind string) ([]*Content, bool) {
		held := s.kind(kind)
		return held.inOrder(), held.whole
	})
}

// objectList holds the objects of a kind.
type objectList struct {
	byKey map[string]*Content
	// ordered is the sorted list as of the last inOrder: without objects added since, and with those replaced or removed since.
	ordered []*Content
	fresh   []*Content
	// stale says that ordered contains objects that were replaced or removed.
	stale bool
	// whole: all objects of the kind were given at once.
	whole bool
}

func (l *objectList) put(c *Content) {
	l.stale = l.stale || l.byKey[c.Key] != nil
	l.byKey[c.Key] = c
	l.fresh = append(l.fresh, c)
}

func (l *objectList) remove(key string) {
	delete(l.byKey, key)
	l.stale = true
}

// inOrder returns the objects in the order of their keys.
func (l *objectList) inOrder() []*Content {
	if len(l.fresh) == 0 && !l.stale {
		return l.ordered
	}
	gone := func(c *Content) bool { return l.byKey[c.Key] != c }
	fresh := slices.DeleteFunc(l.fresh, gone)
	slices.SortFunc(fresh, byKey)
	// An object that was set, removed and set again to the same content occurs twice.
	fresh = slices.Compact(fresh)
	merged := make([]*Content, 0, len(l.byKey))
	for _, c := range l.ordered {
		if gone(c) {
			continue
		}
		for len(fresh) > 0 && fresh[0].Key <= c.Key {
			if fresh[0] != c {
				merged = append(merged, fresh[0])
			}
			fresh = fresh[1:]
		}
		merged = append(merged, c)
	}
	merged = append(merged, fresh...)
	l.ordered, l.fresh, l.stale = merged, nil, false
	return l.ordered
}

func byKey(a, b *Content) int { return strings.Compare(a.Key, b.Key) }
