package service_test

import (
	"bytes"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// begin opens an HTTP/2 connection and a call on it, as no client of gRPC would, and sends bytes of its messages.
func begin(
	t *testing.T, conn net.Conn, method string, headers map[string]string, sent []byte, settings ...http2.Setting,
) *http2.Framer {
	t.Helper()
	_, err := conn.Write([]byte(http2.ClientPreface))
	require.NoError(t, err)
	framer := http2.NewFramer(conn, conn)
	require.NoError(t, framer.WriteSettings(settings...))
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	field := func(name, value string) {
		require.NoError(t, encoder.WriteField(hpack.HeaderField{Name: name, Value: value}))
	}
	field(":method", "POST")
	field(":scheme", "http")
	field(":path", method)
	field(":authority", "localhost")
	field("content-type", "application/grpc")
	field("te", "trailers")
	for name, value := range headers {
		field(name, value)
	}
	require.NoError(t, framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true}))
	if len(sent) > 0 {
		require.NoError(t, framer.WriteData(1, false, sent))
	}
	return framer
}
