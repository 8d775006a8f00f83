package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// cluster is servers, and a proxy before them.
type cluster struct {
	replicas []*replica
	proxy    *exec.Cmd
	// proxied is the proxy's address where it takes HTTP/2 apart, connected where it passes bytes on.
	proxied, connected string
	directory          string
}

// replica is one server.
type replica struct {
	command        *exec.Cmd
	address, admin string
	gone           bool
}

// leave tells the server to end, and does not wait for it.
func (r *replica) leave() error {
	r.gone = true
	return r.command.Process.Signal(syscall.SIGTERM)
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
	for range replicas {
		r := &replica{}
		for _, address := range []*string{&r.address, &r.admin} {
			var err error
			if *address, err = free(ctx); err != nil {
				return err
			}
		}
		//nolint:gosec // the operator's own server
		r.command = exec.CommandContext(ctx, s.binary, "serve", "--listen", r.address, "--admin-listen", r.admin,
			"--drain-delay", "1s", "--log-level", "error")
		r.command.Env, r.command.Stderr = append(os.Environ(), "GOMAXPROCS=1"), os.Stderr
		if err := r.command.Start(); err != nil {
			return err
		}
		c.replicas = append(c.replicas, r)
	}
	for _, address := range []*string{&c.proxied, &c.connected} {
		var err error
		if *address, err = free(ctx); err != nil {
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
	for _, r := range c.replicas {
		if err := ready(ctx, r.admin); err != nil {
			return err
		}
	}
	// The proxy looks at each replica once a second.
	time.Sleep(1500 * time.Millisecond)
	return nil
}

// configuration of the proxy: one address that understands HTTP/2 and sends every call to another replica, one that sends every
// connection.
func (c *cluster) configuration() string {
	var text strings.Builder
	text.WriteString("defaults\n  timeout connect 2s\n  timeout client 1h\n  timeout server 1h\n" +
		"  default-server check inter 1s fall 1 rise 1\n")
	for _, way := range []struct{ name, address, mode, protocol string }{
		{"calls", c.proxied, "http", " proto h2"}, {"connections", c.connected, "tcp", ""},
	} {
		fmt.Fprintf(&text, "frontend %s\n  mode %s\n  bind %s%s\n  default_backend %s\n",
			way.name, way.mode, way.address, way.protocol, way.name)
		fmt.Fprintf(&text, "backend %s\n  mode %s\n  balance roundrobin\n  option httpchk GET /readyz\n", way.name, way.mode)
		for i, r := range c.replicas {
			_, port, _ := net.SplitHostPort(r.admin)
			fmt.Fprintf(&text, "  server r%d %s%s port %s", i, r.address, way.protocol, port)
			if way.protocol != "" {
				text.WriteString(" check-proto h1")
			}
			text.WriteByte('\n')
		}
	}
	return text.String()
}

// stop ends what runs, and what has been told to.
func (c *cluster) stop() error {
	if c.proxy != nil && c.proxy.Process != nil {
		_ = c.proxy.Process.Kill()
		_ = c.proxy.Wait()
	}
	for _, r := range c.replicas {
		_ = r.command.Process.Kill()
		_ = r.command.Wait()
	}
	return os.RemoveAll(c.directory)
}

// free is an address that nobody listens on.
func free(ctx context.Context) (string, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// ready waits until a server takes calls.
func ready(ctx context.Context, admin string) error {
	for range 100 {
		if body, err := get(ctx, admin, "/readyz"); err == nil {
			return body.Body.Close()
		}
		time.Sleep(100 * time.Millisecond)
	}
	return fmt.Errorf("the server at %s did not become ready", admin)
}

func get(ctx context.Context, address, path string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("%s%s: %s", address, path, response.Status), response.Body.Close())
	}
	return response, nil
}

// answered is how many calls each replica says that it has answered; -1 from one that has left.
func (c *cluster) answered(ctx context.Context) ([]int, error) {
	counts := make([]int, len(c.replicas))
	for i, r := range c.replicas {
		if r.gone {
			counts[i] = -1
			continue
		}
		response, err := get(ctx, r.admin, "/metrics")
		if err != nil {
			return nil, err
		}
		lines := bufio.NewScanner(response.Body)
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), " ")
			if !strings.HasPrefix(name, "grpc_server_call_duration_seconds_count{") || !strings.Contains(name, "EvaluateShares") {
				continue
			}
			count, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return nil, err
			}
			counts[i] += int(count)
		}
		if err := errors.Join(lines.Err(), response.Body.Close()); err != nil {
			return nil, err
		}
	}
	return counts, nil
}
