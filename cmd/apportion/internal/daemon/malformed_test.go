package daemon_test

import (
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// malformed returns bytes that are no request of HTTP, or a faulty one, by what is wrong with them.
func malformed(path string) map[string]string {
	const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	const settings = "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	post := "POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
	get := "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n"
	return map[string]string{
		"zeros":                         strings.Repeat("\x00", 5000),
		"no method":                     "\x00\x01 / HTTP/1.1\r\n\r\n",
		"frames of no kind":             preface + strings.Repeat("\xff", 3000),
		"headers beyond a frame":        preface + settings + "\x00\xff\xff\x01\x04\x00\x00\x00\x01" + strings.Repeat("A", 65535),
		"pings":                         preface + settings + strings.Repeat("\x00\x00\x08\x06\x00\x00\x00\x00\x00xxxxxxxx", 20_000),
		"settings":                      preface + settings + strings.Repeat("\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x64", 20_000),
		"headers that continue":         preface + settings + strings.Repeat("\x00\x10\x00\x09\x00\x00\x00\x00\x01"+strings.Repeat("\x82", 4096), 200),
		"a negative length":             post + "Content-Length: -1\r\n\r\n{}",
		"a length above 64 bits":        post + "Content-Length: 99999999999999999999\r\n\r\n{}",
		"two lengths":                   post + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /metrics HTTP/1.1\r\n\r\n",
		"a chunk above 64 bits":         post + "Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n{}",
		"a chunk of extensions":         post + "Transfer-Encoding: chunked\r\n\r\n1;" + strings.Repeat("x", 100_000) + "\r\n{\r\n",
		"chunks of one byte":            post + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1\r\n[\r\n", 50_000) + "0\r\n\r\n",
		"lists in lists":                post + "Content-Length: 1000000\r\n\r\n" + strings.Repeat("[", 1_000_000),
		"messages in messages":          post + "Content-Length: 900000\r\n\r\n" + strings.Repeat(`{"input":`, 100_000),
		"no gzip":                       post + "Content-Encoding: gzip\r\nContent-Length: 10\r\n\r\n\x1f\x8bxxxxxxxx",
		"a message that never comes":    post + "Expect: 100-continue\r\nContent-Length: 100000000\r\n\r\n",
		"a time limit above 64 bits":    post + "Connect-Timeout-Ms: 99999999999999999999\r\nContent-Length: 2\r\n\r\n{}",
		"two hosts":                     get + "Host: other\r\n\r\n",
		"many headers":                  get + strings.Repeat("X: y\r\n", 50_000) + "\r\n",
		"a long header":                 get + "X: " + strings.Repeat("y", 3_000_000) + "\r\n\r\n",
		"a long path":                   "GET /" + strings.Repeat("a/../", 200_000) + " HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"an upgrade":                    get + "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n",
		"a tunnel":                      "CONNECT other.example.org:443 HTTP/1.1\r\nHost: other.example.org\r\n\r\n",
		"a version that does not exist": "GET " + path + " HTTP/9.9\r\n\r\n",
	}
}

func TestMalformedRequestsLeaveEachListenerServing(t *testing.T) {
	directory := serveAll(t)
	const call = "/apportion.v1.DecisionService/EvaluateShares"
	dial := func(listener string) net.Conn {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "unix", directory+"/"+listener)
		require.NoError(t, err)
		return conn
	}
	for listener, path := range map[string]string{"grpc": call, "http": call, "admin": "/metrics", "extender": "/volcano/queueOverused"} {
		for what, bytes := range malformed(path) {
			conn := dial(listener)
			require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
			go func() {
				// The server may close the connection before it has read all.
				_, _ = conn.Write([]byte(bytes))
				_ = conn.(*net.UnixConn).CloseWrite()
			}()
			first := make([]byte, 12)
			n, err := conn.Read(first)
			require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "%s, %s", listener, what)
			require.NotContains(t, string(first[:n]), "HTTP/1.1 500", "%s, %s", listener, what)
			require.NoError(t, conn.Close())
		}
	}
	client := &http.Client{Transport: &http.Transport{DialContext: dialer(directory + "/http"), DisableKeepAlives: true}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost"+call,
		strings.NewReader(`{"input": {"snapshot": {}, "policyName": "cluster"}}`))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	response, err := client.Do(r)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusOK, response.StatusCode)
	for _, listener := range []string{"grpc", "admin", "extender"} {
		require.NoError(t, dial(listener).Close())
	}
}
