package history

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/apportion/apportion/internal/store"
)

// format names what files hold.
const format = "apportion history 1"

// Tables of a file. Values are JSON, but for samples.
const (
	stateTable  = "state"
	jobTable    = "jobs"
	queueTable  = "queues"
	sampleTable = "samples"
)

var tables = []string{stateTable, jobTable, queueTable, sampleTable}

// stateKey is the one key of stateTable.
const stateKey = "state"

// place is a value of a file.
type place struct{ table, key string }

// Open returns the history in a file, which is made if there is none. Without a path it is in memory.
func Open(path string, o Options) (*History, error) {
	if path == "" {
		return New(o), nil
	}
	file, err := store.Open(path, store.Options{Format: format, Tables: tables})
	if err != nil {
		return nil, err
	}
	h := New(o)
	h.file = file
	if err := h.load(); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return h, nil
}

// load reads the file.
func (h *History) load() error {
	damaged := func(table string, err error) error {
		return fmt.Errorf("%w: table %s: %w", store.ErrDamaged, table, err)
	}
	read := func(table string, use func(key string, value []byte) error) error {
		return h.file.Each(table, func(key, value []byte) error {
			if err := use(string(key), value); err != nil {
				return damaged(table, err)
			}
			return nil
		})
	}
	if err := read(stateTable, func(_ string, value []byte) error { return json.Unmarshal(value, &h.state) }); err != nil {
		return err
	}
	h.state.Step = max(h.state.Step, int64(h.options.Step), 1)
	err := read(jobTable, func(id string, value []byte) error {
		r := &record{}
		if err := json.Unmarshal(value, r); err != nil {
			return err
		}
		if len(r.Intervals) == 0 {
			return fmt.Errorf("job %q has no interval", id)
		}
		h.jobs[id] = r
		if other, ok := h.names[r.Name]; !ok || h.jobs[other].since() < r.since() {
			h.names[r.Name] = id
		}
		h.jobBytes += r.bytes(id)
		return nil
	})
	if err != nil {
		return err
	}
	err = read(queueTable, func(name string, value []byte) error {
		q := &series{}
		h.queues[name] = q
		h.sampleBytes += seriesBytes + 2*int64(len(name))
		return json.Unmarshal(value, q)
	})
	if err != nil {
		return err
	}
	return read(sampleTable, func(key string, value []byte) error {
		n := len(key) - binary.Size(uint64(0))
		if n < 0 || h.queues[key[:n]] == nil {
			return fmt.Errorf("sample %q is of no queue", key)
		}
		var s sample
		if !s.decode(int64(binary.BigEndian.Uint64([]byte(key[n:]))), value, len(h.state.Dimensions)) {
			return fmt.Errorf("%q is no sample", key)
		}
		q := h.queues[key[:n]]
		q.samples = append(q.samples, s)
		h.sampleBytes += s.bytes()
		return nil
	})
}

// save stores what has changed.
func (h *History) save() error {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.file == nil {
		clear(h.changed)
		return nil
	}
	entries := make([]store.Entry, 0, len(h.changed))
	for p := range h.changed {
		value, err := h.value(p)
		if err != nil {
			return err
		}
		entries = append(entries, store.Entry{Table: p.table, Key: []byte(p.stored()), Value: value})
	}
	// In the order of keys, the pages of a table are written one after the other.
	slices.SortFunc(entries, func(a, b store.Entry) int {
		return cmp.Or(cmp.Compare(a.Table, b.Table), slices.Compare(a.Key, b.Key))
	})
	h.mutex.Unlock()
	err := h.file.Write(entries)
	h.mutex.Lock()
	if err == nil {
		clear(h.changed)
	}
	return err
}

// stored is the key in the file, which may not be empty.
func (p place) stored() string {
	if p.table == stateTable {
		return stateKey
	}
	return p.key
}

// value returns the encoded value of a place; nil if it is no more.
func (h *History) value(p place) ([]byte, error) {
	switch p.table {
	case stateTable:
		return json.Marshal(&h.state)
	case jobTable:
		if r := h.jobs[p.key]; r != nil {
			return json.Marshal(r)
		}
	case queueTable:
		if q := h.queues[p.key]; q != nil {
			return json.Marshal(q)
		}
	case sampleTable:
		n := len(p.key) - binary.Size(uint64(0))
		if q := h.queues[p.key[:n]]; q != nil {
			from := int64(binary.BigEndian.Uint64([]byte(p.key[n:])))
			i, found := slices.BinarySearchFunc(q.samples, from, func(s sample, from int64) int { return cmp.Compare(s.From, from) })
			if found {
				return q.samples[i].encode(), nil
			}
		}
	}
	return nil, nil
}

// Size returns the bytes of the file; 0 without one.
func (h *History) Size() int64 {
	if h.file == nil {
		return 0
	}
	return h.file.Size()
}

// Bytes is about the memory that the history takes.
func (h *History) Bytes() int64 {
	h.mutex.RLock()
	defer h.mutex.RUnlock()
	return h.jobBytes + h.sampleBytes
}

// Close releases the file.
func (h *History) Close() error {
	if h.file == nil {
		return nil
	}
	return h.file.Close()
}
