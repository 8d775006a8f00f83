package hostname

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRequestsForOtherNamesAreRefused(t *testing.T) {
	handler := Only([]string{"Apportion.example.org"}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	}))
	for host, want := range map[string]int{
		"127.0.0.1:7171": http.StatusNoContent, "[::1]:7171": http.StatusNoContent, "[::1]": http.StatusNoContent, "10.1.2.3": http.StatusNoContent,
		"localhost": http.StatusNoContent, "localhost:7171": http.StatusNoContent, "ui.localhost:80": http.StatusNoContent,
		"apportion:7171": http.StatusNoContent, "apportion.batch.svc:80": http.StatusNoContent,
		"apportion.batch.svc.cluster.local": http.StatusNoContent, "apportion.example.org:443": http.StatusNoContent,
		"APPORTION.EXAMPLE.ORG.": http.StatusNoContent, "": http.StatusNoContent,
		"example.org": http.StatusMisdirectedRequest, "evil.example:7171": http.StatusMisdirectedRequest,
		"127.0.0.1.evil.example": http.StatusMisdirectedRequest, "localhost.evil.example:7171": http.StatusMisdirectedRequest,
		"svc.evil.example": http.StatusMisdirectedRequest, "1.2.3": http.StatusMisdirectedRequest,
	} {
		t.Run(host, func(t *testing.T) {
			request := httptest.NewRequest(http.MethodGet, "/", nil)
			request.Host = host
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, request)
			require.Equal(t, want, answer.Code)
		})
	}
}
