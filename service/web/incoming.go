package web

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/service"
)

// Connect would read, decompress and decode a message before the call has a turn, and before anything is booked for it. So it is shown
// requests without their messages, and answers; the messages are received here, within the call.

// incoming is a request as it came.
type incoming struct {
	request *http.Request
	writer  http.ResponseWriter
	// transfer is the message of the call, and leave gives back its place. Both are nil before.
	transfer *service.Transfer
	leave    func()
}

// close gives back what the call holds. It is called when the answer has been taken.
func (in *incoming) close() {
	if in.transfer != nil {
		in.transfer.Close()
	}
	if in.leave != nil {
		in.leave()
	}
}

const (
	// sentBytes is what sending an answer takes for each byte of its encoding: the text, and what is compressed of it.
	sentBytes = 2
	// fewJSONBytes is how many bytes an answer in protobuf's encoding has at most that is booked in JSON without being measured, for each
	// as much as a field of two bytes has, with its name and the name of its value.
	fewJSONBytes = 16 << 10
	sentJSONMost = 32
)

// hold books the memory for sending an answer until the client has read it.
func (in *incoming) hold(ctx context.Context, answer any) error {
	return in.transfer.Hold(ctx, int64(in.sentSize(answer)))
}

// sentSize is the memory for sending an answer.
func (in *incoming) sentSize(answer any) int {
	m, ok := answer.(proto.Message)
	if !ok {
		return 0
	}
	size := proto.Size(m)
	switch {
	case !in.isJSON():
		size *= sentBytes
	case size <= fewJSONBytes:
		size *= sentJSONMost
	default:
		size = sentBytes * jsonLength(m)
	}
	return size
}

// Fields of the query of a GET, as Connect defines them.
const (
	messageQuery     = "message"
	encodingQuery    = "encoding"
	compressionQuery = "compression"
	base64Query      = "base64"
)

// frameBytes is the frame of a message in the protocols of gRPC: whether it is compressed, and its length.
const frameBytes = 5

// withoutMessage returns the request that Connect is shown: with an empty message.
func (in *incoming) withoutMessage(ctx context.Context) *http.Request {
	r := in.request.WithContext(ctx)
	if r.Method == http.MethodGet {
		address := *r.URL
		query := address.Query()
		if query.Has(messageQuery) {
			query.Set(messageQuery, "")
		}
		address.RawQuery = query.Encode()
		r.URL = &address
		return r
	}
	r.Body, r.ContentLength = http.NoBody, 0
	if in.framed() {
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(make([]byte, frameBytes))), frameBytes
	}
	return r
}

// mediaType returns the media type of a POST's body.
func (in *incoming) mediaType() string {
	name, _, err := mime.ParseMediaType(in.request.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return name
}

// framed reports whether the message has a frame, as in the protocols of gRPC and in streams of Connect.
func (in *incoming) framed() bool {
	name := in.mediaType()
	return strings.HasPrefix(name, "application/grpc") || strings.HasPrefix(name, "application/connect+")
}

// isJSON reports whether the message is in JSON. Connect has refused what is neither that nor protobuf.
func (in *incoming) isJSON() bool {
	if in.request.Method == http.MethodGet {
		return in.request.URL.Query().Get(encodingQuery) == "json"
	}
	return strings.HasSuffix(in.mediaType(), "json")
}

// closing makes HTTP/1 close the connection with the answer, so that a body that was refused is not read.
func (in *incoming) closing() {
	if in.request.ProtoMajor == 1 && in.request.ContentLength != 0 {
		in.writer.Header().Set("Connection", "close")
	}
}

// receive receives the message as it came.
func (in *incoming) receive(ctx context.Context, s *service.Server) error {
	r, t := in.request, in.transfer
	if r.Method == http.MethodGet {
		data, err := queryMessage(r)
		if err != nil {
			return service.StatusOf(err)
		}
		return t.Receive(ctx, bytes.NewReader(data), int64(len(data)))
	}
	control := http.NewResponseController(in.writer)
	// Where there are no deadlines, as in a test without a network, the body is there.
	_ = control.SetReadDeadline(time.Now().Add(s.MessageTime()))
	if err := t.Receive(ctx, &body{r.Body, s}, r.ContentLength); err != nil {
		return err
	}
	_ = control.SetReadDeadline(time.Time{})
	if in.request.ProtoMajor == 1 {
		in.writer.Header().Del("Connection")
	}
	return nil
}

// queryMessage returns the message in the address of a GET.
func queryMessage(r *http.Request) ([]byte, error) {
	query := r.URL.Query()
	text := query.Get(messageQuery)
	if query.Get(base64Query) != "1" {
		return []byte(text), nil
	}
	data, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(text, "="))
	if err != nil {
		return nil, invalid("the message in the address is not base64url")
	}
	return data, nil
}

// body reads the body of a request, and says why it cannot be read.
type body struct {
	io.Reader

	server *service.Server
}

// Read reads.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = b.server.MessageLate()
	}
	return n, err
}

// unwrap takes the message out of its frame and decompresses it.
func (in *incoming) unwrap(ctx context.Context) error {
	t := in.transfer
	compressed, compression := true, in.request.Header.Get("Content-Encoding")
	if in.request.Method == http.MethodGet {
		compression = in.request.URL.Query().Get(compressionQuery)
	}
	if in.framed() {
		data := t.Data()
		if len(data) < frameBytes || data[0] > 1 || int64(binary.BigEndian.Uint32(data[1:])) != int64(len(data)-frameBytes) {
			return service.StatusOf(invalid("the body is not one message in a frame"))
		}
		compressed = data[0] == 1
		compression = cmp.Or(in.request.Header.Get("Grpc-Encoding"), in.request.Header.Get("Connect-Content-Encoding"))
		t.Cut(frameBytes)
	}
	if !compressed || len(t.Data()) == 0 || compression == "" || compression == "identity" {
		return nil
	}
	// Connect has refused unknown encodings; gzip is all it does.
	return t.Decompress(ctx, func(from io.Reader) (io.Reader, error) { return gzip.NewReader(from) })
}

// decode decodes the message into a request.
func (in *incoming) decode(ctx context.Context, method string, request proto.Message) error {
	t := in.transfer
	if in.isJSON() {
		whole := request.ProtoReflect().New().Interface()
		err := t.Transcode(ctx, method, jsonMemory, whole, func(data []byte) error { return unmarshalJSON(data, whole) })
		if err != nil {
			return err
		}
	}
	return t.Decode(ctx, request)
}

func invalid(text string) error {
	return &decode.Fault{
		Code: codes.InvalidArgument, Reason: apportionv1.ErrorReason_ERROR_REASON_INVALID_REQUEST, Text: text,
	}
}
