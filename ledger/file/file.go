// Package file keeps a ledger on disk.
//
//	f, err := file.Open("usage.ledger", ledger.Options{})
//	err = f.Update(func(l *ledger.Ledger) error { return l.Enter(&evidence, now) })
//
// What Update took in without an error survives the end of the process and of the machine at any moment. A file has one process at a time.
package file

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/apportion/apportion/internal/store"
	"github.com/apportion/apportion/ledger"
)

// ErrDamaged says that the file does not hold what was written. After a write that finds it so, no later one stores anything.
var ErrDamaged = store.ErrDamaged

// File is a ledger on disk. It is safe for concurrent use.
type File struct {
	// storing is held while changes are written, mutex while the ledger is in use: a disk that hangs holds no reader up.
	storing, mutex sync.Mutex

	ledger *ledger.Ledger
	store  *store.Store
	write  func([]store.Entry) error
}

// Open opens the ledger of a file, or makes it. It fails if another process has the file, if the file is damaged or is no ledger, and if
// its epochs have another length than the options say; every error names the file.
func Open(path string, o ledger.Options) (*File, error) { return open(path, o, false) }

// Read opens a ledger that exists, without changing the file.
func Read(path string, o ledger.Options) (*File, error) { return open(path, o, true) }

// Epoch returns the length of an epoch of a ledger that exists.
func Epoch(path string) (epoch time.Duration, err error) {
	s, err := store.Open(path, store.Options{Format: ledger.Format, Tables: []string{string(ledger.TableHead)}, ReadOnly: true})
	if err != nil {
		return 0, err
	}
	err = s.Each(string(ledger.TableHead), func(_, value []byte) error {
		epoch, err = ledger.EpochIn(value)
		return err
	})
	if err == nil && epoch == 0 {
		err = fmt.Errorf("%s: the ledger has no head", path)
	}
	return epoch, errors.Join(err, s.Close())
}

func open(path string, o ledger.Options, readOnly bool) (*File, error) {
	l, err := ledger.New(o)
	if err != nil {
		return nil, err
	}
	var tables []string
	for _, table := range ledger.Tables() {
		tables = append(tables, string(table))
	}
	var later []string
	for _, table := range ledger.Later() {
		later = append(later, string(table))
	}
	s, err := store.Open(path, store.Options{Format: ledger.Format, Tables: tables, Later: later, ReadOnly: readOnly})
	if err != nil {
		return nil, err
	}
	f := &File{ledger: l, store: s, write: s.Write}
	for _, table := range ledger.Tables() {
		err := s.Each(string(table), func(key, value []byte) error {
			return l.Load(ledger.Entry{Table: table, Key: key, Value: value})
		})
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	l.Stored()
	return f, nil
}

// View calls read with the ledger, which must not change it.
func (f *File) View(read func(*ledger.Ledger)) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	read(f.ledger)
}

// Change calls change with the ledger, and leaves it to the next Update to store what changed.
func (f *File) Change(change func(*ledger.Ledger)) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	change(f.ledger)
}

// Update calls change with the ledger and stores what changed, also before. If it cannot be stored, the ledger keeps it in memory, and the
// next Update tries again.
func (f *File) Update(change func(*ledger.Ledger) error) error {
	f.storing.Lock()
	defer f.storing.Unlock()
	f.mutex.Lock()
	fault := change(f.ledger)
	changes, back := f.ledger.Take()
	f.mutex.Unlock()
	entries := make([]store.Entry, len(changes))
	for i, e := range changes {
		entries[i] = store.Entry{Table: string(e.Table), Key: e.Key, Value: e.Value}
	}
	err := f.write(entries)
	if err != nil {
		f.mutex.Lock()
		defer f.mutex.Unlock()
		back()
	}
	return errors.Join(fault, err)
}

// Backup writes a copy of what is stored, while the file is in use.
func (f *File) Backup(to io.Writer) error {
	_, err := f.store.Backup(to)
	return err
}

// Copy writes a copy of what is stored to a file, which is whole at any moment: the one before, or the new one.
func (f *File) Copy(path string) error {
	out, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	if err = errors.Join(f.Backup(out), out.Sync(), out.Close()); err == nil {
		err = os.Rename(out.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(out.Name()))
	}
	return nil
}

// Size returns the bytes of the file.
func (f *File) Size() int64 { return f.store.Size() }

// Close releases the file. What was not stored before is not stored.
func (f *File) Close() error { return f.store.Close() }
