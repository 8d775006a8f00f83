package client

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// TestAConnectionOverWhichSettingsComeWithoutEndIsClosed has a server that sends nothing else.
func TestAConnectionOverWhichSettingsComeWithoutEndIsClosed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	closed := make(chan struct{}, 1)
	var most atomic.Int64
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				go func() { _, _ = io.Copy(io.Discard, conn) }()
				out := bufio.NewWriter(conn)
				framer := http2.NewFramer(out, nil)
				for sent := int64(0); ; sent++ {
					if framer.WriteSettings() != nil {
						most.Store(max(most.Load(), sent))
						select {
						case closed <- struct{}{}:
						default:
						}
						return
					}
				}
			}()
		}
	}()
	c, err := Dial("passthrough:///"+listener.Addr().String(), WithPlaintext())
	require.NoError(t, err)
	asked := make(chan error, 1)
	go func() {
		_, err := c.Shares(t.Context(), Input{Snapshot: &apportionv1.Snapshot{}, PolicyName: "p"}, SharesQuestion{})
		asked <- err
	}()
	<-closed
	require.NoError(t, c.Close())
	require.Error(t, <-asked)
	require.NoError(t, listener.Close())
	require.Less(t, most.Load(), int64(10_000_000), "what was on its way when it was closed is among it")
}

func TestFramesThatServersSendAreNoFlood(t *testing.T) {
	stream := func(write func(*http2.Framer)) []byte {
		var out bytes.Buffer
		write(http2.NewFramer(&out, nil))
		return out.Bytes()
	}
	for name, c := range map[string]struct {
		data  []byte
		takes bool
	}{
		"answers": {stream(func(f *http2.Framer) {
			for id := range uint32(100_000) {
				_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*id + 1, BlockFragment: []byte("x"), EndHeaders: true})
				_ = f.WriteData(2*id+1, false, make([]byte, 100))
				_ = f.WriteWindowUpdate(0, 100)
				_ = f.WritePing(false, [8]byte{})
			}
		}), true},
		"settings, again and again": {stream(func(f *http2.Framer) {
			_ = f.WriteData(1, false, make([]byte, 16<<10))
			for range 10_100 {
				_ = f.WriteSettings(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 1 << 20})
			}
		}), false},
		"pings": {stream(func(f *http2.Framer) {
			for range 201_000 {
				_ = f.WritePing(false, [8]byte{})
			}
		}), false},
		"empty data": {stream(func(f *http2.Framer) {
			for range 2_010_000 {
				_ = f.WriteData(1, false, nil)
			}
		}), false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, size := range []int{7, 4096} {
				f, takes := flood{now: func() time.Time { return time.Time{} }}, true
				for data := c.data; len(data) > 0 && takes; {
					n := min(size, len(data))
					takes, data = f.takes(data[:n]), data[n:]
				}
				require.Equal(t, c.takes, takes, size)
			}
		})
	}
	var now time.Time
	f := flood{now: func() time.Time { return now }}
	settings := bytes.Repeat([]byte{0, 0, 0, 4, 0, 0, 0, 0, 0}, 9000)
	for range 100 {
		require.True(t, f.takes(settings), "each minute")
		now = now.Add(time.Minute)
	}
}
