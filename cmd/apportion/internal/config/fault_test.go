package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/internal/tree"
)

func TestEveryFaultOfAFileIsToldWithItsLine(t *testing.T) {
	for name, c := range map[string]struct {
		file  string
		wants []string
	}{
		"an unknown key":                        {"listen: [\"localhost:1\"]\nlisten_on: x\n", []string{":2: listen_on: there is no such setting"}},
		"a key that was mistyped":               {"drain:\n  dealy: 1s\n", []string{":2: drain.dealy: there is no such setting; did you mean \"delay\"?"}},
		"an unknown section":                    {"tsl:\n  key: x\n", []string{":1: tsl: there is no such setting; did you mean \"tls\"?"}},
		"a key of an identity":                  {"identities:\n- name: a\n  token: x\n  dns: [a.b]\n", []string{":3: identities[0].token: there is no such setting; did you mean \"tokens\"?"}},
		"a key that is twice there":             {"log:\n  level: info\n  level: warn\n", []string{":3: log.level: is given twice"}},
		"a policy that is there twice":          {"policies:\n  a: preset:x\n  a: preset:y\n", []string{":3: policies.a: is given twice"}},
		"no duration":                           {"drain: {delay: 5}\n", []string{":1: drain.delay: a duration is expected"}},
		"a duration below zero":                 {"drain: {delay: -5s}\n", []string{":1: drain.delay: a duration is expected"}},
		"no number of bytes":                    {"limit:\n  message_bytes: 5 apples\n", []string{":2: limit.message_bytes: a number of bytes is expected"}},
		"bytes beyond counting":                 {"limit:\n  message_bytes: 99999999TiB\n", []string{":2: limit.message_bytes: a number of bytes is expected"}},
		"bytes above their maximum":             {"limit:\n  message_bytes: 4GiB\n", []string{":2: limit.message_bytes: 4GiB is above its maximum, 2047MiB"}},
		"less for all messages than for two":    {"limit:\n  message_bytes: 65MiB\noverload:\n  receiving: 129MiB\n", []string{":4: overload.receiving: the largest message could never be received: at least 130MiB is expected"}},
		"less for all answers than for two":     {"overload:\n  answers: 100MiB\n", []string{":2: overload.answers: the largest answer could never be sent: at least 128MiB is expected"}},
		"less for snapshots than for two":       {"limit:\n  receiving_bytes: 1GiB\n", []string{":2: limit.receiving_bytes: the largest snapshot could never be received: at least 2GiB is expected"}},
		"bytes below their minimum":             {"limit:\n  message_bytes: 12\n", []string{":2: limit.message_bytes: 12B is below its minimum, 1KiB"}},
		"no number":                             {"connection: {streams: many}\n", []string{":1: connection.streams: a whole number is expected"}},
		"half a number":                         {"connection: {streams: 1.5}\n", []string{":1: connection.streams: a whole number is expected"}},
		"a number out of reach":                 {"connection: {streams: 99999999999999999999}\n", []string{":1: connection.streams: a whole number is expected"}},
		"zero connections":                      {"connection: {maximum: 0}\n", []string{":1: connection.maximum: 0 is below its minimum, 1"}},
		"no boolean":                            {"reflection: yes\n", []string{":1: reflection: true or false is expected"}},
		"a number as text":                      {"log: {level: 5}\n", []string{":1: log.level: a text is expected; put it into quotes"}},
		"an unknown choice":                     {"log: {level: loud}\n", []string{":1: log.level: one of debug, info, warn, error is expected"}},
		"a list as a value":                     {"log: {level: [info]}\n", []string{":1: log.level: a single value is expected"}},
		"a value as a list":                     {"listen: localhost:1\n", []string{":1: listen: a list is expected"}},
		"a list as a section":                   {"log: [info]\n", []string{":1: log: settings by name are expected"}},
		"a list as a mapping":                   {"policies: [a]\n", []string{":1: policies: values by name are expected"}},
		"a list as the whole":                   {"- listen\n", []string{":1: settings by name are expected"}},
		"no value":                              {"listen:\n", []string{":1: listen: no value is given"}},
		"an alias":                              {"tls: {certificate: &a x.crt, key: *a}\n", []string{":1: tls.key: aliases are not read"}},
		"a merge":                               {"log: {<<: {level: info}}\n", []string{`:1: log."<<": there is no such setting`, `log.<<`}},
		"a second document":                     {"log: {level: info}\n---\nlog: {level: warn}\n", []string{"a second document"}},
		"no YAML":                               {"listen: [\n", []string{"not YAML: "}},
		"several at once":                       {"a: 1\nb: 2\nlog: {level: 3}\n", []string{":1: a: there", ":2: b: there", ":3: log.level: a text"}},
		"no address at all":                     {"listen: []\n", []string{":1: listen: the server must listen somewhere"}},
		"no port":                               {"listen: [localhost]\n", []string{`:1: listen[0]: host:port or unix:PATH is expected, not "localhost"`}},
		"a port that is none":                   {"listen: [\"localhost:http\"]\n", []string{`:1: listen[0]: host:port or unix:PATH is expected`}},
		"a port too large":                      {"listen: [\"localhost:70000\"]\n", []string{`:1: listen[0]: host:port or unix:PATH is expected`}},
		"a socket without a name":               {"listen: [\"unix:\"]\n", []string{":1: listen[0]: unix: and the name of a socket is expected"}},
		"one address twice":                     {"listen: [\"localhost:1\", \"localhost:1\"]\n", []string{":1: listen[1]: localhost:1 is listened on twice"}},
		"the admin's address":                   {"listen: [\"localhost:1\"]\nadmin: {listen: \"localhost:1\"}\n", []string{":2: admin.listen: localhost:1 is listened on twice"}},
		"open to the world":                     {"listen: [\":7171\"]\n", []string{":1: listen[0]: :7171 can be reached from other machines: set tls.certificate and tls.key, or tls.plaintext"}},
		"open to the network":                   {"listen: [\"10.0.0.1:7171\"]\n", []string{":1: listen[0]: 10.0.0.1:7171 can be reached"}},
		"a certificate without key":             {"tls:\n  certificate: x\n", []string{":2: tls.certificate: requires tls.key"}},
		"a key without certificate":             {"tls:\n  key: x\n", []string{":2: tls.key: requires tls.certificate"}},
		"a client CA alone":                     {"tls:\n  client_ca: x\n", []string{":2: tls.client_ca: requires tls.certificate and tls.key", "no identity has spiffe or dns"}},
		"plaintext with certificate":            {"tls: {certificate: x, key: y, plaintext: true}\n", []string{":1: tls.plaintext: contradicts tls.certificate"}},
		"a ledger of no cluster":                {"ledger: {file: /l}\n", []string{":1: ledger.file: requires follow.enabled"}},
		"a history of no cluster":               {"history: {file: /h}\n", []string{":1: history.file: requires follow.enabled"}},
		"a history that is off":                 {"follow: {enabled: true}\nhistory: {file: /h, enabled: false}\n", []string{":2: history.file: requires history.enabled"}},
		"a history in the ledger's file":        {"follow: {enabled: true}\nledger: {file: /h}\nhistory: {file: /h}\n", []string{":3: history.file: is the file of the ledger"}},
		"a history by an unknown policy":        {"history: {policy: x}\n", []string{`:1: history.policy: no policy "x" is configured`}},
		"budgets of no ledger":                  {"ledger: {budgets: /b}\n", []string{":1: ledger.budgets: requires ledger.file"}},
		"a half-life of one and a half epochs":  {"ledger: {half_life: 9h}\n", []string{":1: ledger.half_life: from 1 to 512 times ledger.epoch is expected, which is 6h"}},
		"a ledger that forgets what counts":     {"ledger: {retain: 1h}\n", []string{":1: ledger.retain: at least 56d is expected"}},
		"more epochs than a ledger keeps":       {"ledger: {epoch: 1s, half_life: 10s, retain: 9600h}\n", []string{":1: ledger.retain: at most 12d3h16m16s is expected"}},
		"an epoch that is not whole":            {"ledger: {epoch: 1500ms}\n", []string{":1: ledger.epoch: whole seconds are expected"}},
		"optional certificates of no authority": {"tls: {client_certificate: optional}\n", []string{":1: tls.client_certificate: requires tls.client_ca"}},
		"identities without a name":             {"identities: [{tokens: [" + hash + "]}]\n", []string{":1: identities[0]: the identity has no name"}},
		"two of a name":                         {"identities:\n- {name: a, tokens: [" + hash + "]}\n- {name: a, tokens: [" + hash[:70] + "b]}\n", []string{`:3: identities[1].name: "a" names two identities`}},
		"one token for two":                     {"identities:\n- {name: a, tokens: [" + hash + "]}\n- {name: b, tokens: [" + hash + "]}\n", []string{":3: identities[1].tokens[0]: the same token is at identities[0].tokens[0]"}},
		"an identity without callers":           {"identities: [{name: a}]\n", []string{":1: identities[0]: the identity needs spiffe"}},
		"names in no certificate":               {"identities: [{name: a, dns: [a.b]}]\n", []string{":1: identities[0]: spiffe and dns require tls.client_ca"}},
		"no SPIFFE ID":                          {"identities:\n- name: a\n  spiffe:\n  - http://x\n", []string{":4: identities[0].spiffe[0]: expected a SPIFFE ID"}},
		"no method":                             {"identities:\n- name: a\n  tokens: [" + hash + "]\n  methods: [Simulates]\n", []string{":4: identities[0].methods[0]: no such method: one of EvaluateShares, "}},
		"no cluster":                            {"identities:\n- name: a\n  tokens: [" + hash + "]\n  clusters: ['*a']\n", []string{":4: identities[0].clusters[0]: expected a name"}},
		"no snapshot":                           {"identities:\n- name: a\n  tokens: [" + hash + "]\n  snapshots: ['*a']\n", []string{":4: identities[0].snapshots[0]: expected a name"}},
		"no queue":                              {"identities:\n- name: a\n  tokens: [" + hash + "]\n  queues: ['*a']\n", []string{":4: identities[0].queues[0]: expected a name"}},
		"a policy of no kind":                   {"policies:\n  a: policy.txt\n", []string{":2: policies.a: a file ending in .conf, .yaml, .yml or .json is expected, or preset:NAME"}},
		"a policy without a name":               {"policies:\n  \"\": policy.yaml\n", []string{"a policy needs a name"}},
	} {
		t.Run(name, func(t *testing.T) {
			file := write(t, c.file)
			_, err := tryRead(t, file, nil)
			require.Error(t, err)
			var faults tree.Faults
			require.ErrorAs(t, err, &faults)
			found := false
			for _, want := range c.wants {
				found = found || strings.Contains(err.Error(), want)
				if !strings.Contains(name, "merge") {
					require.ErrorContains(t, err, want)
				}
			}
			require.True(t, found, err)
			for _, fault := range faults {
				require.True(t, strings.HasPrefix(fault.Error(), file), fault.Error())
			}
		})
	}
}

func TestFaultsOfVariablesAndFlagsNameThem(t *testing.T) {
	for _, c := range []struct {
		environment []string
		args        []string
		want        string
	}{
		{[]string{"APPORTION_DRAIN_DEALY=5s"}, nil, "environment: APPORTION_DRAIN_DEALY: there is no such variable; did you mean APPORTION_DRAIN_DELAY?"},
		{[]string{"APPORTION_DRAIN_DELAY=soon"}, nil, "environment APPORTION_DRAIN_DELAY: a duration is expected, such as 500ms, 25s, 1m30s or 7d"},
		{[]string{"APPORTION_DRAIN_DELAY="}, nil, "environment APPORTION_DRAIN_DELAY: a duration is expected"},
		{nil, []string{"--log-level=loud"}, "flag --log-level: log.level: one of debug, info, warn, error is expected"},
		{nil, []string{"--policies=a"}, "flag --policies: NAME=VALUE is expected, each name once"},
		{nil, []string{"--policies={a: [b]}"}, "flag --policies: policies.a: a single value is expected"},
		{nil, []string{"--policies={a: b"}, "flag --policies: not YAML: "},
		{nil, []string{"--identities=a,b"}, "flag --identities: identities: a list is expected"},
		{nil, []string{"--identities=[{nam: b}]"}, "flag --identities: identities[0].nam: there is no such setting; did you mean \"name\"?"},
		{nil, []string{"--listen=:1"}, "flag --listen: listen[0]: :1 can be reached from other machines"},
		{nil, []string{"--config=/nowhere/apportion.yaml"}, "open /nowhere/apportion.yaml: no such file or directory"},
		{[]string{"APPORTION_CONFIG=/nowhere/apportion.yaml"}, nil, "open /nowhere/apportion.yaml: no such file or directory"},
	} {
		_, err := tryRead(t, "", c.environment, c.args...)
		require.ErrorContains(t, err, c.want)
	}
}

func TestNoFaultQuotesASecret(t *testing.T) {
	const secret = "correct-horse-battery-staple"
	for _, text := range []string{
		"identities: [{name: a, tokens: [" + secret + "]}]",
		"identities: [{name: a, tokens: " + secret + "}]",
		"identities: [{name: a, tokens: [[" + secret + "]]}]",
		"identities: [{name: a, tokens: [{a: " + secret + "}]}]",
		"identities: [{name: a, tokens: [sha256:" + secret + "]}]",
		"identities: [{name: a, tokens: [!!int " + secret + "]}]",
		"identities: [{name: a, tokens: [&" + secret + " x, *" + secret + "]}]",
		"identities: " + secret,
		"identities: [" + secret + "]",
		"identities: [{name: a, tokens: [" + secret,
		"identities: [{name: a, tokens: [\"" + secret + "]}]",
	} {
		_, err := tryRead(t, write(t, text), nil)
		require.Error(t, err, text)
		require.NotContains(t, err.Error(), secret, text)
		_, err = tryRead(t, "", []string{"APPORTION_IDENTITIES=" + strings.TrimPrefix(text, "identities: ")})
		require.Error(t, err, text)
		require.NotContains(t, err.Error(), secret, text)
		_, err = tryRead(t, "", nil, "--identities", strings.TrimPrefix(text, "identities: "))
		require.Error(t, err, text)
		require.NotContains(t, err.Error(), secret, text)
	}
}

func TestALargeFileIsNotRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "large.yaml")
	require.NoError(t, os.WriteFile(file, make([]byte, 5<<20), 0o600))
	_, err := tryRead(t, file, nil)
	require.ErrorContains(t, err, "more than 4MiB are not read")
}
