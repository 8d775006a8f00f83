package decisionlog

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/setting"
)

// Store is a directory of snapshots and policies by digest. It may be used by one goroutine at a time.
type Store struct {
	directory string
	maximum   int64
	files     []stored
	known     map[string]bool
	bytes     int64
}

// stored is a file of a store.
type stored struct {
	name  string
	bytes int64
	at    time.Time
}

// The endings of files in a store.
const (
	snapshotEnding = ".snapshot.pb"
	changeEnding   = ".change.pb"
	policyEnding   = ".policy.json"
)

// OpenStore returns the store in a directory, which is created if necessary. Beyond maximum bytes the oldest files are removed; 0 is the
// default of the setting decision_log.store_bytes.
func OpenStore(directory string, maximum int64) (*Store, error) {
	if maximum <= 0 {
		maximum = int64(setting.Default[setting.DecisionLog]().StoreBytes)
	}
	const private = 0o750
	if err := os.MkdirAll(directory, private); err != nil {
		return nil, err
	}
	s := &Store{directory: directory, maximum: maximum, known: map[string]bool{}}
	files, err := os.ReadDir(directory)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		about, err := file.Info()
		if err != nil || !strings.HasSuffix(file.Name(), snapshotEnding) &&
			!strings.HasSuffix(file.Name(), changeEnding) && !strings.HasSuffix(file.Name(), policyEnding) {
			continue
		}
		s.add(stored{file.Name(), about.Size(), about.ModTime()})
	}
	slices.SortFunc(s.files, func(l, r stored) int { return l.at.Compare(r.at) })
	return s, nil
}

func (s *Store) add(f stored) {
	s.files = append(s.files, f)
	s.known[f.name] = true
	s.bytes += f.bytes
}

func fileOf(digest, ending string) string { return strings.ReplaceAll(digest, ":", "-") + ending }

// Snapshot stores the bytes of a snapshot.
func (s *Store) Snapshot(digest string, data []byte) error {
	return s.write(fileOf(digest, snapshotEnding), data)
}

// Change stores the change that makes the snapshot of a digest of another one. The file holds the digest of the base in a line of its own,
// and the bytes of the change.
func (s *Store) Change(digest, base string, data []byte) error {
	return s.write(fileOf(digest, changeEnding), slices.Concat([]byte(base), []byte{'\n'}, data))
}

// Policy stores a policy under the digest of its canonical form.
func (s *Store) Policy(digest string, policy *apportionv1.Policy) error {
	if s.known[fileOf(digest, policyEnding)] {
		return nil
	}
	data, err := protojson.Marshal(policy)
	if err != nil {
		return err
	}
	return s.write(fileOf(digest, policyEnding), data)
}

// write creates a file atomically.
func (s *Store) write(name string, data []byte) error {
	if s.known[name] {
		return nil
	}
	path := filepath.Join(s.directory, name)
	file, err := os.CreateTemp(s.directory, ".writing-*")
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	s.add(stored{name, int64(len(data)), time.Now()})
	for s.bytes > s.maximum && len(s.files) > 1 {
		oldest := s.files[0]
		if err := os.Remove(filepath.Join(s.directory, oldest.name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		s.files = s.files[1:]
		delete(s.known, oldest.name)
		s.bytes -= oldest.bytes
	}
	return nil
}

// ErrNotStored is returned for a digest that is not in a store.
var ErrNotStored = errors.New("it is not stored")

// ReadSnapshot reads a snapshot of a store's directory.
func ReadSnapshot(directory, digest string) ([]byte, error) {
	return read(directory, fileOf(digest, snapshotEnding))
}

// ReadChange reads the change that makes the snapshot of a digest of another one, from a store's directory.
func ReadChange(directory, digest string) (base string, data []byte, err error) {
	file, err := read(directory, fileOf(digest, changeEnding))
	if err != nil {
		return "", nil, err
	}
	line, data, _ := bytes.Cut(file, []byte{'\n'})
	return string(line), data, nil
}

// ReadPolicy reads a policy of a store's directory.
func ReadPolicy(directory, digest string) (*apportionv1.Policy, error) {
	data, err := read(directory, fileOf(digest, policyEnding))
	if err != nil {
		return nil, err
	}
	policy := &apportionv1.Policy{}
	if err := protojson.Unmarshal(data, policy); err != nil {
		return nil, err
	}
	if decode.PolicyDigest(policy) != digest {
		return nil, errors.New("the digest of the stored policy does not match its name")
	}
	return policy, nil
}

func read(directory, name string) ([]byte, error) {
	if filepath.Base(name) != name {
		return nil, ErrNotStored
	}
	data, err := os.ReadFile(filepath.Join(directory, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotStored
	}
	return data, err
}
