package model

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"math"
	"slices"

	"github.com/apportion/apportion/engine/resource"
)

// runs finds entries by the text that identifies them in a sequence that successive models extend: each run is an immutable index of the
// entries that one of them added. A run is at least four times as long as the next, so that there are few.
type runs struct{ list []sorted }

// find returns the position of a text among the entries that are still there.
func (x *runs) find(key string, of texts) (int32, bool) {
	if key == "" {
		return None, false
	}
	for i := len(x.list) - 1; i >= 0; i-- {
		if id, ok := x.list[i].find(key, of); ok {
			return id, true
		}
	}
	return None, false
}

// one returns the single run of an index that is built at once, and reuses the index's memory.
func (x *runs) one() *sorted {
	if len(x.list) != 1 {
		x.list = make([]sorted, 1)
	}
	return &x.list[0]
}

// with returns an index with another run. It merges runs that are not much longer, without the entries that gone reports.
func (x *runs) with(last sorted, gone func(id int32) bool) runs {
	if len(last.entries) == 0 {
		return *x
	}
	list, last := slices.Clip(x.list), sorted{entries: last.entries}
	for n := len(list); n > 0 && len(list[n-1].entries) < 4*len(last.entries); n = len(list) {
		last = merged(list[n-1], last, gone)
		list = slices.Clip(list[:n-1])
	}
	return runs{append(list, last)}
}

// merged returns one run of two, without the entries that gone reports.
func merged(l, r sorted, gone func(id int32) bool) sorted {
	entries := make([]uint64, 0, len(l.entries)+len(r.entries))
	for a, b := l.entries, r.entries; len(a)+len(b) > 0; {
		var e uint64
		if len(b) == 0 || len(a) > 0 && a[0] < b[0] {
			e, a = a[0], a[1:]
		} else {
			e, b = b[0], b[1:]
		}
		if !gone(int32(uint32(e))) {
			entries = append(entries, e)
		}
	}
	return sorted{entries: entries}
}

// bytes returns the memory of the entries.
func (x *runs) bytes() int64 {
	n := 0
	for i := range x.list {
		n += len(x.list[i].entries)
	}
	return 8 * int64(n)
}

// The texts of sorted indexes.
type (
	jobTexts  struct{ m *Model }
	taskTexts struct{ m *Model }
	// flatTexts identifies tasks that are not part of a model yet.
	flatTexts struct{ *flat }
	// requestTexts identifies requests by their amounts.
	requestTexts struct{ m *Model }
)

func (x jobTexts) tag(j int32) (uint32, bool) {
	uid := x.m.Jobs.At(JobID(j)).UID
	return tagOf(uid), uid != ""
}

func (x jobTexts) equal(l, r int32) bool { return x.is(l, x.m.Jobs.At(JobID(r)).UID) }

func (x jobTexts) is(j int32, key string) bool { return x.m.Jobs.At(JobID(j)).UID == key }

func (x jobTexts) gone(j int32) bool { return !x.m.HasJob(JobID(j)) }

func (x taskTexts) uid(t int32) []byte { return x.m.at(x.m.Tasks.At(TaskID(t)).uid) }

func (x taskTexts) tag(t int32) (uint32, bool) {
	uid := x.uid(t)
	return uint32(maphash.Bytes(seed, uid)), len(uid) > 0
}

func (x taskTexts) equal(l, r int32) bool { return bytes.Equal(x.uid(l), x.uid(r)) }

func (x taskTexts) is(t int32, key string) bool { return string(x.uid(t)) == key && !x.gone(t) }

func (x taskTexts) gone(t int32) bool { return !x.m.HasTask(TaskID(t)) }

func (x flatTexts) uid(t int32) []byte { return x.textAt(x.tasks[t].uid) }

func (x flatTexts) tag(t int32) (uint32, bool) {
	uid := x.uid(t)
	return uint32(maphash.Bytes(seed, uid)), len(uid) > 0
}

func (x flatTexts) equal(l, r int32) bool { return bytes.Equal(x.uid(l), x.uid(r)) }

func (x flatTexts) is(t int32, key string) bool { return string(x.uid(t)) == key }

func (x requestTexts) tag(r int32) (uint32, bool) {
	return uint32(maphash.Bytes(seed, requestKey(make([]byte, 0, maxKey), x.m.Requests[r]))), true
}

// equal is never called: no two requests of a model are equal except for absent cpu and memory.
func (x requestTexts) equal(int32, int32) bool { return false }

func (x requestTexts) is(r int32, key string) bool {
	return string(requestKey(make([]byte, 0, maxKey), x.m.Requests[r])) == key
}

// maxKey is the length of the longest key of a request.
const maxKey = 8 + 8*resource.MaxDimensions

// requestKey appends the key of a request: the set of its dimensions, and their amounts.
func requestKey(key []byte, request resource.Row) []byte {
	key = binary.LittleEndian.AppendUint64(key, uint64(request.Has))
	for m := request.Has; m != 0; m = m.Rest() {
		key = binary.LittleEndian.AppendUint64(key, math.Float64bits(request.V[m.First()]))
	}
	return key
}
