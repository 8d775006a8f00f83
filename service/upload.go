package service

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"strconv"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/wire"
)

// UploadSnapshot takes a snapshot to be named by digest afterwards.
func (s *Service) UploadSnapshot(
	stream grpc.ClientStreamingServer[apportionv1.UploadSnapshotRequest, apportionv1.UploadSnapshotResponse],
) error {
	response, err := s.upload(stream)
	if err != nil {
		return s.fail(stream.Context(), err)
	}
	return stream.SendAndClose(response)
}

func (s *Service) upload(
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
		if h := s.cache.find(heldKey{identity, digest}); h != nil {
			if err := s.permit(stream.Context(), func() string { return h.cluster }); err != nil {
				return nil, err
			}
			return &apportionv1.UploadSnapshotResponse{Digest: digest, Size: header.GetSize(), AlreadyHeld: true}, nil
		}
	}
	ctx, cancel := s.uploading(stream.Context())
	defer cancel()
	stop, release := stopper(ctx)
	defer release()
	c := s.collect(ctx, header)
	defer c.release()
	err = c.all(ctx, func() (*apportionv1.SnapshotChunk, error) {
		message, err := stream.Recv()
		return message.GetChunk(), err
	})
	if err == nil {
		err = s.permit(stream.Context(), func() string { return wire.ClusterOf(c.data) })
	}
	if err != nil {
		return nil, err
	}
	_, holds, already, err := s.hold(ctx, heldKey{identity, c.digest}, c.data, stop)
	if err != nil {
		return nil, err
	}
	if !holds {
		return nil, limitFault("identity_bytes", int64(len(c.data)), s.cache.quota,
			"the snapshot is larger than what one identity may have held here")
	}
	return &apportionv1.UploadSnapshotResponse{Digest: c.digest, Size: uint64(len(c.data)), AlreadyHeld: already}, nil
}

// collection puts the chunks of a snapshot together.
type collection struct {
	service  *Service
	identity string
	header   *apportionv1.UploadHeader
	data     []byte
	digest   string
	// booked is what is booked to the service for data.
	booked int64
}

func (s *Service) collect(ctx context.Context, header *apportionv1.UploadHeader) *collection {
	return &collection{service: s, identity: IdentityOf(ctx), header: header}
}

// release gives the memory back.
func (c *collection) release() {
	if c.booked > 0 {
		c.service.receiving.give(c.identity, c.booked)
	}
	c.booked = 0
}

// all takes chunks up to the last, and holds what came against what was announced.
func (c *collection) all(ctx context.Context, next func() (*apportionv1.SnapshotChunk, error)) error {
	announced, limit := c.header.GetSize(), uint64(c.service.options.SnapshotBytes)
	if announced > limit {
		return limitFault("snapshot_bytes", saturate(announced), int64(limit), "the snapshot is too large")
	}
	sum := sha256.New()
	limits := &c.service.options.Limits
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
		size := uint64(len(c.data)) + uint64(len(chunk.GetData()))
		if announced > 0 && size > announced {
			return protocolFault("more bytes came than the " + strconv.FormatUint(announced, 10) + " announced")
		}
		if size > limit {
			return limitFault("snapshot_bytes", saturate(size), int64(limit), "the snapshot is too large")
		}
		if err := c.append(chunk.GetData()); err != nil {
			return err
		}
		sum.Write(chunk.GetData())
		last = chunk.GetLast()
	}
	if got := uint64(len(c.data)); announced > 0 && got < announced {
		return protocolFault("only " + strconv.FormatUint(got, 10) + " bytes came of " + strconv.FormatUint(announced, 10))
	}
	c.digest = "sha256:" + hex.EncodeToString(sum.Sum(nil))
	if want := c.header.GetDigest(); want != "" && want != c.digest {
		return &wire.Fault{
			Code: codes.InvalidArgument, Reason: apportionv1.ErrorReason_ERROR_REASON_DIGEST_MISMATCH,
			Text: "the bytes that came have another digest than announced", Metadata: map[string]string{"digest": c.digest},
		}
	}
	return nil
}

// received is what one reading of a stream brought.
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
		return none, ctx.Err()
	}
}

// uploading bounds the time in which a snapshot comes in chunks.
func (s *Service) uploading(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.options.UploadTime < 0 {
		return context.WithCancel(ctx)
	}
	late := wire.Exceeded("upload_time", s.options.UploadTime.Milliseconds(), s.options.UploadTime.Milliseconds(),
		"the snapshot did not come in time")
	return context.WithTimeoutCause(ctx, s.options.UploadTime, late)
}

// saturate returns a number that fits into 63 bits.
func saturate(n uint64) int64 { return int64(min(n, math.MaxInt64)) }

// append makes room as bytes come, not as they are announced.
func (c *collection) append(data []byte) error {
	if need := len(c.data) + len(data); need > cap(c.data) {
		room := max(need, 2*cap(c.data))
		if announced := int(c.header.GetSize()); announced >= need {
			room = min(room, announced)
		}
		grown := int64(room - cap(c.data))
		if !c.service.receiving.take(c.identity, grown) {
			return c.service.receiving.busy()
		}
		c.booked += grown
		c.data = append(make([]byte, 0, room), c.data...)
	}
	c.data = append(c.data, data...)
	return nil
}

// ended turns the end of a stream at a place where it may not end into a fault.
func ended(err error, where string) error {
	if errors.Is(err, io.EOF) {
		return protocolFault("the stream ended " + where)
	}
	return err
}
