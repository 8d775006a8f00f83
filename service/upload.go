package service

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/field"
)

// UploadSnapshot stores a snapshot, so that later calls can refer to it by digest.
func (c *call) UploadSnapshot(
	stream grpc.ClientStreamingServer[apportionv1.UploadSnapshotRequest, apportionv1.UploadSnapshotResponse],
) error {
	response, err := c.server.upload(stream)
	if err != nil {
		return c.server.fail(stream.Context(), err)
	}
	return stream.SendAndClose(response)
}

func (s *Server) upload(
	stream grpc.ClientStreamingServer[apportionv1.UploadSnapshotRequest, apportionv1.UploadSnapshotResponse],
) (*apportionv1.UploadSnapshotResponse, error) {
	first, err := stream.Recv()
	if err != nil {
		return nil, ended(err, "before the header")
	}
	header := first.GetHeader()
	if header == nil {
		return nil, protocolFault("the first message is the header")
	}
	identity := IdentityOf(stream.Context())
	if digest := header.GetDigest(); digest != "" {
		if err := checkDigest(digest, "header.digest"); err != nil {
			return nil, err
		}
		if e := s.cache.find(entryKey{identity, digest}); e != nil {
			if err := s.permit(stream.Context(), func() string { return e.cluster }); err != nil {
				return nil, err
			}
			return &apportionv1.UploadSnapshotResponse{Digest: digest, Size: header.GetSize(), AlreadyHeld: true}, nil
		}
	}
	base, err := s.base(stream.Context(), header, "header.base_digest")
	if err != nil {
		return nil, err
	}
	ctx, cancel := s.uploading(stream.Context())
	defer cancel()
	p := follow(ctx)
	u := s.newUpload(ctx, header)
	defer u.release()
	err = u.receive(ctx, func() (*apportionv1.SnapshotChunk, error) {
		message, err := stream.Recv()
		return message.GetChunk(), err
	})
	if err == nil && base == nil {
		err = s.permit(stream.Context(), func() string { return decode.ClusterOf(u.data) })
	}
	if err != nil {
		return nil, err
	}
	_, cached, already, err := s.store(ctx, entryKey{identity, u.digest}, u.data, base, p)
	if err != nil {
		return nil, err
	}
	if !cached {
		return nil, decode.Exceeded("identity_bytes", int64(len(u.data)), s.cache.quota,
			"the snapshot is larger than what one identity may have held here")
	}
	return &apportionv1.UploadSnapshotResponse{Digest: u.digest, Size: uint64(len(u.data)), AlreadyHeld: already}, nil
}

// base returns the cached snapshot that an announced change is of, nil if a whole snapshot is announced.
func (s *Server) base(ctx context.Context, header *apportionv1.UploadHeader, field string) (*entry, error) {
	if header.GetBaseDigest() == "" {
		return nil, nil //nolint:nilnil // A whole snapshot has no base.
	}
	return s.find(ctx, header.GetBaseDigest(), field)
}

// upload puts the chunks of a snapshot together.
type upload struct {
	server   *Server
	identity string
	header   *apportionv1.UploadHeader
	data     []byte
	digest   string
	// booked is the memory booked for data.
	booked int64
}

func (s *Server) newUpload(ctx context.Context, header *apportionv1.UploadHeader) *upload {
	return &upload{server: s, identity: TenantOf(ctx), header: header}
}

// release gives the memory back.
func (u *upload) release() {
	if u.booked > 0 {
		u.server.receiving.Give(u.identity, u.booked)
	}
	u.booked = 0
}

// receive receives all chunks, and checks them against the announced size and digest.
func (u *upload) receive(ctx context.Context, next func() (*apportionv1.SnapshotChunk, error)) error {
	announced, limit := u.header.GetSize(), uint64(u.server.options.Limit.SnapshotBytes)
	if announced > limit {
		return decode.Exceeded("snapshot_bytes", saturate(announced), int64(limit), "the snapshot is too large")
	}
	sum := sha256.New()
	if base := u.header.GetBaseDigest(); base != "" {
		sum.Write(decode.ChangePrefix(base))
	}
	limits := &u.server.options.Limit
	for last, chunks := false, int64(1); !last; chunks++ {
		chunk, err := receiveIn(ctx, next)
		if err == nil {
			err = exceeded("chunks", chunks, limits.Chunks, "the snapshot comes in too many pieces")
		}
		if err != nil {
			return ended(err, "before the last chunk")
		}
		if chunk == nil {
			return protocolFault("chunks follow the header, up to the last")
		}
		size := uint64(len(u.data)) + uint64(len(chunk.GetData()))
		if announced > 0 && size > announced {
			return protocolFault("received more bytes than the " + strconv.FormatUint(announced, 10) + " announced")
		}
		if size > limit {
			return decode.Exceeded("snapshot_bytes", saturate(size), int64(limit), "the snapshot is too large")
		}
		last = chunk.GetLast()
		if err := u.append(chunk.GetData(), last); err != nil {
			return err
		}
		sum.Write(chunk.GetData())
	}
	if got := uint64(len(u.data)); announced > 0 && got < announced {
		return protocolFault("only " + strconv.FormatUint(got, 10) + " bytes came of " + strconv.FormatUint(announced, 10))
	}
	u.digest = "sha256:" + hex.EncodeToString(sum.Sum(nil))
	if want := u.header.GetDigest(); want != "" && want != u.digest {
		return &decode.Fault{
			Code: codes.InvalidArgument, Reason: apportionv1.ErrorReason_ERROR_REASON_DIGEST_MISMATCH,
			Text: "the digest of the received bytes differs from the announced one", Metadata: map[string]string{"digest": u.digest},
		}
	}
	return nil
}

// received is the result of one read from a stream.
type received[M any] struct {
	message M
	err     error
}

// receiveIn receives a message, or gives up when ctx ends; what reads then ends with the stream.
func receiveIn[M any](ctx context.Context, receive func() (M, error)) (M, error) {
	came := make(chan received[M], 1)
	go func() {
		message, err := receive()
		came <- received[M]{message, err}
	}()
	select {
	case r := <-came:
		return r.message, r.err
	case <-ctx.Done():
		var none M
		return none, context.Cause(ctx)
	}
}

// uploading bounds the time in which a snapshot comes in chunks.
func (s *Server) uploading(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.options.Limit.UploadTime < 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, s.options.Limit.UploadTime, uploadLate(s.options.Limit.UploadTime))
}

func uploadLate(limit time.Duration) error {
	return late("upload_time", limit, "the snapshot did not arrive in time")
}

// saturate returns a number that fits into 63 bits.
func saturate(n uint64) int64 { return int64(min(n, math.MaxInt64)) }

// append allocates memory for the bytes that arrive, not for the announced size. The only chunk is kept as it came.
func (u *upload) append(data []byte, last bool) error {
	if last && len(u.data) == 0 {
		if !u.server.receiving.Take(u.identity, int64(len(data))) {
			return u.server.receiving.Busy()
		}
		u.booked, u.data = u.booked+int64(len(data)), data
		return nil
	}
	if need := len(u.data) + len(data); need > cap(u.data) {
		room := max(need, 2*cap(u.data))
		if announced := int(u.header.GetSize()); announced >= need {
			room = min(room, announced)
		}
		grown := int64(room - cap(u.data))
		if !u.server.receiving.Take(u.identity, grown) {
			return u.server.receiving.Busy()
		}
		u.booked += grown
		u.data = append(make([]byte, 0, room), u.data...)
	}
	u.data = append(u.data, data...)
	return nil
}

// ended turns the end of a stream at a place where it may not end into a fault.
func ended(err error, where string) error {
	if errors.Is(err, io.EOF) {
		return protocolFault("the stream ended " + where)
	}
	return err
}

// Hold stores the bytes of a snapshot as UploadSnapshot does, for the identity of ctx, and returns its digest. It is for the program that
// runs the server, not for clients.
func (s *Server) Hold(ctx context.Context, data []byte) (digest string, err error) {
	sum := sha256.Sum256(data)
	digest = "sha256:" + hex.EncodeToString(sum[:])
	p := follow(ctx)
	_, cached, _, err := s.store(ctx, entryKey{IdentityOf(ctx), digest}, data, nil, p)
	if err != nil {
		return "", StatusOf(err)
	}
	s.cache.hold(entryKey{IdentityOf(ctx), digest})
	if !cached {
		return "", StatusOf(decode.Exceeded("identity_bytes", int64(len(data)), s.cache.quota,
			"the snapshot is larger than what one identity may have held here"))
	}
	return digest, nil
}

// Most uploads are one chunk, which is hashed and compiled where it was received.

// lend makes a request the last chunk of an upload, whose bytes are those of the message, which the call keeps until it ends. False: the
// message is of another kind, or too small to gain, and nothing was done.
func (c *call) lend(m *message, request any) bool {
	upload, ok := request.(*apportionv1.UploadSnapshotRequest)
	if !ok || m.buffer == nil || m.buffer.Len() <= spareBytes || !c.server.forgets() {
		return false
	}
	data, ok := lastChunk(m.data())
	if !ok {
		return false
	}
	upload.Message = &apportionv1.UploadSnapshotRequest_Chunk{Chunk: &apportionv1.SnapshotChunk{Data: data, Last: true}}
	buffer := m.buffer
	m.buffer = nil
	c.chunk.Store(&buffer)
	return true
}

// endChunk gives back the memory of a chunk that was lent. A reader that is late leaves its own to the garbage collector.
func (c *call) endChunk() {
	if buffer := c.chunk.Swap(nil); buffer != nil {
		(*buffer).Free()
	}
}

// forgets reports whether no part of the embedding program may keep what is received.
func (s *Server) forgets() bool { return len(s.options.Observers) == 0 && len(s.options.Stream) == 0 }

// lastChunk returns the bytes of the last chunk of an upload, if a message is one that is written as protobuf libraries write it.
func lastChunk(message []byte) (data []byte, ok bool) {
	// The data are followed by the field `last`, which is true.
	const chunk, bytes = 2, 1
	chunked, rest, ok := leading(message, chunk)
	if !ok || len(rest) > 0 {
		return nil, false
	}
	if data, rest, ok = leading(chunked, bytes); !ok {
		return nil, false
	}
	return data, string(rest) == "\x10\x01"
}

// leading returns the bytes of the field that a message begins with, if that is this one, and what follows it.
func leading(message []byte, number protowire.Number) (value, rest []byte, ok bool) {
	if len(message) == 0 {
		return nil, nil, false
	}
	tag, _, from, to := field.At(message, 0)
	if tag != tagOf(number) || to < 0 {
		return nil, nil, false
	}
	return message[from:to], message[to:], true
}
