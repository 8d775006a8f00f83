// Command apportion answers questions about the fair sharing of a cluster's resources: on the manifests that kubectl prints, in its own
// process or against a server, and it is that server.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/cluster"
	"github.com/apportion/apportion/internal/visible"
)

// version is set by the linker.
var version = "development"

// The exit codes of the process.
const (
	exitYes     = 0
	exitUsage   = 1
	exitNo      = 2
	exitService = 3
	// exitInterrupted is the shell's code for a process that an interrupt ended.
	exitInterrupted = 130
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second interrupt ends the process at once.
	context.AfterFunc(ctx, stop)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// errDecidedNo ends a command whose answer was printed and is no.
var errDecidedNo = errors.New("decided: no")

// run executes a command line and returns the exit code.
func run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	answer := &output{to: out}
	root := newRootFor(streams{in: in, out: answer, err: errOut}, args)
	if isPlugin(os.Args[0]) {
		becomePlugin(root)
	}
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if failed := answer.failed(); failed != nil && (err == nil || errors.Is(err, errDecidedNo)) {
		err = failed
	}
	switch {
	case err == nil:
		return exitYes
	case errors.Is(err, errDecidedNo):
		return exitNo
	case ctx.Err() != nil:
		fmt.Fprintln(errOut, "apportion: interrupted")
		return exitInterrupted
	}
	text := describe(err)
	if n := faultsOf(err); n > 1 {
		text = fmt.Sprintf("the input has %d faults\n%s", n, text)
	}
	// The commands that an unknown one resembles come after tabs.
	text = strings.TrimRight(strings.ReplaceAll(text, "\n\t", "\n  "), "\n")
	fmt.Fprintln(errOut, "apportion: "+visible.Lines(text))
	return exitCode(err)
}

// faultsOf counts the faults of the input that an error lists.
func faultsOf(err error) int {
	if faults, ok := errors.AsType[*objects.Error](err); ok {
		return faults.Total
	}
	_, total := client.Violations(err)
	return total
}

// describe returns the text of an error.
func describe(err error) string {
	st, ok := status.FromError(err)
	if !ok {
		return inWords(withoutCall(err))
	}
	text := unquoted(client.Describe(err))
	if named, ok := errors.AsType[*namedError](err); ok {
		text = named.Error()
	}
	if exitCode(err) == exitService {
		return fmt.Sprintf("%s (%s)", text, st.Code())
	}
	return text
}

// withoutCall is the text of an error without the name of the system call that failed on a file.
func withoutCall(err error) string {
	text := err.Error()
	if fault, ok := errors.AsType[*fs.PathError](err); ok {
		short := fault.Path + ": " + fault.Err.Error()
		text = strings.Replace(text, fault.Error(), short, 1)
		text = strings.Replace(text, fault.Path+": "+short, short, 1)
	}
	return text
}

// unquoted removes the text that gRPC adds around the reason of a failed connection, and names the flag if only one of the two uses TLS.
func unquoted(text string) string {
	if strings.Contains(text, "first record does not look like a TLS handshake") {
		return "the server does not use TLS: leave out --tls and the other flags of TLS"
	}
	if strings.Contains(text, "error reading server preface: ") {
		return "the server ended the connection at once: if it uses TLS, set --tls or --tls-ca"
	}
	inner, ok := strings.CutPrefix(text, `connection error: desc = "transport: Error while dialing: `)
	if !ok {
		return text
	}
	return "the server cannot be reached: " + strings.TrimSuffix(inner, `"`)
}

// exitCode distinguishes errors of the input from errors of the service.
func exitCode(err error) int {
	st, ok := status.FromError(err)
	if !ok {
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, cluster.ErrUnavailable) {
			return exitService
		}
		return exitUsage
	}
	switch st.Code() {
	case codes.OK, codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.FailedPrecondition, codes.OutOfRange:
		return exitUsage
	default:
		return exitService
	}
}
