package service_test

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"google.golang.org/grpc/test/bufconn"

	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/setting"
)

func TestTheConnectionOfASilentPeerIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, err := service.New(service.Options{Connection: setting.Connection{Ping: time.Minute}})
		require.NoError(t, err)
		listener := bufconn.Listen(1 << 20)
		ctx, end := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- server.Serve(ctx, listener) }()
		conn, err := listener.DialContext(t.Context())
		require.NoError(t, err)
		_, err = conn.Write([]byte(http2.ClientPreface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00"))
		require.NoError(t, err)
		began := time.Now()
		_, _ = io.Copy(io.Discard, conn)
		require.InDelta(t, 80, time.Since(began).Seconds(), 1, "asked after a minute, given up 20 seconds later")
		require.NoError(t, conn.Close())
		end()
		require.NoError(t, <-served)
	})
}
