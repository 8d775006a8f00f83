package web_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/service/admission"
	"github.com/apportion/apportion/service/servicetest"
	"github.com/apportion/apportion/service/web"
)

// FuzzEachCallTakesAnyDocument posts any bytes to any call, as JSON, as protobuf, or said to be compressed: each is answered, and no fault is
// the server's.
func FuzzEachCallTakesAnyDocument(f *testing.F) {
	methods := apportionv1.ApportionService_ServiceDesc.Methods
	for i := range methods {
		f.Add(byte(i), byte(0), []byte(small))
	}
	f.Add(byte(0), byte(0), []byte(`{"input":{"snapshot":{"queues":[{"name":"a","weight":-1}],"asOf":"x"}}}`))
	f.Add(byte(0), byte(1), []byte{0x0a, 0x00})
	f.Add(byte(0), byte(2), []byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00"))
	r := servicetest.Start(f, service.Options{
		Policies: map[string]*apportionv1.Policy{"cluster": servicetest.Nested()}, CallTime: 2 * time.Second, AnswerBytes: 1 << 20,
		Overload:     admission.Options{Memory: 64 << 20, Receiving: 16 << 20},
		RequestBytes: 1 << 20,
	})
	handler := web.NewHandler(r.Server, web.Options{})
	f.Fuzz(func(t *testing.T, method, form byte, body []byte) {
		path := "/" + apportionv1.ApportionService_ServiceDesc.ServiceName + "/" + methods[int(method)%len(methods)].MethodName
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, bytes.NewReader(body))
		request.Header.Set("Content-Type", []string{"application/json", "application/proto"}[form&1])
		if form&2 != 0 {
			request.Header.Set("Content-Encoding", "gzip")
		}
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		require.NotEqual(t, http.StatusInternalServerError, answer.Code, answer.Body.String())
		require.NotZero(t, answer.Body.Len(), answer.Code)
	})
}
