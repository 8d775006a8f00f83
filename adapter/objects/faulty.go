package objects

import (
	"cmp"
	"fmt"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Faulty is an object that is left out of a cluster, because it is invalid or because the snapshot has no room for it.
type Faulty struct {
	// Kind, Namespace and Name are empty where they cannot be read.
	Kind, Namespace, Name string
	Problems              *Error
	// At is where the object was written.
	At Origin
	// Queue is that of a job, as far as it is known. Entity is what the adapter could read of the object; nil: nothing.
	Queue  string
	Entity any
}

// String names the object and its first problem.
func (f *Faulty) String() string {
	name := f.Name
	if name == "" {
		name = "at " + f.At.String()
	}
	return fmt.Sprintf("%s %s: %s", cmp.Or(f.Kind, "object"), fullName(f.Namespace, name), f.Detail())
}

// Detail returns the first problem, and the number of the others.
func (f *Faulty) Detail() string {
	first := f.Problems.Problems[0]
	text := first.Message
	if first.Path != "" {
		text = first.Path + ": " + text
	}
	if more := f.Problems.Total - 1; more > 0 {
		text = fmt.Sprintf("%s, and %d more", text, more)
	}
	return text
}

// Leave leaves out an object that was read without a problem.
func (r *Reader) Leave(of Identity, at Origin, format string, args ...any) *Faulty {
	why := &Error{Problems: []Problem{at.problem(format, args...)}, Total: 1}
	f := &Faulty{Kind: of.Kind, Namespace: of.Namespace, Name: of.Name, Problems: why, At: at}
	r.Faulty = append(r.Faulty, f)
	r.Read--
	return f
}

// LeftOut returns a faulty object as a snapshot lists it.
func (r *Reader) LeftOut(f *Faulty) *apportionv1.LeftOut {
	return &apportionv1.LeftOut{
		Cause: apportionv1.LeftOutCause_LEFT_OUT_CAUSE_INVALID, Kind: r.Shortened(f.Kind), Namespace: r.Shortened(f.Namespace),
		Name: r.Shortened(f.Name), Queue: r.Shortened(f.Queue), Detail: r.Shortened(f.Detail()),
	}
}
