package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/cmd/apportion/internal/cli"
)

func TestAMistakeOfTheCommandLineSaysWhatWasMeant(t *testing.T) {
	const extender = "convert --to extender --policy ../../examples/clusters/research/volcano-scheduler.conf -o "
	for _, test := range []struct{ line, want string }{
		{"pending cluster.yaml", `pending takes no arguments, got "cluster.yaml"; files are named with -f FILE`},
		{"get queues vision -f cluster.yaml", `get queues takes no arguments, got "vision"; files are named with -f FILE`},
		{"version now", `version takes no arguments, got "now"`},
		{"get queue -f cluster.yaml", `apportion get: there is no "queue"; did you mean "queues"? There are queues, jobs, nodes`},
		{"get -f cluster.yaml", "unknown flag: -f; first name one of queues, jobs, nodes"},
		{"shares --polcy fair", `unknown flag: --polcy; did you mean "--policy"?`},
		{"shares --colour", `unknown flag: --colour; "apportion shares --help" lists the flags`},
		{"shares -z", `unknown flag: -z; "apportion shares --help" lists the flags`},
		{"pending --since soon", `--since: "soon" is not a time, such as 90s, 1h30m or 7d`},
		{"pending --top few", `--top: "few" is not a whole number`},
		{"generate --seed -1", `--seed: "-1" is not a whole number from 0 on`},
		{"rehearse --seed 1,-1", `--seed: "1,-1" is not a list of whole numbers from 0 on`},
		{"shares -f", "--file needs a value"},
		{"shares -f x -o xml", `--output: "xml" is not table, json or yaml`},
		{"get queues --snapshto x", `unknown flag: --snapshto; did you mean "--snapshot"?`},
		{"generate --queues -1 --tasks 100000000 --depth 101 --dimensions 1", "--queues -1: a number from 0 to 1000000 is expected\n" +
			"--tasks 100000000: a number from 0 to 1000000 is expected\n--depth 101: a number from 0 to 100 is expected\n" +
			"--dimensions 1: 0 or a number from 2 to 64 is expected"},
		{"generate --standard --queues 3", "--queues and --standard cannot be used together"},
		{"explain --all --remedies -f cluster.yaml", "--all and --remedies cannot be used together"},
		{"usage", "--ledger or --server is needed"},
		{"health", "--server is needed"},
		{extender + "json", "-o: --to extender, and --to fair with -f, write files for other programs, in YAML"},
	} {
		code, out, errors := execute(t, "", strings.Fields(test.line)...)
		require.Equal(t, cli.ExitUsage, code, test.line)
		require.Empty(t, out, test.line)
		require.Equal(t, "apportion: "+test.want+"\n", errors)
	}
	code, out, _ := execute(t, "", strings.Fields(extender+"yaml")...)
	require.Equal(t, cli.ExitYes, code)
	require.Contains(t, out, "extender")
}
