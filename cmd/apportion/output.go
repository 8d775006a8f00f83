package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/document"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// The formats of answers.
const (
	formatTable  = "table"
	formatJSON   = "json"
	formatYAML   = "yaml"
	formatBinary = "binary"
)

// question is a command's work once its input is read.
type question struct {
	*asking
	*input
	decider *client.Client
}

// ask lets the command ask, with --watch again and again.
func (a *asking) ask(ctx context.Context, do func(context.Context, *question) error) error {
	if err := a.output.check(); err != nil {
		return err
	}
	return a.repeat(ctx, func(ctx context.Context) error { return a.once(ctx, do) })
}

// once reads the input, finds who decides, and lets the command ask once.
func (a *asking) once(ctx context.Context, do func(context.Context, *question) error) error {
	loaded, err := a.input.load(ctx, a.streams)
	if err != nil {
		return err
	}
	return a.askAbout(ctx, loaded, do)
}

// askAbout is ask with an input that was read.
func (a *asking) askAbout(ctx context.Context, loaded *input, do func(context.Context, *question) error) error {
	decider, ctx, done, err := a.server.decider(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := a.output.checkResources(loaded.snapshot); err != nil {
		return err
	}
	return loaded.named(do(ctx, &question{asking: a, input: loaded, decider: decider}))
}

// check refuses formats that do not exist.
func (f *outputFlags) check() error {
	switch f.format {
	case formatTable, formatJSON, formatYAML:
		return nil
	}
	return fmt.Errorf("--output: %q is neither table, json nor yaml", f.format)
}

// printer shows tables about the answer that rests on basis, after its warnings.
func (q *question) printer(basis *apportionv1.Basis) *render.Printer {
	return &render.Printer{
		Style: q.output.style(q.out), Out: q.out, Snapshot: q.snapshot, Names: q.snapshot.Names(basis), Resources: q.output.resources,
	}
}

// warn writes the warnings of the input and of the answer.
func (q *question) warn(basis *apportionv1.Basis) {
	render.Warnings(q.err, q.warnings)
	render.Warnings(q.err, q.placed(unsaid(basis.GetWarnings(), q.warnings)))
}

// unsaid leaves out plugins that a warning about the configuration has named already, by file and line.
func unsaid(warnings, said []*apportionv1.Warning) []*apportionv1.Warning {
	const undecided = apportionv1.WarningCode_WARNING_CODE_PLUGIN_UNDECIDED
	if !slices.ContainsFunc(said, func(w *apportionv1.Warning) bool { return w.GetCode() == undecided }) {
		return warnings
	}
	return slices.DeleteFunc(slices.Clone(warnings), func(w *apportionv1.Warning) bool { return w.GetCode() == undecided })
}

// write writes a message in the format that is asked for; table says it in words.
func (q *question) write(basis *apportionv1.Basis, message proto.Message, table func(*render.Printer)) error {
	q.warn(basis)
	if q.output.format == formatTable {
		table(q.printer(basis))
		return nil
	}
	raw, err := document.JSON(message)
	if err != nil {
		return err
	}
	return q.output.raw(q.streams, raw)
}

// writeAny is write for what is no message.
func (q *question) writeAny(basis *apportionv1.Basis, value any, table func(*render.Printer)) error {
	q.warn(basis)
	if q.output.format == formatTable {
		table(q.printer(basis))
		return nil
	}
	compact, err := json.Marshal(value)
	if err != nil {
		return err
	}
	raw, err := document.Indent(compact)
	if err != nil {
		return err
	}
	return q.output.raw(q.streams, raw)
}

// raw writes JSON, or the same as YAML.
func (f *outputFlags) raw(s streams, raw []byte) error {
	if f.format == formatYAML {
		var err error
		if raw, err = document.YAML(raw); err != nil {
			return err
		}
	}
	_, err := s.out.Write(raw)
	return err
}

// message is a message within a larger JSON value.
type message struct{ proto.Message }

// MarshalJSON writes the message as the contract's JSON.
func (m message) MarshalJSON() ([]byte, error) { return document.JSON(m.Message) }

// verdict is the command's error after an answer: nil for yes.
func verdict(yes bool) error {
	if yes {
		return nil
	}
	return errDecidedNo
}
