// Package sweep keeps the results of the runs of a rehearsal in a directory, so that several processes can share the runs, and a process
// that starts again repeats none.
//
// A directory has a file for each sweep, which lists its runs in order, and a file for each finished run, named by the digest of all that
// its result depends on. Both are written in full or not at all, so that any number of processes can use a directory at the same time:
// those with the same run write the same file.
package sweep

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/apportion/apportion/cmd/apportion/internal/rehearsal"
	"github.com/apportion/apportion/cmd/apportion/internal/report"
	"github.com/apportion/apportion/internal/text"
)

// Sweep is the runs of a rehearsal, and what its report says of all of them.
type Sweep struct {
	// Version is that of the program. Another one may have other results.
	Version string `json:"version"`
	// Shards is among how many processes the runs were divided the last time.
	Shards int    `json:"shards"`
	Runs   []Run  `json:"runs"`
	Report Report `json:"report"`
}

// Report is a report without results.
type Report = report.Report

// Run is a run of a sweep.
type Run struct {
	Name string `json:"name"`
	// Digest is that of the version and of all inputs of the run.
	Digest string `json:"digest"`
}

// Digest returns the digest under which results of a version are kept, of the digest of the inputs.
func Digest(version string, inputs [sha256.Size]byte) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %x", version, inputs))
	return hex.EncodeToString(sum[:])
}

// name returns the name of the file of a sweep, which depends on everything but the number of shards.
func (s *Sweep) name() (string, error) {
	one := *s
	one.Shards = 0
	data, err := json.Marshal(&one)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return prefix + hex.EncodeToString(sum[:6]) + suffix, nil
}

const prefix, suffix = "sweep-", ".json"

// Shard returns the number of the shard that a run belongs to, from 1 on.
func (s *Sweep) Shard(run int) int { return run%s.Shards + 1 }

// result is the file of a finished run. The digest of the outcome tells a damaged file.
type result struct {
	Run    string          `json:"run"`
	SHA256 string          `json:"sha256"`
	Result json.RawMessage `json:"result"`
}

// Directory has sweeps and results.
type Directory string

// Begin makes the directory if there is none, and writes the file of a sweep.
func (d Directory) Begin(s *Sweep) error {
	name, err := s.name()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(string(d), 0o755); err != nil { //nolint:gosec // As other files that commands write.
		return err
	}
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return d.write(name, append(data, '\n'))
}

// Save keeps the result of a run.
func (d Directory) Save(r Run, found *rehearsal.Result) error {
	data, err := json.Marshal(found)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	if data, err = json.Marshal(result{r.Digest, hex.EncodeToString(sum[:]), data}); err != nil {
		return err
	}
	return d.write(r.file(), data)
}

func (r Run) file() string { return "run-" + r.Digest + suffix }

// write writes a file, which is whole at any moment: there is none, or all of it.
func (d Directory) write(name string, data []byte) error {
	out, err := os.CreateTemp(string(d), "."+name+"-*")
	if err != nil {
		return err
	}
	_, err = out.Write(data)
	if err = errors.Join(err, out.Chmod(0o644), out.Sync(), out.Close()); err == nil {
		err = os.Rename(out.Name(), filepath.Join(string(d), name))
	}
	if err != nil {
		return errors.Join(err, os.Remove(out.Name()))
	}
	return nil
}

// Load returns the result of a run; done is false if there is none, or its file is damaged.
func (d Directory) Load(r Run) (found *rehearsal.Result, done bool, err error) {
	data, err := os.ReadFile(filepath.Join(string(d), r.file()))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	kept := r.read(data)
	if kept == nil {
		return nil, false, nil
	}
	found = &rehearsal.Result{}
	if err := json.Unmarshal(kept.Result, found); err != nil {
		return nil, false, fmt.Errorf("%s: %w", r.file(), err)
	}
	found.Name = r.Name
	return found, true, nil
}

// read returns the result that the content of a file has; nil if it is damaged, or that of another run.
func (r Run) read(data []byte) *result {
	kept := &result{}
	if err := json.Unmarshal(data, kept); err != nil || kept.Run != r.Digest {
		return nil
	}
	if sum := sha256.Sum256(kept.Result); hex.EncodeToString(sum[:]) != kept.SHA256 {
		return nil
	}
	return kept
}

// Find reads a sweep: that of a file, or the only one of a directory.
func Find(path string) (*Sweep, Directory, error) {
	about, err := os.Stat(path)
	if err != nil {
		return nil, "", err
	}
	if !about.IsDir() {
		s, err := read(path)
		return s, Directory(filepath.Dir(path)), err
	}
	files, err := filepath.Glob(filepath.Join(globbed(path), prefix+"*"+suffix))
	if err != nil {
		return nil, "", err
	}
	var all []*Sweep
	for _, file := range files {
		s, err := read(file)
		if err != nil {
			return nil, "", err
		}
		all = append(all, s)
	}
	switch len(all) {
	case 0:
		return nil, "", fmt.Errorf("%s has no sweep: a file %s*%s, which rehearse --results writes", path, prefix, suffix)
	case 1:
		return all[0], Directory(path), nil
	}
	return nil, "", different(path, files, all)
}

// globbed is a path as a pattern that matches it alone.
func globbed(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

func read(file string) (*Sweep, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	s := &Sweep{}
	if err := json.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("%s is no sweep: %w", file, err)
	}
	name, err := s.name()
	if err != nil {
		return nil, err
	}
	if s.Shards < 1 || len(s.Runs) == 0 || filepath.Base(file) != name {
		return nil, fmt.Errorf("%s is no sweep, or was changed: its content belongs to the name %s", file, name)
	}
	return s, nil
}

// different says that a directory has several sweeps, and in what they differ.
func different(path string, files []string, all []*Sweep) error {
	lines := []string{fmt.Sprintf("%s has results of %d sweeps, of different inputs or versions: name the file of one", path, len(all))}
	for i, s := range all {
		lines = append(lines, fmt.Sprintf("%s: %s of %s, version %s, the first is %s", files[i], text.Count(len(s.Runs), "run"),
			text.Count(s.Report.Trace.Jobs, "job"), s.Version, s.Runs[0].Name))
	}
	return errors.New(strings.Join(lines, "\n"))
}

// MissingError names the runs that have no result.
type MissingError struct {
	Sweep *Sweep
	// Runs are indexes.
	Runs []int
}

// Error names the shards that have them, and the first few runs.
func (e *MissingError) Error() string {
	var shards, names []string
	for _, run := range e.Runs {
		if shard := fmt.Sprintf("%d/%d", e.Sweep.Shard(run), e.Sweep.Shards); !slices.Contains(shards, shard) {
			shards = append(shards, shard)
		}
		names = append(names, e.Sweep.Runs[run].Name)
	}
	const most = 10
	more := ""
	if n := len(names) - most; n > 0 {
		names, more = names[:most], fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("%s of %d %s no result: %s%s; run these shards again: %s", text.Count(len(e.Runs), "run"), len(e.Sweep.Runs),
		text.Verb(len(e.Runs), "has", "have"), strings.Join(names, "; "), more, strings.Join(shards, ", "))
}

// Merge returns the report with the results of all runs.
func (d Directory) Merge(s *Sweep) (*Report, error) {
	whole := s.Report
	missing := &MissingError{Sweep: s}
	for i, run := range s.Runs {
		found, done, err := d.Load(run)
		if err != nil {
			return nil, err
		}
		if !done {
			missing.Runs = append(missing.Runs, i)
		}
		whole.Runs = append(whole.Runs, found)
	}
	if len(missing.Runs) > 0 {
		return nil, missing
	}
	return &whole, nil
}
