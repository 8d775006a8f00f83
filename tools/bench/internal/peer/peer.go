// Package peer runs the other side of a measurement in a process of its own, so that client and server share neither memory nor garbage
// collector, and the server's costs are measured apart from the client's.
package peer

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Usage contains the resources that a process has used so far.
type Usage struct {
	CPU time.Duration `json:"cpu"`
	// Peak is the maximum resident memory in bytes; 0 if the system does not report it.
	Peak int64 `json:"peak"`
	// Faults are first touches of memory pages that the system had to provide.
	Faults int64 `json:"faults"`
	// Allocated bytes and objects, and collections of garbage.
	Bytes       uint64 `json:"bytes"`
	Objects     uint64 `json:"objects"`
	Collections uint64 `json:"collections"`
}

// Peer is a process that serves.
type Peer struct {
	// Address is the address on which it listens.
	Address string

	process *exec.Cmd
	ask     io.WriteCloser
	answers *bufio.Reader
}

// Start runs this executable again as `-serve ROLE`, and its main function must call Run. environment is added to the environment of this
// process.
func Start(ctx context.Context, role string, environment ...string) (*Peer, error) {
	p, err := Spawn(ctx, environment, "-serve", role)
	if err != nil {
		return nil, err
	}
	line, err := p.answers.ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the server did not start: %w", err), p.Stop())
	}
	p.Address = strings.TrimSpace(line)
	return p, nil
}

// Spawn runs this executable again, with arguments. environment is added to the environment of this process.
func Spawn(ctx context.Context, environment []string, arguments ...string) (*Peer, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &Peer{process: exec.CommandContext(ctx, self, arguments...)} //nolint:gosec // This very program.
	p.process.Env = append(os.Environ(), environment...)
	p.process.Stderr = os.Stderr
	if p.ask, err = p.process.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.answers = bufio.NewReader(out)
	return p, p.process.Start()
}

// Ask sends a line to the process, and reads its answer, which is a line of JSON.
func (p *Peer) Ask(question string, answer any) error {
	if _, err := io.WriteString(p.ask, question+"\n"); err != nil {
		return err
	}
	line, err := p.answers.ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(line, answer)
}

// Usage returns the resources that the process has used so far.
func (p *Peer) Usage() (u Usage, err error) {
	err = p.Ask("usage", &u)
	return u, err
}

// PID is the process.
func (p *Peer) PID() int { return p.process.Process.Pid }

// Stop ends the process and waits for it.
func (p *Peer) Stop() error {
	return errors.Join(p.ask.Close(), p.process.Wait())
}
