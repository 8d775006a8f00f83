package cluster

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/apportion/apportion/internal/test/raced"
)

// bomb returns a gigabyte of spaces, compressed to a megabyte.
func bomb(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	part := bytes.Repeat([]byte(" "), 1<<20)
	for range 1 << 10 {
		_, err := w.Write(part)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

func TestAResponseThatGrowsWhenDecompressedIsRefused(t *testing.T) {
	raced.Skip(t)
	data, limits := bomb(t), []string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		limits = append(limits, r.URL.Query().Get("limit"))
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(data)
	}))
	defer server.Close()
	client, err := clientOf(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := &reader{client: client, chunk: chunkSize}
	err = r.list(t.Context(), "pods", "/api/v1/pods")
	runtime.ReadMemStats(&after)
	require.ErrorContains(t, err, "the API server sends more than 64 MiB as the response to /api/v1/pods")
	require.Equal(t, []string{"500", "62", "7", "1"}, limits)
	// Each of the four tries reads 64 MiB into memory that grows by parts; without the bound one alone would read 1 GiB. What is allocated in
	// total does not depend on when the garbage collector runs.
	const allocated = 4 * 4 * maxPage
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(allocated))
}

func TestAnEventOfAWatchIsBounded(t *testing.T) {
	body := &bounded{http.NoBody, 0, &sizeError{"one event", maxEvent}}
	_, err := body.Read(make([]byte, 1))
	require.EqualError(t, err, "the API server sends more than 16 MiB as one event")
	require.True(t, strings.HasPrefix(reason(err), "the API server"))
}
