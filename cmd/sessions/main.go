// Command sessions is for development.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/adapter/volcano"
	"github.com/apportion/apportion/adapter/volcano/schedulerconf"
	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/cycle"
	engvol "github.com/apportion/apportion/engine/cycle/volcano"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/internal/decode"
)

type question struct {
	ID      string            `json:"id"`
	Session int               `json:"session"`
	Conf    string            `json:"conf"`
	AsOf    string            `json:"asOf"`
	Objects []json.RawMessage `json:"objects"`
}
type outcome struct {
	Phases    map[string]string `json:"phases"`
	Binds     map[string]string `json:"binds"`
	Evictions []string          `json:"evictions"`
	Pipelined map[string]string `json:"pipelined"`
	Nominated map[string]string `json:"nominated"`
}

func main() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	d := json.NewDecoder(in)
	for {
		var q question
		if err := d.Decode(&q); err != nil {
			return
		}
		o, err := answer(&q)
		outcomes := []*outcome{}
		if err != nil {
			fmt.Fprintln(os.Stderr, q.ID, q.Session, err)
		} else {
			outcomes = append(outcomes, o)
		}
		data, _ := json.Marshal(map[string]any{"id": q.ID, "session": q.Session, "outcomes": outcomes})
		out.Write(append(data, '\n'))
	}
}

func answer(q *question) (*outcome, error) {
	asOf, _ := time.Parse(time.RFC3339, q.AsOf)
	o := &outcome{Phases: map[string]string{}, Binds: map[string]string{}, Pipelined: map[string]string{}, Nominated: map[string]string{}}
	have := map[string]bool{}
	for _, raw := range q.Objects {
		var x struct {
			Kind     string
			Metadata struct{ Name, Namespace string }
			Status   struct{ Phase string }
		}
		json.Unmarshal(raw, &x)
		if x.Kind == "Queue" {
			have[x.Metadata.Name] = true
		}
		if x.Kind == "PodGroup" {
			o.Phases[x.Metadata.Namespace+"/"+x.Metadata.Name] = x.Status.Phase
		}
	}
	for _, n := range []string{"root", "default"} {
		if !have[n] {
			q.Objects = append(q.Objects, json.RawMessage(fmt.Sprintf(`{"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"Queue","metadata":{"name":%q},"spec":{"weight":1},"status":{"state":"Open"}}`, n)))
		}
	}
	c, err := volcano.FromObjects(q.Objects, volcano.WithAsOf(asOf), volcano.WithQueueDefaults())
	if err != nil {
		return nil, err
	}
	p, _, err := schedulerconf.Read(objects.Source{Name: "conf", Data: []byte(q.Conf)})
	if err != nil {
		return nil, err
	}
	var conf struct{ Actions string }
	if err := yaml.Unmarshal([]byte(q.Conf), &conf); err != nil {
		return nil, err
	}
	m, err := decode.Compile(c.Snapshot)
	if err != nil {
		return nil, err
	}
	pol, err := decode.Policy(p)
	if err != nil {
		return nil, err
	}
	s, err := engine.Open(m, pol, nil)
	if err != nil {
		return nil, err
	}
	v := s.View()
	name := func(t model.TaskID) string { return v.Jobs.At(v.Tasks.At(t).Job).Namespace + "/" + m.TaskName(t) }
	st := &cycle.State{Session: s, Told: func(d *cycle.Decision) {
		for _, x := range d.Victims {
			o.Evictions = append(o.Evictions, name(x.Task)+" "+string(d.Action))
		}
		for i, t := range d.Tasks {
			o.Binds[name(t)] = m.Nodes[d.Nodes[i]].Name
		}
	}}
	cy := &engvol.Cycle{}
	for _, a := range strings.Split(conf.Actions, ",") {
		cy.Actions = append(cy.Actions, cycle.Action(strings.TrimSpace(a)))
	}
	if err := cy.Run(st); err != nil {
		return nil, err
	}
	v = s.View()
	for j := range model.JobID(v.Jobs.Len()) {
		job := v.Jobs.At(j)
		o.Phases[job.Namespace+"/"+job.Name] = []string{"Pending", "Inqueue", "Running", "Unknown", "Completed"}[v.Phase(j)]
		for t := job.FirstTask; t < job.EndTask; t++ {
			if v.Status(t) == model.Pipelined {
				o.Pipelined[name(t)] = m.Nodes[v.NodeOf(t)].Name
			}
		}
	}
	for t, n := range cy.Nominated {
		o.Nominated[name(t)] = m.Nodes[n].Name
	}
	sort.Strings(o.Evictions)
	return o, nil
}
