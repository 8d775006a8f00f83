package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/internal/test/replica"
)

// proxied is a fleet, and a proxy before it.
type proxied struct {
	servers fleet
	// left is the state of the first one: it was asked to stop.
	left  bool
	proxy *exec.Cmd
	// The addresses of the proxy: where it sends each call to another server, each connection, and a mirror by its header to the same one.
	calls, connections, mirrors string
	directory                   string
}

// leave asks the first server to stop, and does not wait for it.
func (c *proxied) leave() error {
	c.left = true
	return c.servers[0].Leave()
}

// start starts so many servers, and the proxy.
func (b balancing) start(ctx context.Context, count int) (*proxied, error) {
	directory, err := os.MkdirTemp("", "proxied-")
	if err != nil {
		return nil, err
	}
	c := &proxied{directory: directory}
	if c.servers, err = launch(ctx, b.binary, count, nil, "--drain-delay", "1s"); err == nil {
		err = c.start(ctx, b.proxy)
	}
	if err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return c, nil
}

func (c *proxied) start(ctx context.Context, proxy string) error {
	for _, address := range []*string{&c.calls, &c.connections, &c.mirrors} {
		var err error
		if *address, err = replica.Free(ctx); err != nil {
			return err
		}
	}
	file := filepath.Join(c.directory, "haproxy.cfg")
	if err := os.WriteFile(file, []byte(c.configuration()), 0o600); err != nil {
		return err
	}
	c.proxy = exec.CommandContext(ctx, proxy, "-db", "-f", file) //nolint:gosec // the operator's own proxy
	if err := c.proxy.Start(); err != nil {
		return err
	}
	// The proxy looks at each server twice a second.
	time.Sleep(1500 * time.Millisecond)
	return nil
}

// configuration of the proxy: one address that understands HTTP/2 and sends every call to another replica, one that sends every
// connection.
func (c *proxied) configuration() string {
	var text strings.Builder
	text.WriteString("defaults\n  timeout connect 2s\n  timeout client 1h\n  timeout server 1h\n" +
		"  default-server check inter 500ms fall 1 rise 1\n")
	for _, way := range []struct{ name, address, mode, protocol, balance string }{
		{"calls", c.calls, "http", " proto h2", "roundrobin"},
		{"connections", c.connections, "tcp", "", "roundrobin"},
		{"mirrors", c.mirrors, "http", " proto h2", "hdr(" + client.RoutingHeader + ")\n  hash-type consistent"},
	} {
		fmt.Fprintf(&text, "frontend %s\n  mode %s\n  bind %s%s\n  default_backend %s\n",
			way.name, way.mode, way.address, way.protocol, way.name)
		fmt.Fprintf(&text, "backend %s\n  mode %s\n  balance %s\n  option httpchk GET /readyz\n", way.name, way.mode, way.balance)
		for i, r := range c.servers {
			_, port, _ := net.SplitHostPort(r.Admin)
			fmt.Fprintf(&text, "  server r%d %s%s port %s", i, r.Address, way.protocol, port)
			if way.protocol != "" {
				text.WriteString(" check-proto h1")
			}
			text.WriteByte('\n')
		}
	}
	return text.String()
}

// stop ends the proxy, the servers that run, and those that are stopping.
func (c *proxied) stop() error {
	if c.proxy != nil && c.proxy.Process != nil {
		_ = c.proxy.Process.Kill()
		_ = c.proxy.Wait()
	}
	c.servers.kill()
	return os.RemoveAll(c.directory)
}

// hold lets each server run for a share of the time alone, until the function that it returns is called, once or more.
func (c *proxied) hold(share float64) (release func()) {
	releases := make([]func(), len(c.servers))
	for i, r := range c.servers {
		releases[i] = throttle(r.Process(), share)
	}
	return sync.OnceFunc(func() {
		for _, release := range releases {
			release()
		}
	})
}

// computed returns the processor time of the servers that are left.
func (c *proxied) computed(ctx context.Context) (time.Duration, error) {
	total := time.Duration(0)
	for i, r := range c.servers {
		if i == 0 && c.left {
			continue
		}
		worked, err := r.Computed(ctx)
		if err != nil {
			return 0, err
		}
		total += worked
	}
	return total, nil
}

// answered returns the count of answered calls that each server reports; -1 for one that has left.
func (c *proxied) answered(ctx context.Context) ([]int, error) {
	counts := make([]int, len(c.servers))
	for i, r := range c.servers {
		if i == 0 && c.left {
			counts[i] = -1
			continue
		}
		var err error
		if counts[i], err = r.Answered(ctx, "EvaluateShares"); err != nil {
			return nil, err
		}
	}
	return counts, nil
}
