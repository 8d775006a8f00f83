package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/encoding"
	protocodec "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// process is a server in a process of its own, so that its memory can be told from the generator's.
type process struct{ command *exec.Cmd }

func startServer() (*process, string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // A port that is free, nothing more.
	if err != nil {
		return nil, "", err
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		return nil, "", err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, "", err
	}
	arguments := []string{self, "-serve", address}
	if pinned() {
		arguments = append([]string{tasksetName, "-c", "0"}, arguments...)
	}
	p := &process{exec.Command(arguments[0], arguments[1:]...)} //nolint:gosec,noctx // G204: this program itself.
	p.command.Env = append(os.Environ(), "GOMEMLIMIT="+strconv.Itoa(bound), "GOMAXPROCS=1")
	p.command.Stderr = os.Stderr
	if err := p.command.Start(); err != nil {
		return nil, "", err
	}
	for range 100 {
		time.Sleep(50 * time.Millisecond)
		if conn, err := net.Dial("tcp", address); err == nil { //nolint:noctx // It is local.
			return p, address, conn.Close()
		}
	}
	p.end()
	return nil, "", fmt.Errorf("no server on %s", address)
}

func (p *process) end() {
	_ = p.command.Process.Kill()
	_ = p.command.Wait()
}

// cpu is the processor time in seconds that the server has taken so far; 0 where the system does not tell.
func (p *process) cpu() float64 {
	const user, system, ticks = 11, 12, 100
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.command.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	fields := strings.Fields(rest)
	if len(fields) <= system {
		return 0
	}
	total := 0.0
	for _, field := range fields[user : system+1] {
		n, _ := strconv.ParseFloat(field, 64)
		total += n / ticks
	}
	return total
}

// peakMemory is the most memory that the server has taken so far; 0 where the system does not tell.
func (p *process) peakMemory() int64 {
	file, err := os.Open(fmt.Sprintf("/proc/%d/status", p.command.Process.Pid))
	if err != nil {
		return 0
	}
	defer file.Close() //nolint:errcheck // It was read only.
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "VmHWM:"); ok {
			kib, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(text), " kB"), 10, 64)
			return kib << 10
		}
	}
	return 0
}

// payload is the request, encoded once: the generator must not be what is overloaded.
var payload []byte

func encode(request proto.Message) (err error) {
	payload, err = proto.Marshal(request)
	return err
}

// fixed sends the payload whatever the request, and does not decode answers.
type fixed struct{}

// Marshal returns the payload.
func (fixed) Marshal(any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(payload)}, nil
}

// Unmarshal passes over an answer.
func (fixed) Unmarshal(mem.BufferSlice, any) error { return nil }

// Name is that of the codec for which this one stands.
func (fixed) Name() string { return protocodec.Name }

var _ encoding.CodecV2 = fixed{}
