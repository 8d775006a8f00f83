// Package sessions compares our cycles with recorded whole sessions of Volcano: what each of three sessions in a row binds, evicts,
// promises and writes into the phases of jobs.
//
// A session with one recorded outcome is certain: ours is exactly this one, names of nodes included unless outcomes without them are
// recorded too. One with several is by chance: ours is one of them, names of nodes aside.
package sessions

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/adapter/volcano"
	"github.com/apportion/apportion/adapter/volcano/schedulerconf"
	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/cycle"
	session "github.com/apportion/apportion/engine/cycle/volcano"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/test/recording"
)

// Tally counts sessions.
type Tally struct {
	Clusters, Certain, Chance, Different int
	// Differences says what differs, by cluster and session.
	Differences map[string]string
}

// String is the line that sums up.
func (t *Tally) String() string {
	return fmt.Sprintf("sessions: clusters=%d certain=%d chance=%d different=%d", t.Clusters, t.Certain, t.Chance, t.Different)
}

// Compare plays the clusters of a file, or of those of a folder.
func Compare(path string) (*Tally, error) {
	t := &Tally{Differences: map[string]string{}}
	for line, err := range recording.Lines(path) {
		if err != nil {
			return nil, err
		}
		var c Cluster
		if err := json.Unmarshal(line.Data, &c); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", line.File, line.Number, err)
		}
		t.Clusters++
		c.States(func(number int, before []object, s *Session) bool {
			t.compare(&c, number, before, s)
			return true
		})
	}
	return t, nil
}

func (t *Tally) compare(c *Cluster, number int, before []object, s *Session) {
	named := len(s.Outcomes) == 1 && len(s.Unnamed) == 0
	var seen []string
	for i := range s.Outcomes {
		seen = append(seen, s.Outcomes[i].form(named))
	}
	for i := range s.Unnamed {
		seen = append(seen, s.Unnamed[i].form(false))
	}
	slices.Sort(seen)
	if seen = slices.Compact(seen); len(seen) == 1 {
		t.Certain++
	} else {
		t.Chance++
	}
	got, err := Play(c.Conf, before)
	if err != nil {
		t.differ(c, number, err.Error())
	} else if ours := got.form(named); !slices.Contains(seen, ours) {
		t.differ(c, number, fmt.Sprintf("(one of %d outcomes)\n  Volcano %s\n  ours    %s", len(seen), seen[0], ours))
	}
}

func (t *Tally) differ(c *Cluster, number int, what string) {
	t.Different++
	t.Differences[fmt.Sprintf("%s session %d", c.ID, number)] = what
}

// form is what is compared of an outcome, as a text; without names the nodes are left out.
func (o *Outcome) form(named bool) string {
	pairs := func(m map[string]string, values bool) string {
		var list []string
		for k, v := range m {
			if values {
				k += "=" + v
			}
			list = append(list, k)
		}
		slices.Sort(list)
		return strings.Join(list, " ")
	}
	evictions := slices.Clone(o.Evictions)
	slices.Sort(evictions)
	return fmt.Sprintf("phases %s; binds %s; evicts %s; promises %s",
		pairs(o.Phases, true), pairs(o.Binds, named), strings.Join(evictions, ", "), pairs(o.Pipelined, named))
}

// asOf is the instant of all recorded sessions.
var asOf = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

// Play runs one session on a cluster.
func Play(conf string, list []object) (*Outcome, error) {
	data, err := encoded(list)
	if err != nil {
		return nil, err
	}
	cluster, err := volcano.FromObjects(data, volcano.WithAsOf(asOf))
	if err != nil {
		return nil, err
	}
	read, _, err := schedulerconf.Read(objects.Source{Name: "volcano-scheduler.conf", Data: []byte(conf)})
	if err != nil {
		return nil, err
	}
	m, err := decode.Compile(cluster.Snapshot)
	if err != nil {
		return nil, err
	}
	policy, err := decode.Policy(read)
	if err != nil {
		return nil, err
	}
	s, err := engine.Open(m, policy, nil)
	if err != nil {
		return nil, err
	}
	o := &Outcome{Phases: map[string]string{}, Binds: nodes{}, Pipelined: nodes{}, Nominated: map[string]string{}}
	for _, x := range list {
		if x.kind() == "PodGroup" {
			// One whose queue does not exist is not in the session.
			o.Phases[x.key()] = x.part("status").text("phase")
		}
	}
	return o, run(s, policy.Actions, o)
}

// run runs a session and notes what it does.
func run(s *engine.Session, actions []string, o *Outcome) error {
	m := s.View().Model
	pod := func(t model.TaskID) string { return m.Jobs.At(m.Tasks.At(t).Job).Namespace + "/" + m.TaskName(t) }
	c := session.Cycle{}
	for _, a := range actions {
		c.Actions = append(c.Actions, cycle.Action(a))
	}
	state := &cycle.State{Session: s, Told: func(d *cycle.Decision) {
		for _, v := range d.Victims {
			o.Evictions = append(o.Evictions, pod(v.Task)+" "+string(d.Action))
		}
		for i, t := range d.Tasks {
			o.Binds[pod(t)] = m.Nodes[d.Nodes[i]].Name
		}
	}}
	if err := c.Run(state); err != nil {
		return err
	}
	phases := [...]string{"Pending", "Inqueue", "Running", "Unknown", "Completed"}
	v := s.View()
	for j := range model.JobID(v.Jobs.Len()) {
		job := v.Jobs.At(j)
		o.Phases[job.Namespace+"/"+job.Name] = phases[v.Phase(j)]
		for t := job.FirstTask; t < job.EndTask; t++ {
			if v.Status(t) == model.Pipelined {
				o.Pipelined[pod(t)] = m.Nodes[v.NodeOf(t)].Name
			}
		}
	}
	for t, n := range c.Nominated {
		o.Nominated[pod(t)] = m.Nodes[n].Name
	}
	return nil
}
