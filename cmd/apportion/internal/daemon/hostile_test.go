package daemon

import (
	"context"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/test/certtest"
)

// requireHungUp requires that the other side closes a connection soon.
func requireHungUp(t *testing.T, conn net.Conn) {
	t.Helper()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(10*time.Second)))
	_, err := io.Copy(io.Discard, conn)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the connection still stands")
}

func TestWhoeverDoesNotFinishAHandshakeIsHungUpOn(t *testing.T) {
	authority := certtest.New(t)
	for name, settings := range map[string]string{
		"plaintext": "deadline: {handshake: 200ms}\n",
		"TLS":       "deadline: {handshake: 200ms}\ntls: {certificate: tls.crt, key: tls.key}\n",
	} {
		for sent, bytes := range map[string]string{"nothing": "", "half a greeting": "PRI * HTTP/2.0\r\n", "another protocol": "\x16\x03\x01\x02\x00"} {
			t.Run(name+"/"+sent, func(t *testing.T) {
				p := at(t, settings)
				certtest.Files(t, p.dir, authority.Issue(t), authority)
				p.start()
				conn, err := net.Dial("tcp", addressOf(p.listeners[0]))
				require.NoError(t, err)
				defer conn.Close()
				_, err = conn.Write([]byte(bytes))
				require.NoError(t, err)
				requireHungUp(t, conn)
			})
		}
	}
}

func TestHeadersBeyondTheLimitAreRefusedAndTheConnectionGoesOn(t *testing.T) {
	p := at(t, "policies: {a: preset:proportion}\nlimit: {header_bytes: 16KiB}\n")
	p.start()
	conn := p.dial(nil)
	_, err := ask(t.Context(), conn, "a", "")
	require.NoError(t, err)
	for _, size := range []int{17 << 10, 1 << 20} {
		_, err = ask(metadata.AppendToOutgoingContext(t.Context(), "x", strings.Repeat("y", size)), conn, "a", "")
		require.Error(t, err)
	}
	require.Eventually(t, func() bool { _, err := ask(t.Context(), conn, "a", ""); return err == nil }, 5*time.Second, 10*time.Millisecond)
}

func TestOneConnectionHasItsNumberOfCallsAndNoMore(t *testing.T) {
	p := at(t, "connection: {streams: 5}\n")
	p.start()
	conn := p.dial(nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	var opened atomic.Int64
	var trying sync.WaitGroup
	for range 50 {
		trying.Go(func() {
			stream, err := apportionv1.NewDecisionServiceClient(conn).RunSession(ctx)
			if err != nil {
				require.Equal(t, codes.DeadlineExceeded, status.Code(err))
				return
			}
			opened.Add(1)
			_, err = stream.Recv()
			require.Error(t, err)
		})
	}
	time.Sleep(300 * time.Millisecond)
	require.LessOrEqual(t, opened.Load(), int64(5))
	trying.Wait()
	other := p.dial(nil)
	_, err := apportionv1.NewDecisionServiceClient(other).Simulate(t.Context(), &apportionv1.SimulateRequest{})
	require.Equal(t, codes.InvalidArgument, status.Code(err), "another connection has its own")
}

func TestAnIdleConnectionIsClosedAndANewOneIsMade(t *testing.T) {
	p := at(t, "policies: {a: preset:proportion}\nconnection: {idle: 100ms, maximum: 1}\n")
	p.start()
	first, second := p.dial(nil), p.dial(nil)
	_, err := ask(t.Context(), first, "a", "")
	require.NoError(t, err)
	_, err = ask(t.Context(), second, "a", "")
	require.NoError(t, err, "there is room once the first has been idle")
	_, err = ask(t.Context(), first, "a", "")
	require.NoError(t, err)
}
