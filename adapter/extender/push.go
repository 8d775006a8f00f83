package extender

import (
	"io"

	"github.com/go-faster/jx"

	"github.com/apportion/apportion/engine/model"
)

// push is what is kept of the body of an onSessionOpen: everything that a model is built from, each thing once, and nothing else. Volcano
// writes jobs before the nodes and queues that they refer to, so the Builder can only be fed once all has been read.
type push struct {
	vectors vectors
	roles   names
	classes names
	places  names

	jobs    []jobRecord
	tasks   []taskRecord
	details []model.Detail
	nodes   []nodeRecord
	queues  []queueRecord
	strays  []strayRecord
	// known are the uids of all tasks.
	known map[string]struct{}

	// read is how many bytes were decoded, groups how many roles the jobs set a minimum for.
	read, groups int64

	pod podRecord
	one jx.Decoder
}

type taskRecord struct {
	uid, name   string
	created     int64
	request     int32
	role        int32
	node        int32
	priority    int32
	index       int32
	detail      int32
	status      model.Status
	gate        model.Gate
	preemptable bool
}

type jobRecord struct {
	uid, name, namespace, queue string
	created                     int64
	priority, minAvailable      int32
	phase                       model.Phase
	minResources                vector
	roles                       []roleMinimum
	// tasks are push.tasks[first:end].
	first, end int
}

type roleMinimum struct {
	role    int32
	minimum int32
}

type nodeRecord struct {
	name        string
	allocatable vector
	group       string
	labelled    bool
}

type queueRecord struct {
	name, parent, path, weights     string
	weight                          int32
	priority                        int32
	state                           model.QueueState
	unreclaimable                   bool
	capability, guarantee, deserved vector
	affinity                        *model.NodeAffinity
	created                         int64
}

// strayRecord is a task on a node that is no task of a job read so far.
type strayRecord struct {
	uid     string
	node    int32
	request int32
}

const (
	// chunk is how much of a body is read at a time.
	chunk = 128 << 10
	none  = -1
)

// readPruned reads a push of which perhaps only the wanted parts are left.
func readPruned(body io.Reader, most bound) (*push, error) {
	p := &push{known: make(map[string]struct{}), vectors: vectors{bound: most}}
	// What a task does not say is the empty role and the empty request, both number 0.
	p.roles.of(nil)
	p.vectors.list, p.vectors.ids = []vector{{}}, map[string]int32{"": 0}
	d := jx.Decode(counting{body, &p.read}, chunk)
	err := object(d, func(d *jx.Decoder, name []byte) error {
		switch string(name) {
		case "Jobs":
			return within("Jobs", object(d, p.job))
		case "Nodes":
			return within("Nodes", object(d, p.node))
		case "Queues":
			return within("Queues", object(d, p.queue))
		}
		return d.Skip()
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// held returns what is wrong with what has been read so far, given the texts of what was read last.
func (p *push) held(texts ...string) error {
	if err := p.vectors.short(texts...); err != nil {
		return err
	}
	return p.vectors.within(p.size())
}
