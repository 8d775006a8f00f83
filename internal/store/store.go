// Package store keeps tables of keys and values in one file, for servers that remember something.
//
// A write is a transaction: it is on disk when Write returns, or not at all. One process at a time has the file. Each value carries a
// checksum, and the file the number of values of each table, so that a damaged file is an error when it is opened, and never a loss that
// is not noticed. The file is a database of bbolt.
package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"
	faults "go.etcd.io/bbolt/errors"
)

// Options of a store.
type Options struct {
	// Format names what is stored, with a version. A file of another format is refused.
	Format string
	// Tables of the store, which exist from the beginning.
	Tables []string
	// Later are those of Tables that a file lacks which an earlier program made: they are empty, and are made when it is opened to be
	// written.
	Later []string
	// ReadOnly opens a file that exists, together with others that read it.
	ReadOnly bool
	// Wait is how long another process may take to release the file. 0: a second.
	Wait time.Duration
}

// Entry is a key and value of a table. A nil value removes the key.
type Entry struct {
	Table      string
	Key, Value []byte
}

// Store is an open file. Writes and reads may be concurrent.
type Store struct {
	path    string
	options Options
	db      *bolt.DB
	// broken is true after a write that the database ended by a panic. It keeps its lock then, so that another write, or to close it, would
	// wait for ever.
	broken atomic.Bool
}

var (
	// ErrInUse says that another process has the file.
	ErrInUse = errors.New("another process uses it")
	// ErrDamaged says that the file does not hold what was written.
	ErrDamaged = errors.New("the file is damaged; restore a copy, or move it away to begin anew")
	errEmpty   = errors.New("it is empty")
)

// metaTable holds the format and the number of values of each table.
const metaTable = "apportion"

var formatKey = []byte("format")

// Open opens a file, or makes it. Errors name the file.
func Open(path string, o Options) (*Store, error) {
	s := &Store{path: path, options: o}
	if o.Wait == 0 {
		s.options.Wait = time.Second
	}
	if err := s.complete(); err != nil {
		return nil, s.fail(err)
	}
	fresh := s.Size() == 0
	err := guarded(func() (err error) {
		s.db, err = bolt.Open(path, 0o600, &bolt.Options{
			Timeout: s.options.Wait, NoFreelistSync: true, FreelistType: bolt.FreelistMapType, ReadOnly: o.ReadOnly, NoStatistics: true,
		})
		return err
	})
	switch {
	case err == nil:
		err = guarded(s.begin)
	case fresh && !errors.Is(err, faults.ErrTimeout):
		err = errors.Join(err, s.clear())
	}
	if err != nil {
		return nil, errors.Join(s.fail(err), s.Close())
	}
	return s, nil
}

// clear empties a new file of which only a part was written, as on a full disk, so that it is not taken for a damaged one.
func (s *Store) clear() error {
	const pages = 4 // What the database writes at first, at once.
	if n := s.Size(); n == 0 || n >= int64(pages*os.Getpagesize()) {
		return nil
	}
	return os.Truncate(s.path, 0)
}

// complete reads the whole file and returns an error if it is damaged. The database itself would find some damage only when it has begun to
// write, in goroutines of its own, where it would stop the process.
func (s *Store) complete() error {
	status, err := os.Stat(s.path)
	if errors.Is(err, fs.ErrNotExist) && !s.options.ReadOnly || err == nil && status.Size() == 0 && !s.options.ReadOnly {
		return nil
	}
	if err != nil {
		return err
	}
	if status.Size() == 0 {
		return errEmpty // The database would try to begin it, without the right to write.
	}
	return guarded(func() error {
		db, err := bolt.Open(s.path, 0o600, &bolt.Options{ReadOnly: true, Timeout: s.options.Wait})
		if named := (&fs.PathError{}); errors.Is(err, faults.ErrTimeout) || errors.As(err, &named) {
			return err
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		// The file is closed also if a page is damaged.
		defer func() { _ = db.Close() }()
		return db.View(func(tx *bolt.Tx) error {
			if tx.Size() > status.Size() {
				return fmt.Errorf("%w: it has %d bytes of %d", ErrDamaged, status.Size(), tx.Size())
			}
			if err := wholeFile(tx, s.path); err != nil {
				return err
			}
			if tx.Bucket([]byte(metaTable)) == nil {
				return nil
			}
			for _, table := range s.options.Tables {
				if err := s.each(tx, table, func(_, _ []byte) error { return nil }); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// begin makes the tables of a new file, and checks those of an old one.
func (s *Store) begin() error {
	fresh := false
	err := s.db.View(func(tx *bolt.Tx) error {
		meta := tx.Bucket([]byte(metaTable))
		if meta == nil {
			name, _ := tx.Cursor().First()
			if fresh = name == nil; !fresh {
				return errors.New("it is a database of something else")
			}
			return nil
		}
		if format := string(meta.Get(formatKey)); format != s.options.Format {
			return fmt.Errorf("its format is %q, not %q", format, s.options.Format)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if !fresh {
		return s.extend()
	}
	if s.options.ReadOnly {
		return errEmpty
	}
	return s.db.Update(func(tx *bolt.Tx) error { // An interrupted beginning leaves an empty file, which begins again.
		meta, err := tx.CreateBucket([]byte(metaTable))
		if err != nil {
			return err
		}
		for _, table := range s.options.Tables {
			if _, err := tx.CreateBucket([]byte(table)); err != nil {
				return err
			}
		}
		return meta.Put(formatKey, []byte(s.options.Format))
	})
}

// extend makes the tables that a file of an earlier program lacks.
func (s *Store) extend() error {
	if s.options.ReadOnly || len(s.options.Later) == 0 {
		return nil
	}
	missing := false
	err := s.db.View(func(tx *bolt.Tx) error {
		missing = slices.ContainsFunc(s.options.Later, func(table string) bool { return tx.Bucket([]byte(table)) == nil })
		return nil
	})
	if err != nil || !missing {
		return err
	}
	return s.db.Update(func(tx *bolt.Tx) error {
		for _, table := range s.options.Later {
			if _, err := tx.CreateBucketIfNotExists([]byte(table)); err != nil {
				return err
			}
		}
		return nil
	})
}

// Each calls use with all keys and values of a table, in the order of the keys; they are valid during the call.
func (s *Store) Each(table string, use func(key, value []byte) error) error {
	return s.fail(guarded(func() error {
		return s.db.View(func(tx *bolt.Tx) error { return s.each(tx, table, use) })
	}))
}

func (s *Store) each(tx *bolt.Tx, table string, use func(key, value []byte) error) error {
	bucket := tx.Bucket([]byte(table))
	if bucket == nil && slices.Contains(s.options.Later, table) && countOf(tx, table) == 0 {
		return nil
	}
	if bucket == nil {
		return fmt.Errorf("%w: table %s is missing", ErrDamaged, table)
	}
	count := uint64(0)
	err := bucket.ForEach(func(key, sealed []byte) error {
		count++
		value, err := unsealed(table, key, sealed)
		if err != nil {
			return err
		}
		return use(key, value)
	})
	if err != nil {
		return err
	}
	if stated := countOf(tx, table); stated != count {
		return fmt.Errorf("%w: table %s has %d values of %d", ErrDamaged, table, count, stated)
	}
	return nil
}

// Write stores entries, all or none. When it returns without an error they survive the process and the machine.
func (s *Store) Write(entries []Entry) error {
	if len(entries) == 0 {
		return nil
	}
	if s.broken.Load() {
		return s.fail(ErrDamaged)
	}
	panicked := true
	err := guarded(func() error {
		err := s.write(entries)
		panicked = false
		return err
	})
	if panicked {
		s.broken.Store(true)
	}
	return s.fail(err)
}

func (s *Store) write(entries []Entry) error {
	err := s.db.Update(func(tx *bolt.Tx) error {
		counts := map[string]uint64{}
		for i := range entries {
			if err := put(tx, counts, &entries[i]); err != nil {
				return err
			}
		}
		for table, count := range counts {
			if err := tx.Bucket([]byte(metaTable)).Put([]byte("count "+table), binary.AppendUvarint(nil, count)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	// The database falls back to the write before if the page is damaged that names the last one. After an empty write both of these
	// pages name what was written.
	return s.db.Update(func(*bolt.Tx) error { return nil })
}

func put(tx *bolt.Tx, counts map[string]uint64, e *Entry) error {
	bucket := tx.Bucket([]byte(e.Table))
	if bucket == nil {
		return fmt.Errorf("there is no table %s", e.Table)
	}
	count, known := counts[e.Table]
	if !known {
		count = countOf(tx, e.Table)
	}
	was := bucket.Get(e.Key) != nil
	switch {
	case e.Value != nil && !was:
		count++
	case e.Value == nil && was:
		count--
	}
	counts[e.Table] = count
	if e.Value == nil {
		return bucket.Delete(e.Key)
	}
	return bucket.Put(e.Key, sealed(e.Table, e.Key, e.Value))
}

func countOf(tx *bolt.Tx, table string) uint64 {
	n, _ := binary.Uvarint(tx.Bucket([]byte(metaTable)).Get([]byte("count " + table)))
	return n
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const checksumBytes = 4

// sealed appends to a value the checksum of table, key and value.
func sealed(table string, key, value []byte) []byte {
	return binary.BigEndian.AppendUint32(bytes.Clone(value), checksum(table, key, value))
}

func unsealed(table string, key, sealed []byte) ([]byte, error) {
	n := len(sealed) - checksumBytes
	if n < 0 || binary.BigEndian.Uint32(sealed[n:]) != checksum(table, key, sealed[:n]) {
		return nil, fmt.Errorf("%w: the checksum of %s %x differs", ErrDamaged, table, key)
	}
	return sealed[:n:n], nil
}

func checksum(table string, key, value []byte) uint32 {
	c := crc32.Update(0, castagnoli, []byte(table))
	return crc32.Update(crc32.Update(c, castagnoli, key), castagnoli, value)
}

// Backup writes a copy of the file as it is now, while others write on.
func (s *Store) Backup(to io.Writer) (int64, error) {
	n := int64(0)
	err := guarded(func() error {
		return s.db.View(func(tx *bolt.Tx) (err error) {
			n, err = tx.WriteTo(to)
			return err
		})
	})
	return n, s.fail(err)
}

// Size returns the bytes of the file.
func (s *Store) Size() int64 {
	if status, err := os.Stat(s.path); err == nil {
		return status.Size()
	}
	return 0
}

// Close releases the file; after a write that found it damaged, the end of the process does.
func (s *Store) Close() error {
	if s.db == nil || s.broken.Load() {
		return nil
	}
	return s.fail(s.db.Close())
}

// guarded turns panics of the database into errors, and also those of a file that is truncated while it is open.
func guarded(do func() error) (err error) {
	before := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(before)
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", ErrDamaged, p)
		}
	}()
	return do()
}

// fail adds the name of the file.
func (s *Store) fail(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, faults.ErrTimeout) {
		err = ErrInUse
	}
	if strings.Contains(err.Error(), s.path) {
		return err
	}
	return fmt.Errorf("%s: %w", s.path, err)
}
