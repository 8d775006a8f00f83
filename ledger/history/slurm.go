package history

import (
	"bufio"
	"cmp"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/apportion/apportion/internal/quantity"
	"github.com/apportion/apportion/ledger"
)

// slurmTask begins the names of tasks of Slurm. The cluster follows, if it is known, and a slash.
const slurmTask = "slurm/"

// slurm reads the output of sacct with its first line: JobID, Account, User, Start, End, AllocTRES, and perhaps Cluster and Suspended. The
// account is the queue, the user the owner; each run of a job is one task, of its cluster if that is stated.
func (r *reading) slurm(from io.Reader) error {
	lines := bufio.NewScanner(from)
	const longest = 1 << 20
	lines.Buffer(nil, longest)
	var t *table
	for line := 1; lines.Scan(); line++ {
		row := strings.Split(strings.TrimSuffix(lines.Text(), "\r"), "|")
		if t == nil {
			t = header(row)
			if err := t.needs("JobID", "Account", "User", "Start", "End", "AllocTRES"); err != nil {
				return err
			}
			continue
		}
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		t.row = row
		r.Rows++
		r.slurmJob(line, lines.Text(), t)
	}
	if t == nil && lines.Err() == nil {
		return errors.New("the file is empty")
	}
	return lines.Err()
}

func (r *reading) slurmJob(line int, row string, t *table) {
	id, start := t.field("JobID"), t.field("Start")
	if len(t.row) < len(t.columns) {
		r.bad(line, row, "the row has fewer columns than the first line")
		return
	}
	if strings.Contains(id, ".") || start == unknownTime || start == "None" || t.field("AllocTRES") == "" {
		// A step of a job, which the job contains, or a job that never started.
		r.Skipped++
		return
	}
	cluster := t.field("Cluster")
	switch {
	case id == "" || t.field("Account") == "":
		r.bad(line, row, "it names no job, or no account")
		return
	case t.has("Cluster") && cluster == "":
		r.bad(line, row, "it names no cluster")
		return
	}
	if cluster != "" {
		cluster += "/"
	}
	e := &ledger.Evidence{Task: slurmTask + cluster + id, Owner: t.field("User")}
	amounts, others, reason := tres(t.field("AllocTRES"))
	suspended, ok := elapsed(t.field("Suspended"))
	switch {
	case reason != "":
	case len(amounts) == 0:
		reason = "it has no resource that is counted, which are cpu, mem and gres/gpu"
	case !ok:
		reason = "Suspended is no time"
	}
	if reason != "" {
		r.bad(line, row, reason)
		return
	}
	for _, name := range others {
		r.notCounted(line, row, name)
	}
	if suspended > 0 {
		r.note(line, row, "the time for which the job was suspended does not count, as if it had ended sooner")
	}
	e.Amounts, e.Path = amounts, r.path(t.field("Account"))
	r.row(line, row, e, start, t.field("End"), suspended)
}

// notCounted reports a resource that is not counted.
func (r *reading) notCounted(line int, row, name string) {
	const most = 16
	if !r.uncounted[name] && len(r.uncounted) == most {
		name = "another resource"
	} else {
		r.uncounted[name] = true
	}
	r.note(line, row, name+" is not counted")
}

// tres reads Slurm's cpu=4,mem=16G,gres/gpu=2,node=1,billing=4. Devices are nvidia.com/gpu; a type of device (gres/gpu:a100) is part of
// gres/gpu, and stands for it where only types are stated. Others are the resources that are not counted; energy, billing, nodes and what
// a file system or network did are no resources that a job holds.
func tres(text string) (amounts map[string]int64, others []string, reason string) {
	amounts = map[string]int64{}
	var typed float64
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		dimension := dimensionOf(name)
		of := strings.HasPrefix(name, "gres/gpu:")
		if dimension == "" && !of {
			base, _, _ := strings.Cut(name, "/")
			if !slices.Contains([]string{"", "node", "billing", "energy", "pages", "vmem", "fs", "ic"}, base) {
				base, _, _ = strings.Cut(name, ":")
				others = append(others, base)
			}
			continue
		}
		if dimension == "memory" && value != "" && strings.ContainsAny(value[len(value)-1:], "KMGTP") {
			// Slurm's units of memory are powers of 1024.
			value += "i"
		}
		amount, err := quantity.Parse(cmp.Or(dimension, "nvidia.com/gpu"), value)
		switch {
		case err != nil || amount >= math.MaxInt64:
			return nil, nil, "AllocTRES has an amount of " + name + " that is no quantity"
		case of:
			typed += amount
		default:
			amounts[dimension] = int64(amount)
		}
	}
	if _, stated := amounts["nvidia.com/gpu"]; !stated && typed > 0 && typed < math.MaxInt64 {
		amounts["nvidia.com/gpu"] = int64(typed)
	}
	slices.Sort(others)
	return amounts, slices.Compact(others), ""
}

// dimensionOf returns the dimension of a resource of Slurm that is counted, "" of another.
func dimensionOf(name string) string {
	switch name {
	case "cpu":
		return "cpu"
	case "mem":
		return "memory"
	case "gres/gpu":
		return "nvidia.com/gpu"
	}
	return ""
}

// elapsed reads a time as sacct prints it, [days-]hours:minutes:seconds or minutes:seconds, in seconds; "" is none.
func elapsed(text string) (int64, bool) {
	if text == "" {
		return 0, true
	}
	days, clock, dated := strings.Cut(text, "-")
	if !dated {
		days, clock = "0", text
	}
	total, err := strconv.ParseInt(days, 10, 32)
	if err != nil || total < 0 {
		return 0, false
	}
	clock, _, _ = strings.Cut(clock, ".")
	parts := strings.Split(clock, ":")
	if len(parts) < 2 || len(parts) > 3 {
		return 0, false
	}
	seconds := int64(0)
	for _, part := range parts {
		n, err := strconv.ParseInt(part, 10, 32)
		if err != nil || n < 0 {
			return 0, false
		}
		seconds = 60*seconds + n
	}
	return 24*3600*total + seconds, true
}
