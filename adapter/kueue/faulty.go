package kueue

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy/kueue"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	wirekueue "github.com/apportion/apportion/internal/decode/kueue"
)

// Refuse notes why no server would take an object, or why the policy would not judge it: within a snapshot that holds nothing else, so that
// objects that pass are judged beside any others.
func (r *reader) Refuse(root *objects.Value) {
	name, most := root.Field(objects.MetadataField).TextOf(objects.NameField), r.Limits.TextBytes
	if most > 0 && int64(len(name)) > most {
		r.Fault("metadata.name", "it has %d bytes, at most %d are taken", len(name), most)
		return
	}
	alone := alone(r.entity)
	if alone == nil {
		return
	}
	err := r.judge(alone)
	var violations *model.Error
	if fault, ok := errors.AsType[*decode.Fault](err); ok && fault.Violations != nil {
		violations = fault.Violations
	} else if of, ok := errors.AsType[*model.Error](err); ok {
		violations = of
	} else if err != nil {
		r.Fault("", "%v", err)
		return
	}
	if violations == nil {
		return
	}
	for _, v := range violations.Violations {
		// The path begins with the position in the snapshot, which the object alone has.
		_, path, _ := strings.Cut(v.Path, "].")
		r.Fault(strings.TrimPrefix(path, "kueue."), "%s", v.Detail)
	}
}

// judge returns why a snapshot would be refused by a server or by the policy.
func (r *reader) judge(s *apportionv1.Snapshot) error {
	data, err := proto.Marshal(s)
	if err != nil {
		return err
	}
	m, err := r.decoder.CompileWithin(data, decode.Guard{Limits: r.Limits})
	if err != nil {
		return err
	}
	cluster, err := wirekueue.ClusterOf(m)
	if err != nil {
		return err
	}
	_, err = kueue.Compile(cluster, kueue.Default())
	return err
}

// alone returns a snapshot that holds an object and a queue for it; nil for kinds that no snapshot holds.
func alone(entity any) *apportionv1.Snapshot {
	const queueName = "q"
	s := &apportionv1.Snapshot{}
	switch e := entity.(type) {
	case *flavor:
		s.NodeSets = []*apportionv1.NodeSet{e.message}
	case *cohort:
		s.Dimensions, s.Queues = e.names, []*apportionv1.Queue{e.message}
	case *localQueue:
		own := &apportionv1.KueueQueue{LocalQueues: []*apportionv1.KueueLocalQueue{e.message}}
		s.Dimensions, s.Queues = e.names, []*apportionv1.Queue{{Name: queueName, Kueue: own}}
	case *clusterQueue:
		s.Dimensions, s.Queues = e.names, []*apportionv1.Queue{e.message}
	case *workload:
		job := proto.CloneOf(e.message)
		job.Queue = queueName
		s.Dimensions, s.Queues, s.Jobs = e.names, []*apportionv1.Queue{{Name: queueName}}, []*apportionv1.Job{job}
	default:
		return nil
	}
	return s
}

// leave leaves out an object that was read without a problem; a reader that is not lenient fails for it.
func (r *reader) leave(of objects.Identity, format string, args ...any) {
	f := r.Leave(of, r.Origin(of), format, args...)
	if !r.Lenient {
		r.Found.AppendError(f.Problems)
		return
	}
	r.remove(of.Kind, (&objects.Metadata{Namespace: of.Namespace, Name: of.Name}).Full())
}

// tell adds the objects that are left out to the snapshot, by kind and fault, up to the number that a snapshot lists.
func (r *reader) tell(s *apportionv1.Snapshot) {
	slices.SortStableFunc(r.Faulty, func(a, b *objects.Faulty) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.String(), b.String()))
	})
	for _, f := range r.Faulty {
		s.LeftOuts = append(s.LeftOuts, r.LeftOut(f))
	}
	s.LeftOuts = s.GetLeftOuts()[:min(len(s.GetLeftOuts()), model.MaxLeftOut)]
}
