package cluster

import (
	"errors"
	"fmt"
	"io"
	"net/http"
)

const (
	// maxPage is the maximum size of a response other than a watch, and maxEvent that of one event of a watch, both decompressed. etcd
	// stores objects of at most 1.5 MB.
	maxPage, maxEvent = 64 << 20, 16 << 20
	// smaller divides the number of objects of a page that was too large.
	smaller = 8
)

// sizeError is the error for a body that exceeds its bound.
type sizeError struct {
	what  string
	bytes int64
}

func (e *sizeError) Error() string {
	return fmt.Sprintf("the API server sends more than %d MiB as %s", e.bytes>>20, e.what)
}

// bounded is a body of which at most left more bytes may be read.
type bounded struct {
	io.ReadCloser

	left  int64
	fault *sizeError
}

// Read reads up to the bound.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, b.fault
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// bounding bounds the bodies of all responses but those of watches.
type bounding struct{ http.RoundTripper }

// RoundTrip sends a request.
func (b bounding) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.RoundTripper.RoundTrip(request)
	if err != nil || response.StatusCode == http.StatusOK && request.URL.Query().Get("watch") != "" {
		return response, err
	}
	fault := &sizeError{"the response to " + request.URL.Path, maxPage}
	response.Body = &bounded{response.Body, maxPage + 1, fault}
	return response, nil
}

// fewer returns the number of objects to ask for after an error of a page; false: it was not too large, or had one object already.
func fewer(err error, objects int64) (int64, bool) {
	if _, large := errors.AsType[*sizeError](err); !large || objects == 1 {
		return objects, false
	}
	if objects == 0 {
		return chunkSize, true
	}
	return max(objects/smaller, 1), true
}
