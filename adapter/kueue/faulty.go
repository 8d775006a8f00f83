package kueue

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy/kueue"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/wire"
	wirekueue "github.com/apportion/apportion/internal/wire/kueue"
)

// Faulty is an object that is left out.
type Faulty struct {
	Kind, Namespace, Name string
	// Fault is what is wrong with it, with its source, its name and the path of the field.
	Fault string
	// Detail is the first fault alone, from the path of the field on.
	Detail string
}

// refuse notes why no server would take an object, or why the policy would not judge it: within a snapshot that holds nothing else, so that
// objects that pass are judged beside any others.
func (r *reader) refuse(h *header, entity any) {
	if most := r.limits.TextBytes; most > 0 && int64(len(h.Metadata.Name)) > most {
		r.fault("metadata.name", "it has %d bytes, at most %d are taken", len(h.Metadata.Name), most)
		return
	}
	alone := alone(entity)
	if alone == nil {
		return
	}
	err := r.judge(alone)
	var violations *model.Error
	if fault, ok := errors.AsType[*wire.Fault](err); ok && fault.Violations != nil {
		violations = fault.Violations
	} else if of, ok := errors.AsType[*model.Error](err); ok {
		violations = of
	} else if err != nil {
		r.fault("", "%v", err)
		return
	}
	if violations == nil {
		return
	}
	for _, v := range violations.Violations {
		// The path begins with the position in the snapshot, which the object alone has.
		_, path, _ := strings.Cut(v.Path, "].")
		r.fault(strings.TrimPrefix(path, "kueue."), "%s", v.Detail)
	}
}

// judge returns why a snapshot would be refused by a server or by the policy.
func (r *reader) judge(s *apportionv1.Snapshot) error {
	data, err := proto.Marshal(s)
	if err != nil {
		return err
	}
	m, err := r.decoder.CompileWithin(data, wire.Guard{Limits: r.limits})
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
	s := &apportionv1.Snapshot{Kueue: &apportionv1.KueueSnapshot{}}
	switch e := entity.(type) {
	case *flavor:
		s.Kueue.Flavors = []*apportionv1.KueueFlavor{e.message}
	case *cohort:
		s.Kueue.Cohorts = []*apportionv1.KueueCohort{e.message}
	case *check:
		s.Kueue.Checks = []*apportionv1.KueueCheck{e.message}
	case *localQueue:
		s.Kueue.LocalQueues = []*apportionv1.KueueLocalQueue{e.message}
	case *clusterQueue:
		s.Queues = []*apportionv1.Queue{e.message}
	case *workload:
		job := proto.CloneOf(e.message)
		job.Queue = queueName
		s.Queues, s.Jobs = []*apportionv1.Queue{{Name: queueName, Kueue: &apportionv1.KueueQueue{}}}, []*apportionv1.Job{job}
	default:
		return nil
	}
	return s
}

// leaveOut leaves an object out of which the last faults are.
func (r *reader) leaveOut(h *header, faults int) {
	f := Faulty{Kind: h.Kind, Namespace: h.Metadata.Namespace, Name: h.Metadata.Name, Fault: "invalid", Detail: "invalid"}
	if listed := len(r.faults); listed > 0 {
		own := r.faults[max(0, listed-faults):]
		f.Fault, f.Detail = strings.Join(own, "; "), strings.TrimPrefix(own[0], r.prefix())
		if faults > 1 {
			f.Detail = fmt.Sprintf("%s, and %d more", r.shortened(f.Detail), faults-1)
		}
		r.faults = r.faults[:listed-len(own)]
	}
	r.total -= faults
	r.faulty = append(r.faulty, f)
	r.put(h.Kind, h.Metadata.key(), nil)
}

// tell adds the objects that are left out to the snapshot, in the order of their faults, up to the number that a snapshot lists.
func (r *reader) tell(s *apportionv1.Snapshot) {
	slices.SortFunc(r.faulty, compare)
	for i := range r.faulty {
		f := &r.faulty[i]
		s.LeftOut = append(s.LeftOut, &apportionv1.LeftOut{
			Cause: apportionv1.LeftOutCause_LEFT_OUT_CAUSE_INVALID, Kind: f.Kind, Namespace: r.shortened(f.Namespace),
			Name: r.shortened(f.Name), Detail: r.shortened(f.Detail),
		})
	}
	s.LeftOut = s.GetLeftOut()[:min(len(s.GetLeftOut()), model.MaxLeftOut)]
}

// compare orders faulty objects by what is wrong.
func compare(a, b Faulty) int { return strings.Compare(a.Kind+a.Fault, b.Kind+b.Fault) }

// shortened returns a text, cut so that it is a short text within the limits.
func (r *reader) shortened(text string) string {
	longest := 1000
	if most := r.limits.TextBytes; most > 0 {
		longest = int(min(int64(longest), most))
	}
	if len(text) <= longest {
		return text
	}
	end := longest - len("…")
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}
