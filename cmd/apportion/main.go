// Command apportion answers questions about the fair sharing of a cluster's resources: on the manifests that kubectl prints, in its own
// process or against a server, and it is that server.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/internal/visible"
)

// version is set by the linker.
var version = "development"

// exitInterrupted is the shell's code for a process that an interrupt ended.
const exitInterrupted = 130

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second interrupt ends the process at once.
	context.AfterFunc(ctx, stop)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run executes a command line and returns the exit code.
func run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	answer := &cli.Output{To: out}
	root := newRootFor(cli.Streams{In: in, Out: answer, Err: errOut}, args)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if failed := answer.Failed(); failed != nil && (err == nil || errors.Is(err, cli.ErrDecidedNo)) {
		err = failed
	}
	switch {
	case err == nil, errors.Is(err, cli.ErrDecidedNo):
		return cli.ExitCode(err)
	case ctx.Err() != nil:
		fmt.Fprintln(errOut, "apportion: interrupted")
		return exitInterrupted
	}
	text := cli.Describe(err)
	if n := faultsOf(err); n > 1 {
		text = fmt.Sprintf("the input has %d faults\n%s", n, text)
	}
	// The commands that an unknown one resembles come after tabs.
	text = strings.TrimRight(strings.ReplaceAll(text, "\n\t", "\n  "), "\n")
	fmt.Fprintln(errOut, "apportion: "+visible.Lines(text))
	return cli.ExitCode(err)
}

// faultsOf counts the faults of the input that an error lists.
func faultsOf(err error) int {
	if faults, ok := errors.AsType[*objects.Error](err); ok {
		return faults.Total
	}
	_, total := client.Violations(err)
	return total
}
