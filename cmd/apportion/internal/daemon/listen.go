package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/apportion/apportion/cmd/apportion/internal/connection"
	"github.com/apportion/apportion/service/identity"
)

// Listen opens all listeners. If it fails, the server cannot be used again.
func (d *Daemon) Listen(ctx context.Context) error {
	if err := d.openAll(ctx); err != nil {
		return errors.Join(err, d.close(), d.abandon(ctx))
	}
	return nil
}

func (d *Daemon) openAll(ctx context.Context) error {
	for _, address := range d.settings.Listen {
		l, err := open(ctx, address)
		if err != nil {
			return fmt.Errorf("listen: %w", err)
		}
		d.listeners = append(d.listeners, d.connections.Listener(l))
	}
	var err error
	if address := d.settings.Admin.Listen; address != "" {
		if d.admin, err = open(ctx, address); err != nil {
			return fmt.Errorf("admin.listen: %w", err)
		}
	}
	if address := d.settings.HTTP.Listen; address != "" {
		if d.http, err = open(ctx, address); err != nil {
			return fmt.Errorf("http.listen: %w", err)
		}
		d.http = d.connections.Listener(d.http)
	}
	if address := d.settings.Extender.Listen; address != "" {
		if d.extender.listener, err = open(ctx, address); err != nil {
			return fmt.Errorf("extender.listen: %w", err)
		}
		d.extender.listener = d.connections.Listener(d.extender.listener)
	}
	return nil
}

func (d *Daemon) close() error {
	var faults []error
	for _, l := range d.listeners {
		faults = append(faults, l.Close())
	}
	if d.admin != nil {
		faults = append(faults, d.admin.Close())
	}
	if d.http != nil {
		faults = append(faults, d.http.Close())
	}
	if d.extender != nil && d.extender.listener != nil {
		faults = append(faults, d.extender.listener.Close())
		d.extender.listener = nil
	}
	d.listeners, d.admin, d.http = nil, nil, nil
	return errors.Join(faults...)
}

const unix = "unix"

// addressOf returns the address of a listener in the form that clients use.
func addressOf(l net.Listener) string {
	if l.Addr().Network() == unix {
		return unix + ":" + l.Addr().String()
	}
	return l.Addr().String()
}

func open(ctx context.Context, address string) (net.Listener, error) {
	var c net.ListenConfig
	path, ok := strings.CutPrefix(address, unix+":")
	if !ok {
		return c.Listen(ctx, "tcp", address)
	}
	l, err := c.Listen(ctx, unix, path)
	if errors.Is(err, syscall.EADDRINUSE) && abandoned(ctx, path) {
		if err := os.Remove(path); err != nil {
			return nil, err
		}
		l, err = c.Listen(ctx, unix, path)
	}
	return l, err
}

// abandoned reports whether a socket exists without a process that listens on it, as after a kill.
func abandoned(ctx context.Context, path string) bool {
	stat, err := os.Stat(path)
	if err != nil || stat.Mode()&os.ModeSocket == 0 {
		return false
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, unix, path)
	if err != nil {
		return errors.Is(err, syscall.ECONNREFUSED)
	}
	_ = conn.Close()
	return false
}

// ofConnection returns the context of the requests on a connection of HTTP, so that they count as use of the connection.
func ofConnection(ctx context.Context, conn net.Conn) context.Context {
	if c := connection.Find(conn); c != nil {
		return identity.WithActivity(ctx, c)
	}
	return ctx
}
