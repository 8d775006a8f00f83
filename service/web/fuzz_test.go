package web_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/reflect/protoreflect"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/setting"
	"github.com/apportion/apportion/internal/wire/method"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/service/admission"
	"github.com/apportion/apportion/service/servicetest"
	"github.com/apportion/apportion/service/web"
)

// Forms of a request: its encoding, its compression, and how its message is carried.
const (
	formProto = 1 << iota
	formGzip
	formGet
	formFramed
	formPack
	forms
)

// requestOf is a request in any form that carries a message: as it is or, with formPack, in a well-formed envelope.
func requestOf(ctx context.Context, path string, form byte, message []byte) *http.Request {
	encoding := "json"
	if form&formProto != 0 {
		encoding = "proto"
	}
	if form&formPack != 0 && form&formGzip != 0 {
		message = packed(message)
	}
	if form&formGet != 0 {
		query := url.Values{"message": {string(message)}, "encoding": {encoding}, "connect": {"v1"}}
		if form&formGzip != 0 {
			query.Set("compression", "gzip")
		}
		if form&formPack != 0 {
			query.Set("base64", "1")
			query.Set("message", base64.RawURLEncoding.EncodeToString(message))
		}
		return httptest.NewRequestWithContext(ctx, http.MethodGet, path+"?"+query.Encode(), http.NoBody)
	}
	media, header := "application/"+encoding, "Content-Encoding"
	if form&formFramed != 0 {
		media, header = "application/grpc-web+"+encoding, "Grpc-Encoding"
		if form&formPack != 0 {
			compressed := form & formGzip / formGzip
			message = append(binary.BigEndian.AppendUint32([]byte{compressed}, uint32(len(message))), message...)
		}
	}
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, path, bytes.NewReader(message))
	r.Header.Set("Content-Type", media)
	if form&formGzip != 0 {
		r.Header.Set(header, "gzip")
	}
	return r
}

func packed(data []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(data)
	_ = w.Close()
	return out.Bytes()
}

// FuzzEachCallTakesAnyDocument sends any bytes to any call, in every form that the HTTP endpoint takes: each is answered, none fails with
// an internal error, and none takes more memory than the server may book for it.
func FuzzEachCallTakesAnyDocument(f *testing.F) {
	calls := slices.DeleteFunc(method.Calls(), func(call protoreflect.MethodDescriptor) bool { return !method.IsUnary(call) })
	for i := range calls {
		for form := range byte(forms) {
			f.Add(byte(i), form, []byte(small))
		}
	}
	f.Add(byte(0), byte(0), []byte(`{"input":{"snapshot":{"queues":[{"name":"a","weight":-1}],"asOf":"x"}}}`))
	f.Add(byte(0), byte(formProto), []byte{0x0a, 0x00})
	f.Add(byte(0), byte(formGzip), []byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00"))
	for _, form := range []byte{0, formGet | formGzip | formPack, formFramed | formGzip | formPack} {
		f.Add(byte(0), form, many("jobs", 1<<20))
		f.Add(byte(5), form, []byte(`{"steps":[`+strings.Repeat(`{"mark":{}},`, 1<<15)+`{}]}`))
		f.Add(byte(5), form|formProto, bytes.Repeat([]byte{0x12, 0x00}, 1<<18))
	}
	const memory, receiving = 32 << 20, 16 << 20
	r := servicetest.Start(f, service.Options{
		Policies: map[string]*apportionv1.Policy{"cluster": servicetest.Nested()}, Deadline: setting.Deadline{Call: 2 * time.Second},
		Limit:    setting.Limit{AnswerBytes: 1 << 20, MessageBytes: 1 << 20},
		Overload: admission.Options{Memory: memory, Receiving: receiving},
	})
	handler := web.NewHandler(r.Server, web.Options{})
	f.Fuzz(func(t *testing.T, call, form byte, message []byte) {
		path := method.PathOf(calls[int(call)%len(calls)])
		request := requestOf(t.Context(), path, form%forms, message)
		answer := httptest.NewRecorder()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		handler.ServeHTTP(answer, request)
		runtime.ReadMemStats(&after)
		require.NotEqual(t, http.StatusInternalServerError, answer.Code, answer.Body.String())
		require.NotZero(t, answer.Body.Len()+len(answer.Header().Get("Grpc-Status")), answer.Code)
		// The sum of all allocations.
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(2*(memory+receiving)))
	})
}

// many returns a document of size bytes, which are empty messages in a list of the snapshot.
func many(list string, size int) []byte {
	return []byte(`{"input":{"policyName":"cluster","snapshot":{"` + list + `":[` + strings.Repeat("{},", size/3-30) + `{}]}}}`)
}
