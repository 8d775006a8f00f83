package wire

import (
	"reflect"

	"github.com/apportion/apportion/engine/model"
)

// CompileInParts is Compile with the jobs read in n parts, however few they are.
func (d *Decoder) CompileInParts(data []byte, n int) (*model.Model, error) {
	size := Measure(data)
	return d.compile(data, Guard{Size: &size}, n)
}

// CompileSums is CompileWithin of a guard that says that only sums are asked for, in n parts.
func (d *Decoder) CompileSums(data []byte, n int) (*model.Model, error) {
	size := Measure(data)
	return d.compile(data, Guard{Size: &size, Sums: true}, n)
}

// CompileChangeInParts is CompileChange with the jobs read in n parts, however few they are.
func (d *Decoder) CompileChangeInParts(base *model.Model, data []byte, n int) (*model.Model, error) {
	size := Measure(data)
	return d.compileChange(base, data, Guard{Size: &size}, n)
}

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
