package config_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/cmd/apportion/internal/config"
	"github.com/apportion/apportion/internal/setting"
)

// write makes a configuration file.
func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "apportion.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// read reads a file, variables and flags, and requires that nothing is wrong.
func read(t *testing.T, file string, environment []string, args ...string) *config.Effective {
	t.Helper()
	e, err := tryRead(t, file, environment, args...)
	require.NoError(t, err)
	return e
}

func tryRead(t *testing.T, file string, environment []string, args ...string) (*config.Effective, error) {
	t.Helper()
	set := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	flags := config.AddFlags(set)
	if file != "" {
		args = append(args, "--config", file)
	}
	require.NoError(t, set.Parse(args))
	return config.Read(flags.Sources(environment))
}

func TestAFlagStandsAboveAVariableAboveTheFileAboveTheDefault(t *testing.T) {
	file := write(t, "drain:\n  delay: 1s\n")
	variable := []string{"HOME=/", "APPORTION_DRAIN_DELAY=2s"}
	for _, c := range []struct {
		name        string
		file        string
		environment []string
		args        []string
		want        time.Duration
		origin      string
	}{
		{"not given", "", nil, nil, 5 * time.Second, "default"},
		{"the file", file, nil, nil, time.Second, file + ":2"},
		{"the file by variable", "", []string{"APPORTION_CONFIG=" + file}, nil, time.Second, file + ":2"},
		{"a variable", "", variable, nil, 2 * time.Second, "environment APPORTION_DRAIN_DELAY"},
		{"a variable over the file", file, variable, nil, 2 * time.Second, "environment APPORTION_DRAIN_DELAY"},
		{"a flag", "", nil, []string{"--drain-delay=3s"}, 3 * time.Second, "flag --drain-delay"},
		{"a flag over the file", file, nil, []string{"--drain-delay", "3s"}, 3 * time.Second, "flag --drain-delay"},
		{"a flag over a variable", "", variable, []string{"--drain-delay=3s"}, 3 * time.Second, "flag --drain-delay"},
		{"a flag over all", file, variable, []string{"--drain-delay=3s"}, 3 * time.Second, "flag --drain-delay"},
		{"the last of several flags", file, variable, []string{"--drain-delay=3s", "--drain-delay=4s"}, 4 * time.Second, "flag --drain-delay"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := read(t, c.file, c.environment, c.args...)
			require.Equal(t, c.want, e.Drain.Delay)
			require.Equal(t, c.origin, e.Origin("drain.delay"))
			require.Equal(t, 25*time.Second, e.Drain.Time, "a setting that is not given keeps its default")
			require.Equal(t, "default", e.Origin("drain.time"))
		})
	}
}

func TestEverySettingCanBeSetByFileVariableAndFlag(t *testing.T) {
	values := map[string]string{
		"listen": "localhost:1", "admin.listen": "localhost:2", "policies": "a=preset:x", "identities": `[{name: a, tokens: ["` + hash + `"]}]`,
		"tls.certificate": "/c", "tls.key": "/k", "tls.client_ca": "/ca", "tls.client_certificate": "optional", "tls.min_version": "TLSv1.2",
		"log.level": "debug", "extender.wait": "20s", "overload.wait": "20s", "limit.text_bytes": "8KiB", "limit.dimensions": "63", "overload.receiving": "2GiB", "overload.answers": "2GiB", "limit.receiving_bytes": "3GiB", "limit.session_bytes": "3GiB", "limit.question_bytes": "1MiB", "limit.session_time": "2m", "log.format": "json",
		"http.listen": "localhost:4", "decision_log.sink": "stdout", "decision_log.file": "/log", "decision_log.questions": "digest",
		"decision_log.drop": "oldest", "decision_log.block_time": "7ms", "shadow.policy": "p", "shadow.of": "p",
		"extender.listen": "localhost:3", "extender.schedulers": "/a=p", "extender.shadow": "/a", "extender.users": "/u",
		"ledger.file": "/l", "ledger.epoch": "3h", "ledger.half_life": "336h", "ledger.retain": "19200h", "ledger.budgets": "/b",
		"follow.system": "kueue", "history.file": "/h", "history.policy": "p", "history.retain": "2h",
	}
	complete := []string{
		"--tls-certificate=/c", "--tls-key=/k", "--tls-client-ca=/ca",
		`--identities=[{name: b, dns: [b.example.org], tokens: ["` + hash[:70] + "b" + `"]}]`,
	}
	beside := map[string][]string{
		"extender.tls":      {"--tls-certificate=/c", "--tls-key=/k"},
		"decision_log.file": {"--decision-log-sink=file"}, "shadow.policy": {"--policies=p=preset:x"},
		"ledger.file": {"--follow-enabled"}, "ledger.budgets": {"--follow-enabled", "--ledger-file=/l"},
		"history.file": {"--follow-enabled"}, "history.policy": {"--policies=p=preset:x"},
		"shadow.of": {"--policies=p=preset:x", "--shadow-policy=p"},
	}
	for _, s := range config.Settings() {
		t.Run(s.Path, func(t *testing.T) {
			value, known := values[s.Path]
			switch {
			case known:
			case s.Default == "true", s.Default == "false":
				value = map[string]string{"true": "false", "false": "true"}[s.Default]
			case strings.HasSuffix(s.Default, "B"):
				value = "2MiB"
			case strings.HasSuffix(s.Default, "s"), strings.HasSuffix(s.Default, "m"):
				value = "2m"
			default:
				value = "2001"
			}
			around := beside[s.Path]
			for _, flag := range []string{"--extender-listen=localhost:3", "--policies=p=preset:x", "--extender-schedulers=/a=p"} {
				if strings.HasPrefix(s.Path, "extender.") && !strings.HasPrefix(flag, "--"+s.Flag()+"=") {
					around = append(around, flag)
				}
			}
			for _, flag := range complete {
				if strings.HasPrefix(s.Path, "tls.") && s.Path != "tls.plaintext" && !strings.HasPrefix(flag, "--"+s.Flag()+"=") {
					around = append(around, flag)
				}
			}
			e := read(t, "", []string{s.Variable() + "=" + value}, around...)
			require.Equal(t, "environment "+s.Variable(), e.Origin(s.Path))
			byVariable := e.Config
			e = read(t, "", nil, append(around, "--"+s.Flag()+"="+value)...)
			require.Equal(t, "flag --"+s.Flag(), e.Origin(s.Path))
			require.Equal(t, byVariable, e.Config)
			require.NotEqual(t, config.Default(), byVariable)
		})
	}
}

const hash = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

func TestNoSettingLooksLikeAVariableOfACluster(t *testing.T) {
	pattern := regexp.MustCompile(`_SERVICE_HOST$|_SERVICE_PORT(_.*)?$|_PORT$|_PORT_[0-9]+_`)
	for _, s := range config.Settings() {
		require.False(t, pattern.MatchString(s.Variable()), s.Variable())
	}
	read(t, "", []string{
		"APPORTION_SERVICE_HOST=10.0.0.1", "APPORTION_SERVICE_PORT=7171", "APPORTION_SERVICE_PORT_GRPC=7171", "APPORTION_PORT=tcp://10.0.0.1:7171",
		"APPORTION_PORT_7171_TCP=tcp://10.0.0.1:7171", "APPORTION_PORT_7171_TCP_ADDR=10.0.0.1", "APPORTION_ADMIN_PORT_80_TCP_PROTO=tcp",
	})
}

const everything = `
listen: ["0.0.0.0:7171", "unix:/run/apportion.sock"]
reflection: false
policies:
  volcano: volcano-scheduler.conf
  ours: /etc/apportion/ours.yaml
  preset: preset:volcano-default
identities:
  - name: scheduler
    spiffe: [spiffe://example.org/ns/kai/sa/scheduler]
    dns: ["*.kai.svc"]
    tokens: ["` + hash + `"]
    methods: [EvaluateShares]
    clusters: [prod-*, ""]
    snapshots: [team-a]
    queues: ["team-*"]
  - name: operator
    dns: [ops.example.org]
admin:
  listen: ""
tls:
  certificate: tls.crt
  key: tls.key
  client_ca: ca.crt
  client_certificate: optional
  min_version: TLSv1.2
limit:
  message_bytes: 1MiB
  header_bytes: 4096
deadline:
  call: 1m30s
connection:
# All of this is a comment.
drain: {}
log:
  format: text
`

func TestAFileMayHoldEverySetting(t *testing.T) {
	file := write(t, everything)
	directory := filepath.Dir(file)
	e := read(t, file, nil)
	require.Equal(t, []string{"0.0.0.0:7171", "unix:/run/apportion.sock"}, e.Listen)
	require.False(t, e.Reflection)
	require.Equal(t, map[string]string{
		"volcano": filepath.Join(directory, "volcano-scheduler.conf"), "ours": "/etc/apportion/ours.yaml", "preset": "preset:volcano-default",
	}, e.Policies)
	require.Equal(t, []config.Identity{
		{
			Name: "scheduler", SPIFFE: []string{"spiffe://example.org/ns/kai/sa/scheduler"}, DNS: []string{"*.kai.svc"}, Tokens: []string{hash},
			Methods: []string{"EvaluateShares"}, Clusters: []string{"prod-*", ""}, Snapshots: []string{"team-a"},
			Queues: []string{"team-*"},
		},
		{
			Name: "operator", DNS: []string{"ops.example.org"}, Methods: []string{"*"}, Clusters: []string{"*"}, Snapshots: []string{"*"},
			Queues: []string{"*"},
		},
	}, e.Identities)
	require.Equal(t, filepath.Join(directory, "tls.crt"), e.TLS.Certificate)
	require.Equal(t, "TLSv1.2", e.TLS.MinVersion)
	require.Empty(t, e.Admin.Listen)
	require.Equal(t, setting.Bytes(1<<20), e.Limit.MessageBytes)
	require.Equal(t, setting.Bytes(4096), e.Limit.HeaderBytes)
	require.Equal(t, 90*time.Second, e.Deadline.Call)
	require.Equal(t, 10000, e.Connection.Maximum)
	require.Equal(t, "text", e.Log.Format)
	require.Equal(t, file+":10", e.Origin("identities[0].spiffe[0]"))
}

func TestAnEmptyFileLeavesTheDefaults(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "---\n", "{}", "null"} {
		require.Equal(t, config.Default(), read(t, write(t, text), nil).Config, "%q", text)
	}
}

func TestListsAndMapsOfVariablesAndFlags(t *testing.T) {
	e := read(t, "", []string{"APPORTION_POLICIES=a=preset:x, b=/b.conf", "APPORTION_LISTEN=localhost:1, localhost:2"})
	require.Equal(t, map[string]string{"a": "preset:x", "b": "/b.conf"}, e.Policies)
	require.Equal(t, []string{"localhost:1", "localhost:2"}, e.Listen)
	e = read(t, "", nil, "--policies", "a=/a.conf", "--policies={b: /b.yaml}", "--listen=localhost:1", "--listen", `["localhost:2"]`)
	require.Equal(t, map[string]string{"a": "/a.conf", "b": "/b.yaml"}, e.Policies)
	require.Equal(t, []string{"localhost:1", "localhost:2"}, e.Listen)
	e = read(t, write(t, everything), nil, "--policies=", "--reflection")
	require.Empty(t, e.Policies, "an empty flag empties what the file holds")
	require.True(t, e.Reflection)
}

func TestIPv6AddressesAreNotYAML(t *testing.T) {
	for text, want := range map[string][]string{
		"[::1]:7171":                       {"[::1]:7171"},
		"[::1]:7171,localhost:1":           {"[::1]:7171", "localhost:1"},
		"[::1]:1, [0:0:0:0:0:0:0:1]:2":     {"[::1]:1", "[0:0:0:0:0:0:0:1]:2"},
		`["[::1]:7171"]`:                   {"[::1]:7171"},
		`["[::1]:7171", 'localhost:7171']`: {"[::1]:7171", "localhost:7171"},
		"[localhost:1,localhost:2]":        {"localhost:1", "localhost:2"},
	} {
		require.Equal(t, want, read(t, "", nil, "--listen", text).Listen, "flag %s", text)
		require.Equal(t, want, read(t, "", []string{"APPORTION_LISTEN=" + text}).Listen, "variable %s", text)
	}
	for _, text := range []string{"[localhost:1", "[::1]", "[a]:1: b"} {
		_, err := tryRead(t, "", nil, "--listen", text)
		require.ErrorContains(t, err, "listen", text)
	}
}

func TestWhatIsPrintedIsAConfigurationThatMeansTheSame(t *testing.T) {
	withoutSecrets := strings.Replace(everything, `    tokens: ["`+hash+"\"]\n", "", 1)
	for name, text := range map[string]string{"defaults": "", "everything": withoutSecrets} {
		t.Run(name, func(t *testing.T) {
			first := read(t, write(t, text), nil)
			var out bytes.Buffer
			require.NoError(t, first.Print(&out))
			require.Equal(t, first.Config, read(t, write(t, out.String()), nil).Config, out.String())
		})
	}
}

func TestWhatIsPrintedTellsWhereEachValueCameFromAndNoSecret(t *testing.T) {
	file := write(t, everything)
	e := read(t, file, []string{"APPORTION_LOG_LEVEL=warn"}, "--drain-delay=7s")
	var out bytes.Buffer
	require.NoError(t, e.Print(&out))
	text := out.String()
	require.NotContains(t, text, "aaaaaaaa")
	require.Contains(t, text, "(hidden)")
	require.Contains(t, text, "  call: 1m30s # "+file+":31\n")
	require.Contains(t, text, "  level: warn # environment APPORTION_LOG_LEVEL\n")
	require.Contains(t, text, "  delay: 7s # flag --drain-delay\n")
	require.Contains(t, text, "  time: 25s # default\n")
	require.Contains(t, text, "policies: # "+file+":5\n")
}

func TestWhatWorksBesideTheDecisionsIsChecked(t *testing.T) {
	for text, want := range map[string]string{
		"decision_log: {sink: file}":                            "decision_log.file: a file is required",
		"decision_log: {file: a}":                               "decision_log.file: requires",
		"decision_log: {sink: stdout, store: a, mask: [uid]}":   "decision_log.mask: cannot be used with decision_log.store",
		"shadow: {policy: a}":                                   `shadow.policy: no policy "a" is configured`,
		"{policies: {a: preset:x}, shadow: {of: a}}":            "shadow.of: requires shadow.policy",
		"{policies: {a: preset:x}, shadow: {policy: a, of: b}}": `shadow.of: no policy "b" is configured`,
		"http: {listen: ':80'}":                                 "http.listen: :80 can be reached from other machines",
	} {
		_, err := tryRead(t, write(t, text), nil)
		require.ErrorContains(t, err, want, text)
	}
}

func TestEveryLimitSaysWhatACallerGetsBeyondIt(t *testing.T) {
	for _, s := range config.Settings() {
		switch section, _, _ := strings.Cut(s.Path, "."); section {
		case "limit", "overload", "deadline", "connection":
			require.NotEmpty(t, s.Beyond, s.Path)
		}
	}
}

func TestTheThreatModelNamesSettingsAndTestsThatThereAre(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/threat-model.md")
	require.NoError(t, err)
	settings := map[string]bool{}
	for _, s := range config.Settings() {
		settings[s.Path] = true
	}
	for _, name := range regexp.MustCompile("`([a-z_]+\\.[a-z_]+)`").FindAllStringSubmatch(string(page), -1) {
		require.True(t, settings[name[1]], "no setting %s", name[1])
	}
	for _, name := range regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9]+)`").FindAllStringSubmatch(string(page), -1) {
		found := exec.CommandContext(t.Context(), "grep", "-rqE", "--include=*_test.go", "^func "+name[1]+`\(`, "../../../..")
		require.NoError(t, found.Run(), "no test %s", name[1])
	}
}
