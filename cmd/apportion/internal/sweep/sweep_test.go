package sweep

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/cmd/apportion/internal/rehearsal"
)

// sample is a sweep of several runs with a directory of their results.
func sample(t *testing.T, runs int) (*Sweep, Directory) {
	t.Helper()
	// The name has what a pattern of file names would not take literally.
	d := Directory(filepath.Join(t.TempDir(), "re[sults*"))
	s := &Sweep{Version: "1.0.0", Shards: 3}
	s.Report.Trace.Notes = []string{}
	for i := range runs {
		s.Runs = append(s.Runs, Run{Name: fmt.Sprint("fair, seed ", i), Digest: Digest(s.Version, [32]byte{byte(i)})})
	}
	require.NoError(t, d.Begin(s))
	for i, run := range s.Runs {
		require.NoError(t, d.Save(run, &rehearsal.Result{Name: "once upon a time", Jobs: i, Fairness: 1.0 / 3, Queues: []rehearsal.Queue{}}))
	}
	return s, d
}

func TestResultsAreMergedInTheOrderOfTheRuns(t *testing.T) {
	s, d := sample(t, 7)
	found, at, err := Find(string(d))
	require.NoError(t, err)
	require.Equal(t, s, found)
	whole, err := at.Merge(found)
	require.NoError(t, err)
	require.Len(t, whole.Runs, 7)
	for i, run := range whole.Runs {
		require.Equal(t, &rehearsal.Result{Name: s.Runs[i].Name, Jobs: i, Fairness: 1.0 / 3, Queues: []rehearsal.Queue{}}, run)
	}
}

func TestRunsWithoutAWholeResultAreNamedWithTheirShards(t *testing.T) {
	for name, damage := range map[string]func(file string, data []byte) error{
		"lost":    func(file string, _ []byte) error { return os.Remove(file) },
		"cut":     func(file string, data []byte) error { return os.WriteFile(file, data[:len(data)-9], 0o600) },
		"empty":   func(file string, _ []byte) error { return os.WriteFile(file, nil, 0o600) },
		"changed": func(file string, data []byte) error { data[len(data)-30] ^= 1; return os.WriteFile(file, data, 0o600) },
		"of another run": func(file string, _ []byte) error {
			other, err := os.ReadFile(filepath.Join(filepath.Dir(file), Run{Digest: Digest("1.0.0", [32]byte{0})}.file()))
			if err != nil {
				return err
			}
			return os.WriteFile(file, other, 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, d := sample(t, 7)
			for _, i := range []int{1, 4, 5} {
				file := filepath.Join(string(d), s.Runs[i].file())
				data, err := os.ReadFile(file)
				require.NoError(t, err)
				require.NoError(t, damage(file, data))
			}
			_, err := d.Merge(s)
			require.EqualError(t, err, "3 runs of 7 have no result: fair, seed 1; fair, seed 4; fair, seed 5; run these shards again: 2/3, 3/3")
		})
	}
}

func TestManyMissingRunsAreCounted(t *testing.T) {
	s, d := sample(t, 0)
	for i := range 25 {
		s.Runs = append(s.Runs, Run{Name: fmt.Sprint(i), Digest: Digest("1", [32]byte{byte(i)})})
	}
	_, err := d.Merge(s)
	require.EqualError(t, err, "25 runs of 25 have no result: 0; 1; 2; 3; 4; 5; 6; 7; 8; 9 and 15 more; run these shards again: 1/3, 2/3, 3/3")
}

func TestSweepsOfDifferentInputsAreNotMerged(t *testing.T) {
	s, d := sample(t, 2)
	other := *s
	other.Version, other.Runs = "1.0.1", []Run{s.Runs[0]}
	require.NoError(t, d.Begin(&other))
	_, _, err := Find(string(d))
	require.ErrorContains(t, err, "has results of 2 sweeps, of different inputs or versions: name the file of one")
	require.ErrorContains(t, err, ".json: 2 runs of 0 jobs, version 1.0.0, the first is fair, seed 0")
	require.ErrorContains(t, err, ".json: 1 run of 0 jobs, version 1.0.1, the first is fair, seed 0")
	name, err := other.name()
	require.NoError(t, err)
	found, at, err := Find(filepath.Join(string(d), name))
	require.NoError(t, err)
	require.Equal(t, &other, found)
	require.Equal(t, d, at)
}

func TestTheSameSweepInAnotherNumberOfShardsIsTheSameFile(t *testing.T) {
	s, d := sample(t, 2)
	s.Shards = 40
	require.NoError(t, d.Begin(s))
	found, _, err := Find(string(d))
	require.NoError(t, err)
	require.Equal(t, 40, found.Shards)
}

func TestWhatIsNoSweepIsRefused(t *testing.T) {
	s, d := sample(t, 1)
	name, err := s.name()
	require.NoError(t, err)
	file := filepath.Join(string(d), name)
	for fault, text := range map[string]string{
		"is no sweep: unexpected end": `{"version": "1`,
		"is no sweep, or was changed": `{"version": "2", "shards": 1, "runs": [{"name": "a"}]}`,
		"or was changed":              `{}`,
	} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, _, err := Find(string(d))
		require.ErrorContains(t, err, fault)
	}
	require.NoError(t, os.Remove(file))
	_, _, err = Find(string(d))
	require.ErrorContains(t, err, "has no sweep: a file sweep-*.json, which rehearse --results writes")
	_, _, err = Find(file)
	require.ErrorIs(t, err, os.ErrNotExist)
}
