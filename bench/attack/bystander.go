package main

import (
	"context"
	"fmt"
	"math"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/apportion/apportion/bench/internal/fixture"
	"github.com/apportion/apportion/bench/internal/sample"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/generate"
)

// goodHost is the last byte of the good caller's address on the loopback network. Attackers have those from 1 on.
const goodHost = 250

// times is what became of calls.
type times struct {
	milliseconds []float64
	failed       int
}

// percentile returns the time that a part of the calls did not exceed.
func (t *times) percentile(part float64) float64 {
	if len(t.milliseconds) == 0 {
		return math.NaN()
	}
	slices.Sort(t.milliseconds)
	return t.milliseconds[min(int(part*float64(len(t.milliseconds))), len(t.milliseconds)-1)]
}

func (t *times) both() string {
	return sample.Number(t.percentile(0.5)) + " / " + sample.Number(t.percentile(0.99))
}

func (t *times) add(began time.Time, err error) {
	if err != nil {
		t.failed++
		return
	}
	t.milliseconds = append(t.milliseconds, float64(time.Since(began))/float64(time.Millisecond))
}

// bystander is the good caller: its calls on a connection that it keeps, and those that begin with a new connection.
type bystander struct{ calls, fresh times }

// watch makes small calls, and some on new connections, until do returns.
func watch(ctx context.Context, server string, do func() error) (*bystander, error) {
	input, err := fixture.Input(generate.Snapshot(fixture.Small()), "proportion")
	if err != nil {
		return nil, err
	}
	request := &apportionv1.EvaluateSharesRequest{Input: input}
	conn, err := dial(server, goodHost)
	if err != nil {
		return nil, err
	}
	defer conn.Close() //nolint:errcheck // It ends with the process.
	b := &bystander{}
	done := make(chan struct{})
	var calling sync.WaitGroup
	repeat := func(every time.Duration, into *times, one func() error) {
		calling.Go(func() {
			for {
				began := time.Now()
				into.add(began, one())
				select {
				case <-done:
					return
				case <-time.After(every):
				}
			}
		})
	}
	ask := func(conn *grpc.ClientConn) error {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		_, err := apportionv1.NewApportionServiceClient(conn).EvaluateShares(ctx, request)
		return err
	}
	repeat(10*time.Millisecond, &b.calls, func() error { return ask(conn) })
	repeat(200*time.Millisecond, &b.fresh, func() error {
		conn, err := dial(server, goodHost)
		if err != nil {
			return err
		}
		defer conn.Close() //nolint:errcheck // As above.
		return ask(conn)
	})
	err = do()
	close(done)
	calling.Wait()
	return b, err
}

// dial connects from an address of the loopback network.
func dial(server string, host int, options ...grpc.DialOption) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+server, append(options, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, to string) (net.Conn, error) { return connect(ctx, to, host) }))...)
}

func connect(ctx context.Context, server string, host int) (net.Conn, error) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(host))}, Timeout: 10 * time.Second}
	return dialer.DialContext(ctx, "tcp", server)
}

var highWater = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// peak is the most memory of a process that was resident at a time, in MiB.
func peak(pid int) (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	found := highWater.FindSubmatch(status)
	if found == nil {
		return math.NaN(), nil
	}
	kilobytes, err := strconv.ParseFloat(string(found[1]), 64)
	return math.Round(kilobytes / 1024), err
}
