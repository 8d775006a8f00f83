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

// readPush reads the body of an onSessionOpen as it arrives.
func readPush(body io.Reader) (*push, error) {
	return readPruned(prune(inParts(body, chunk), pushShape))
}

// readPruned reads a push of which perhaps only the wanted parts are left.
func readPruned(body io.Reader) (*push, error) {
	p := &push{known: make(map[string]struct{})}
	// What a task does not say is the empty role and the empty request, both number 0.
	p.roles.of(nil)
	p.vectors.list, p.vectors.ids = []vector{{}}, map[string]int32{"": 0}
	d := jx.Decode(body, chunk)
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
