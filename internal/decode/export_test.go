package decode

import (
	"reflect"

	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Reread returns what a slot holds that read one message and then another.
func Reread[M any](before, data []byte) (*M, bool) {
	s, of := slot[M]{}, tableOf[M]()
	return &s.m, s.fill(of, before) && s.fill(of, data)
}

// NewTable builds the table of any type of struct, and returns why it cannot.
func NewTable(message reflect.Type) (fault string) {
	_, fault = newTable(message)
	return fault
}

// ReadTask is what counting knows of a task without a name and a detail.
type ReadTask struct {
	UID    string
	Status apportionv1.TaskStatus
	Node   model.NodeID
}

// ReadTasks returns a task as both readers of tasks read it, nil where one does not.
func ReadTasks(data []byte) (plain, whole *ReadTask) {
	if uid, status, node, ok := plainTask(data); ok {
		plain = &ReadTask{string(uid), status, node}
	}
	if t := (task{}); t.read(data) && t.name == nil && t.detail == nil {
		whole = &ReadTask{string(t.uid), t.status, t.node}
	}
	return plain, whole
}
