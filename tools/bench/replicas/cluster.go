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

// cluster is servers, and a proxy before them.
type cluster struct {
	replicas []*replica.Replica
	// left is the state of the first one: it was asked to stop.
	left  bool
	proxy *exec.Cmd
	// proxied is the proxy's address where it takes HTTP/2 apart, connected where it passes bytes on.
	proxied, connected string
	// hashed is where it chooses the replica by a hash of the mirror's header.
	hashed    string
	directory string
}

// leave asks the first server to stop, and does not wait for it.
func (c *cluster) leave() error {
	c.left = true
	return c.replicas[0].Leave()
}

// serve starts so many servers that wait for delay before they drain. With an error it returns those to be killed.
func serve(ctx context.Context, binary string, count int, delay time.Duration) ([]*replica.Replica, error) {
	var replicas []*replica.Replica
	for range count {
		r, err := replica.New(ctx, binary, "--drain-delay", delay.String())
		if err != nil {
			return replicas, err
		}
		replicas = append(replicas, r)
		if err := r.Start(ctx); err != nil {
			return replicas, err
		}
	}
	return replicas, nil
}

// ready waits until all servers take calls.
func ready(ctx context.Context, replicas []*replica.Replica) error {
	for _, r := range replicas {
		if err := r.Ready(ctx); err != nil {
			return err
		}
	}
	return nil
}

func kill(replicas []*replica.Replica) {
	for _, r := range replicas {
		r.Kill()
	}
}

func start(ctx context.Context, s *setting, replicas int) (*cluster, error) {
	directory, err := os.MkdirTemp("", "replicas-")
	if err != nil {
		return nil, err
	}
	c := &cluster{directory: directory}
	if err := c.start(ctx, s, replicas); err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return c, nil
}

func (c *cluster) start(ctx context.Context, s *setting, replicas int) error {
	var err error
	if c.replicas, err = serve(ctx, s.binary, replicas, time.Second); err != nil {
		return err
	}
	for _, address := range []*string{&c.proxied, &c.connected, &c.hashed} {
		if *address, err = replica.Free(ctx); err != nil {
			return err
		}
	}
	file := filepath.Join(c.directory, "haproxy.cfg")
	if err := os.WriteFile(file, []byte(c.configuration()), 0o600); err != nil {
		return err
	}
	c.proxy = exec.CommandContext(ctx, s.proxy, "-db", "-f", file) //nolint:gosec // the operator's own proxy
	if err := c.proxy.Start(); err != nil {
		return err
	}
	if err := ready(ctx, c.replicas); err != nil {
		return err
	}
	// The proxy looks at each replica twice a second.
	time.Sleep(1500 * time.Millisecond)
	return nil
}

// configuration of the proxy: one address that understands HTTP/2 and sends every call to another replica, one that sends every
// connection.
func (c *cluster) configuration() string {
	var text strings.Builder
	text.WriteString("defaults\n  timeout connect 2s\n  timeout client 1h\n  timeout server 1h\n" +
		"  default-server check inter 500ms fall 1 rise 1\n")
	for _, way := range []struct{ name, address, mode, protocol, balance string }{
		{"calls", c.proxied, "http", " proto h2", "roundrobin"},
		{"connections", c.connected, "tcp", "", "roundrobin"},
		{"mirrors", c.hashed, "http", " proto h2", "hdr(" + client.RoutingHeader + ")\n  hash-type consistent"},
	} {
		fmt.Fprintf(&text, "frontend %s\n  mode %s\n  bind %s%s\n  default_backend %s\n",
			way.name, way.mode, way.address, way.protocol, way.name)
		fmt.Fprintf(&text, "backend %s\n  mode %s\n  balance %s\n  option httpchk GET /readyz\n", way.name, way.mode, way.balance)
		for i, r := range c.replicas {
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

// stop ends the replicas that run, and those that are stopping.
func (c *cluster) stop() error {
	if c.proxy != nil && c.proxy.Process != nil {
		_ = c.proxy.Process.Kill()
		_ = c.proxy.Wait()
	}
	kill(c.replicas)
	return os.RemoveAll(c.directory)
}

// hold lets each server run for a share of the time alone, until the function that it returns is called, once or more.
func (c *cluster) hold(share float64) (release func()) {
	releases := make([]func(), len(c.replicas))
	for i, r := range c.replicas {
		releases[i] = hold(r.Process(), share)
	}
	return sync.OnceFunc(func() {
		for _, release := range releases {
			release()
		}
	})
}

// computed returns the processor time of the servers that are left.
func (c *cluster) computed(ctx context.Context) (time.Duration, error) {
	total := time.Duration(0)
	for i, r := range c.replicas {
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

// answered returns the count of answered calls that each replica reports; -1 for one that has left.
func (c *cluster) answered(ctx context.Context) ([]int, error) {
	counts := make([]int, len(c.replicas))
	for i, r := range c.replicas {
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
