package service

import (
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/wire"
	"github.com/apportion/apportion/internal/wire/method"
	"github.com/apportion/apportion/service/admission"
)

// open takes the first message, and the chunks that it announces.
func (v *conversation) open() error {
	first, err := v.stream.Recv()
	if err != nil {
		return ended(err, "before it was opened")
	}
	open := first.GetOpen()
	if open == nil {
		return protocolFault("the first message opens the session")
	}
	r, err := v.server.rule(open.GetInput().GetPolicy(), open.GetInput().GetPolicyName(), "open.input.")
	if err != nil {
		return err
	}
	v.progress.began = time.Now()
	ctx := v.stream.Context()
	v.seen = v.server.watchSession(ctx, open.GetInput().GetPolicyName(), r)
	v.seen.Edits = open.GetInput().GetEdits()
	digest, err := v.openOn(open, r)
	if open.GetChunked() == nil {
		err = decode.InInput(err, "open.input.")
	} else {
		err = decode.Rooted(err, "open.input.", "policy")
	}
	if err == nil {
		err = v.apply(open.GetInput())
	}
	if err == nil {
		v.session.Show(open.GetInput().GetTexts(), open.GetInput().GetOmitNames())
		v.seen.Texts, v.seen.OmitNames = open.GetInput().GetTexts(), open.GetInput().GetOmitNames()
		v.memory, err = v.server.sessionMemory.open(TenantOf(ctx), v.seen.Snapshot.Model, v.session)
	}
	if err != nil {
		v.seen.refused(err)
		return err
	}
	v.seen.Basis = viewedBasis(v.session, digest, v.base)
	v.seen.end(ctx, nil)
	return v.stream.Send(&apportionv1.RunSessionResponse{Message: &apportionv1.RunSessionResponse_Opened{Opened: &apportionv1.SessionOpened{
		Basis: v.seen.Basis, MaxPendingBatches: uint32(v.server.options.Limit.PendingBatches),
	}}})
}

// apply lets the events since the snapshot happen, but a first change, on which the session was opened, and makes the edits.
func (v *conversation) apply(in *apportionv1.Input) error {
	_, from := method.Changed(in)
	events := in.GetEvents()[from:]
	steps := wire.Since(events, in.GetEdits())
	if len(steps) == 0 {
		return nil
	}
	memory, _ := v.session.StepMemory(steps, v.session.Extent())
	leave, err := v.server.enter(v.progress, admission.Decision, memory)
	if err != nil {
		return err
	}
	defer leave()
	v.seen.Events, v.progress.began = events, time.Now()
	return v.session.Continue(in.GetEvents(), from, in.GetEdits(), "open.input.")
}

// openOn opens the session on whatever source the first message has, and returns the digest of the snapshot if its bytes are known.
func (v *conversation) openOn(open *apportionv1.OpenSession, r rule) (digest string, err error) {
	s, ctx := v.server, v.stream.Context()
	if open.GetChunked() != nil {
		if open.GetInput().GetSource() != nil {
			return "", invalidRequest("open.chunked", "the input already has a source")
		}
		return v.openChunked(open.GetChunked(), r)
	}
	switch source := open.GetInput().GetSource().(type) {
	case *apportionv1.Input_Snapshot:
		return "", v.openInline(source.Snapshot, r)
	case *apportionv1.Input_SnapshotDigest, *apportionv1.Input_SnapshotName:
		e, err := s.named(ctx, open.GetInput(), "open.input.")
		if err != nil {
			return "", err
		}
		v.base = e
		leave, err := s.enter(v.progress, admission.Decision, v.call.memory(ctx, open.GetInput(), nil))
		if err != nil {
			return "", err
		}
		defer leave()
		v.progress.began = time.Now()
		v.seen.Snapshot = e.observed()
		if change, _ := method.Changed(open.GetInput()); change != nil {
			v.session, digest, err = v.call.openChanged(e, change, r, v.progress, v.seen)
			if err != nil {
				err = decode.AsFault(err).Within("open.")
			}
			return digest, err
		}
		return e.key.digest, v.openModel(e.model, r)
	}
	return "", invalidRequest("open.input.snapshot", "no snapshot is given or announced, nor the digest or name of one")
}

// openModel opens the session on a model.
func (v *conversation) openModel(m *model.Model, r rule) (err error) {
	v.session, err = v.server.openModel(m, r, v.progress)
	return err
}

// openInline opens the session on a snapshot in the first message, whose bytes were taken out of it before it was decoded.
func (v *conversation) openInline(decoded *apportionv1.Snapshot, r rule) error {
	s, ctx := v.server, v.stream.Context()
	v.seen.Snapshot = v.call.observed(decoded)
	inline := &v.call.snapshot
	if inline.data == nil {
		data, err := proto.Marshal(decoded)
		if err != nil {
			return invalidRequest("open.input.snapshot", "a text is not UTF-8")
		}
		inline = &snapshot{data: data}
	}
	if err := s.permit(ctx, func() string { return decode.ClusterOf(inline.data) }); err != nil {
		return err
	}
	g := s.guard(v.progress.stop)
	g.Size = inline.measure()
	leave, err := s.enter(v.progress, admission.Decision, g.Size.Memory())
	if err != nil {
		return err
	}
	defer leave()
	v.progress.began = time.Now()
	m, err := new(decode.Decoder).CompileWithin(inline.data, g)
	s.metrics.compiledModel(v.progress.began, m)
	if err != nil {
		return err
	}
	v.seen.Snapshot.Model = m
	return v.openModel(m, r)
}

func (v *conversation) openChunked(header *apportionv1.UploadHeader, r rule) (string, error) {
	if header.GetDigest() != "" {
		if err := checkDigest(header.GetDigest(), "open.chunked.digest"); err != nil {
			return "", err
		}
	}
	base, err := v.server.base(v.stream.Context(), header, "open.chunked.base_digest")
	if err != nil {
		return "", err
	}
	chunks := v.server.newUpload(v.stream.Context(), header)
	defer chunks.release()
	ctx, cancel := v.server.uploading(v.stream.Context())
	defer cancel()
	err = chunks.receive(ctx, func() (*apportionv1.SnapshotChunk, error) {
		message, err := v.stream.Recv()
		return message.GetChunk(), err
	})
	if err == nil && base == nil {
		err = v.server.permit(v.stream.Context(), func() string { return decode.ClusterOf(chunks.data) })
	}
	if err != nil {
		return "", err
	}
	v.progress.began = time.Now()
	m, _, _, err := v.server.store(ctx, entryKey{IdentityOf(ctx), chunks.digest}, chunks.data, base, follow(v.stream.Context()))
	if err != nil {
		return "", err
	}
	leave, err := v.server.enter(v.progress, admission.Decision, decode.ModelBytes(m))
	if err != nil {
		return "", err
	}
	defer leave()
	v.progress.began = time.Now()
	v.seen.Snapshot = Snapshot{Digest: chunks.digest, Model: m, Base: base.digest(), data: chunks.data}
	return chunks.digest, v.openModel(m, r)
}
