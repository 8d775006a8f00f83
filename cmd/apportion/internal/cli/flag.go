package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/apportion/apportion/internal/duration"
	"github.com/apportion/apportion/internal/spelling"
)

// choice is the value of a flag with a fixed set of values.
type choice struct {
	to    *string
	among []string
}

// String returns the value.
func (c choice) String() string { return *c.to }

// Type returns the name of the type in the help.
func (choice) Type() string { return "string" }

// Set takes one of the values.
func (c choice) Set(text string) error {
	if !slices.Contains(c.among, text) {
		return fmt.Errorf("%q is not %s", text, OrList(c.among))
	}
	*c.to = text
	return nil
}

// Choose adds a flag with a fixed set of values, which the help lists and the shell completes. Its default is the current value of to.
func Choose(command *cobra.Command, to *string, name, short, usage string, among ...string) {
	command.Flags().VarP(choice{to, among}, name, short, usage+": "+OrList(among))
	MustComplete(command, name, among...)
}

// OrList joins names as in "table, json or yaml".
func OrList(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// CheckAll returns an error for values of a repeatable flag that are not in a fixed set.
func CheckAll[T ~string](flag, what string, values []string, among []T) error {
	for _, value := range values {
		if !slices.Contains(among, T(value)) {
			return fmt.Errorf("--%s: no %s %q; there are %s", flag, what, value, InLines(among))
		}
	}
	return nil
}

// InLines lists names in lines that fit into a terminal, in one line if possible.
func InLines[T ~string](names []T) string {
	const columns = 100
	var text strings.Builder
	width := 0
	for i, name := range names {
		if i > 0 {
			text.WriteString(", ")
			if width+len(name) > columns {
				text.WriteString("\n  ")
				width = 0
			}
		}
		text.WriteString(string(name))
		width += len(name) + 2
	}
	return text.String()
}

// MustComplete offers fixed values of a flag to the shell.
func MustComplete(command *cobra.Command, flag string, values ...string) {
	Must(command, command.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveDefault)))
}

// Must reports an error in the declaration of a command.
func Must(command *cobra.Command, err error) {
	if err != nil {
		command.PrintErrln(err)
	}
}

// Arguments returns an error unless the number of arguments is from least to most, where most 0 is no limit; what describes the arguments,
// such as "one task".
func Arguments(least, most int, what string) cobra.PositionalArgs {
	return func(command *cobra.Command, args []string) error {
		if len(args) < least || most > 0 && len(args) > most {
			return fmt.Errorf("name %s: %s", what, command.UseLine())
		}
		return nil
	}
}

// WithKinds adds subcommands to a command that requires one of them.
func WithKinds(command *cobra.Command, kinds ...*cobra.Command) *cobra.Command {
	command.AddCommand(kinds...)
	names := make([]string, len(kinds))
	for i, kind := range kinds {
		names[i] = kind.Name()
	}
	among := strings.Join(names, ", ")
	unknown := func(command *cobra.Command, args []string) error {
		like := spelling.Suggestion(args[0], slices.Values(names))
		return fmt.Errorf("%s: there is no %q%s", command.CommandPath(), args[0], spelling.Then(like, "there are "+among))
	}
	command.RunE = func(command *cobra.Command, args []string) error {
		if len(args) == 0 {
			return command.Help()
		}
		return unknown(command, args)
	}
	command.SetFlagErrorFunc(func(failed *cobra.Command, err error) error {
		if failed != command {
			return MeantFlag(failed, err)
		}
		if args := command.Flags().Args(); len(args) > 0 {
			return unknown(command, args)
		}
		if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok && unknown.GetSpecifiedShortnames() != "" {
			return fmt.Errorf("unknown flag: -%s; first name one of %s", unknown.GetSpecifiedName(), among)
		}
		return fmt.Errorf("%w; first name one of %s", err, among)
	})
	return command
}

// MeantFlag puts the error about a flag into plain words. For one that the command does not have it names the similar one, or where all are
// listed.
func MeantFlag(command *cobra.Command, err error) error {
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return fmt.Errorf("--%s: %w", invalid.GetFlag().Name, notOfType(invalid))
	}
	if needs, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return fmt.Errorf("--%s needs a value", needs.GetFlag().Name)
	}
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return err
	}
	if unknown.GetSpecifiedShortnames() != "" {
		return fmt.Errorf("unknown flag: -%s; %q lists the flags", unknown.GetSpecifiedName(), command.CommandPath()+" --help")
	}
	var known []string
	command.Flags().VisitAll(func(flag *pflag.Flag) { known = append(known, "--"+flag.Name) })
	like := spelling.Suggestion("--"+unknown.GetSpecifiedName(), slices.Values(known))
	if like == "" {
		like = fmt.Sprintf("; %q lists the flags", command.CommandPath()+" --help")
	}
	return fmt.Errorf("%w%s", err, like)
}

// notOfType says what the value of a flag is not.
func notOfType(invalid *pflag.InvalidValueError) error {
	kinds := map[string]string{
		"duration": "a time, such as 90s, 1h30m or 7d", "bool": "true or false", "int": "a whole number", "int32": "a whole number",
		"int64": "a whole number", "uint": "a whole number from 0 on", "uint32": "a whole number from 0 on",
		"uint64": "a whole number from 0 on", "uintSlice": "a list of whole numbers from 0 on", "float64": "a number",
	}
	kind := kinds[invalid.GetFlag().Value.Type()]
	if kind == "" {
		return invalid.Unwrap()
	}
	return fmt.Errorf("%q is not %s", invalid.GetValue(), kind)
}

// durationValue is a duration as people write it.
type durationValue time.Duration

// Set reads a duration.
func (d *durationValue) Set(text string) error {
	read, err := duration.Parse(text)
	*d = durationValue(read)
	return err
}

func (d *durationValue) String() string { return duration.Format(time.Duration(*d)) }

// Type returns the name of the type in the help.
func (d *durationValue) Type() string { return "duration" }

// DurationVar defines a flag for a duration. Help shows no default of zero.
func DurationVar(flags *pflag.FlagSet, at *time.Duration, name string, value time.Duration, usage string) {
	*at = value
	flag := flags.VarPF((*durationValue)(at), name, "", usage)
	if value == 0 {
		flag.DefValue = ""
	}
}

// NoArgs returns an error for an argument, which is often a file that lacks its flag.
func NoArgs(command *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	files := ""
	if command.Flags().Lookup("file") != nil {
		files = "; files are named with -f FILE"
	}
	_, name, _ := strings.Cut(command.CommandPath(), " ")
	return fmt.Errorf("%s takes no arguments, got %q%s", name, args[0], files)
}
