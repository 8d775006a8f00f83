package extender

import (
	"io"

	"github.com/go-faster/jx"

	"github.com/apportion/apportion/engine/model"
)

// push holds the parts of an onSessionOpen's body from which the model is built. Volcano writes jobs before the nodes and queues that they
// refer to, so the Builder can run only after the whole body has been read.
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

	// read is the number of bytes decoded, groups the number of roles with a minimum in all jobs.
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

// strayRecord is a task on a node that belongs to no job read so far.
type strayRecord struct {
	uid     string
	node    int32
	request int32
}

const (
	// chunk is the size of one read of a body.
	chunk = 128 << 10
	none  = -1
)

// readPruned reads a push, which may be pruned.
func readPruned(body io.Reader, most bound) (*push, error) {
	p := &push{known: make(map[string]struct{}), vectors: vectors{bound: most}}
	// A task without a role or a request has the empty one, number 0.
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

// held returns an error if the push read so far is too large, or one of these texts is too long.
func (p *push) held(texts ...string) error {
	if err := p.vectors.short(texts...); err != nil {
		return err
	}
	return p.vectors.within(p.size())
}
