// Package cli is what every command of the command line has: its streams, flags that people can misspell, the formats of answers, exit
// codes, and errors in words.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/cluster"
)

// The exit codes of the process.
const (
	ExitYes     = 0
	ExitUsage   = 1
	ExitNo      = 2
	ExitService = 3
)

// ErrDecidedNo ends a command whose answer was printed and is no.
var ErrDecidedNo = errors.New("decided: no")

// Describe returns the text of an error.
func Describe(err error) string {
	st, ok := status.FromError(err)
	if !ok {
		return inWords(withoutCall(err))
	}
	text := unquoted(client.Describe(err))
	if named, ok := errors.AsType[*namedError](err); ok {
		text = named.Error()
	}
	if ExitCode(err) == ExitService {
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

// ExitCode returns the exit code of a command that ended so. It distinguishes errors of the input from errors of the service.
func ExitCode(err error) int {
	switch {
	case err == nil:
		return ExitYes
	case errors.Is(err, ErrDecidedNo):
		return ExitNo
	}
	st, ok := status.FromError(err)
	if !ok {
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, cluster.ErrUnavailable) {
			return ExitService
		}
		return ExitUsage
	}
	switch st.Code() {
	case codes.OK, codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.FailedPrecondition, codes.OutOfRange:
		return ExitUsage
	default:
		return ExitService
	}
}

// Reworded returns an error with another text, such as one that has names in place of positions.
func Reworded(err error, text string) error { return &namedError{err, text} }

// namedError is an error whose violations contain names instead of positions.
type namedError struct {
	error

	described string
}

func (e *namedError) Error() string { return e.described }

func (e *namedError) Unwrap() error { return e.error }

// What cobra says about flags that exclude each other, or are missing, and the same in words. Its group names the flags.
var flagRules = []struct {
	cobra          *regexp.Regexp
	between, words string
}{
	{
		regexp.MustCompile(`^if any flags in the group .* are set none of the others can be; \[(.*)\] were all set$`),
		" and ", " cannot be used together",
	},
	{regexp.MustCompile(`^at least one of the flags in the group \[(.*)\] is required$`), " or ", " is needed"},
	{regexp.MustCompile(`^required flag\(s\) (".*") not set$`), " and ", " is needed"},
}

// inWords returns the text of an error, that of cobra about several flags in plain words.
func inWords(text string) string {
	for _, rule := range flagRules {
		if parts := rule.cobra.FindStringSubmatch(text); parts != nil {
			flags := strings.Fields(strings.NewReplacer(`"`, "", ",", "").Replace(parts[1]))
			for i := range flags {
				flags[i] = "--" + flags[i]
			}
			return strings.Join(flags, rule.between) + rule.words
		}
	}
	return text
}
