package daemon_test

import (
	"context"
	"net"
)

// dialer connects to a socket, whatever address is asked for.
func dialer(path string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}
}
