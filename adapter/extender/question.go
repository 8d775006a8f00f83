package extender

import (
	"bytes"
	"io"

	"github.com/go-faster/jx"

	"github.com/apportion/apportion/engine/model"
)

// jobState is the job of a question: its identity, and the current state of its tasks.
type jobState struct {
	uid   string
	tasks []taskState
}

// readState reads the identity and the state of a TaskInfo.
func readState(d *jx.Decoder) (taskState, error) {
	t := taskState{status: model.Unknown}
	err := object(d, func(d *jx.Decoder, name []byte) error {
		switch string(name) {
		case "UID":
			return setText(d, &t.uid)
		case "NodeName":
			return setText(d, &t.node)
		case statusField:
			return setStatus(d, &t.status)
		}
		return d.Skip()
	})
	return t, err
}

// readEvent reads the body of an allocate or a deallocate.
func readEvent(body io.Reader) (task taskState, err error) {
	err = decodeBody(body, only("task", func(d *jx.Decoder) (err error) {
		task, err = readState(d)
		return err
	}))
	return task, err
}

// decode calls member for each needed member of a question, while it arrives, and reads the body to its end.
func decodeBody(body io.Reader, member func(d *jx.Decoder, name []byte) error) error {
	if err := object(jx.Decode(prune(inParts(body, chunkOfQuestion), questionShape), chunkOfQuestion/4), member); err != nil {
		return err
	}
	return drain(body)
}

const (
	// chunkOfQuestion is the size of one read of a question.
	chunkOfQuestion = 32 << 10
	// readingBytes is the memory for reading a question in addition to the memory of its result.
	readingBytes = chunkOfQuestion + chunkOfQuestion/4
)

// Memory that a list needs for each element, without its texts but with the spare capacity of a growing list.
const (
	taskStateBytes = 2 * 40
	nodeNameBytes  = 2 * 16
	evicteeBytes   = 2 * 40
)

// readJob reads the body of a jobEnqueueable or a jobReady.
func readJob(body io.Reader, kept *share) (job jobState, err error) {
	task := func(d *jx.Decoder, _ []byte) error {
		t, err := readState(d)
		if err == nil {
			err = kept.take(taskStateBytes + len(t.uid) + len(t.node))
		}
		job.tasks = append(job.tasks, t)
		return err
	}
	err = decodeBody(body, only("job", func(d *jx.Decoder) error {
		return object(d, func(d *jx.Decoder, name []byte) error {
			switch string(name) {
			case "UID":
				return setText(d, &job.uid)
			case tasksField:
				return object(d, task)
			}
			return d.Skip()
		})
	}))
	return job, err
}

// readName reads one text of an object and skips the rest.
func readName(d *jx.Decoder, name string) (read string, err error) {
	err = member(d, name, func(d *jx.Decoder) error { return setText(d, &read) })
	return read, err
}

// readQueue reads the body of a queueOverused.
func readQueue(body io.Reader) (queue string, err error) {
	err = decodeBody(body, only("queue", func(d *jx.Decoder) (err error) {
		queue, err = readName(d, nameField)
		return err
	}))
	return queue, err
}

// readPredicate reads the body of a predicate.
func readPredicate(body io.Reader) (task, node string, err error) {
	err = decodeBody(body, func(d *jx.Decoder, name []byte) (err error) {
		switch string(name) {
		case "task":
			task, err = readName(d, "UID")
		case "node":
			node, err = readName(d, nameField)
		default:
			err = d.Skip()
		}
		return err
	})
	return task, node, err
}

// readPrioritize reads the body of a prioritize.
func readPrioritize(body io.Reader, kept *share) (task string, nodes []string, err error) {
	err = decodeBody(body, func(d *jx.Decoder, name []byte) (err error) {
		switch string(name) {
		case "task":
			task, err = readName(d, "UID")
		case "nodes":
			err = array(d, func(d *jx.Decoder) error {
				node, err := readName(d, nameField)
				if err == nil {
					err = kept.take(nodeNameBytes + len(node))
				}
				nodes = append(nodes, node)
				return err
			})
		default:
			err = d.Skip()
		}
		return err
	})
	return task, nodes, err
}

// eviction asks which tasks a task may evict.
type eviction struct {
	claimant string
	// offered is the number of evictees.
	offered int
	// uids and sent are parallel: the evictees that may be echoed, and their bytes.
	uids []string
	sent []jx.Raw
}

// readEviction reads the body of a preemptable or a reclaimable. The result refers to it.
func readEviction(body []byte, kept *share) (e eviction, err error) {
	err = object(jx.DecodeBytes(body), func(d *jx.Decoder, name []byte) (err error) {
		switch string(name) {
		case "evictor":
			e.claimant, err = readName(d, "UID")
		case "evictees":
			err = array(d, func(d *jx.Decoder) error {
				e.offered++
				raw, err := d.Raw()
				if err != nil {
					return err
				}
				uid, err := readEvictee(raw)
				if err != nil || uid == "" {
					return err
				}
				e.uids, e.sent = append(e.uids, uid), append(e.sent, raw)
				return kept.take(evicteeBytes + len(uid))
			})
		default:
			err = d.Skip()
		}
		return err
	})
	return e, err
}

// needed lists the members of a task without which Volcano panics.
var needed = [...]string{requestField, "InitResreq", "NumaInfo", "Pod"}

// readEvictee returns the uid of a task that may be echoed, or nothing. Volcano uses the objects of the answer as its own tasks: without a
// request, pod or topology the scheduler would dereference a nil pointer. Volcano's own tasks have all of them. Names are compared without
// case, and the last of several members counts, as in Go's decoder.
func readEvictee(raw jx.Raw) (uid string, err error) {
	var there [len(needed)]bool
	err = object(jx.DecodeBytes(raw), func(d *jx.Decoder, name []byte) error {
		if bytes.EqualFold(name, []byte("UID")) {
			return setText(d, &uid)
		}
		for i, member := range needed {
			if bytes.EqualFold(name, []byte(member)) {
				there[i] = d.Next() == jx.Object
			}
		}
		return d.Skip()
	})
	if there != [len(needed)]bool{true, true, true, true} {
		uid = ""
	}
	return uid, err
}
