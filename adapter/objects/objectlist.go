package objects

import (
	"slices"
	"strings"
)

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
