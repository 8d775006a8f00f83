package daemon

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/service/identity"
)

const (
	sharesPath = "/apportion.v1.DecisionService/EvaluateShares"
	sharesBody = `{"input":{"snapshot":{},"policyName":"a"}}`
)

// slowly begins a POST of a megabyte of which little comes.
func slowly(t *testing.T, to, token string) net.Conn {
	t.Helper()
	conn := crowd(t, 1, "127.0.0.1", to)[0]
	if token != "" {
		token = "Authorization: Bearer " + token + "\r\n"
	}
	_, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n%s\r\n{", sharesPath, token)
	require.NoError(t, err)
	return conn
}

// answerOf reads the answer that comes though the message has not.
func answerOf(t *testing.T, conn net.Conn) int {
	t.Helper()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(20*time.Second)))
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	requireHungUp(t, conn)
	return response.StatusCode
}

func TestSlowMessagesOfStrangersAndOfOthersHoldNoPlace(t *testing.T) {
	slow, quick := identity.NewToken(), identity.NewToken()
	p := at(t, "")
	p.write("apportion.yaml", strings.Replace(listening, `http: {`, `http: {calls: 4, `, 1)+`
deadline: {message: 2s}
tls: {plaintext: true}
identities:
- {name: slow, tokens: ['`+identity.HashOf(slow).String()+`']}
- {name: quick, tokens: ['`+identity.HashOf(quick).String()+`']}
`)
	p.start()
	call := func() {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addressOf(p.http)+sharesPath, strings.NewReader(sharesBody))
		require.NoError(t, err)
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Authorization", "Bearer "+quick)
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, response.StatusCode)
		require.NoError(t, response.Body.Close())
	}
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	var strangers, conns []net.Conn
	for range 64 {
		strangers = append(strangers, slowly(t, addressOf(p.http), ""))
		conns = append(conns, slowly(t, addressOf(p.http), slow))
	}
	for _, conn := range strangers {
		require.Equal(t, http.StatusUnauthorized, answerOf(t, conn), "refused by the headers; the message is not waited for")
	}
	for range 10 {
		call()
	}
	for _, conn := range conns {
		require.Equal(t, http.StatusGatewayTimeout, answerOf(t, conn), "deadline.message holds over HTTP too")
	}
	call()
}
