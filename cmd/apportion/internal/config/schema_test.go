package config_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/apportion/apportion/cmd/apportion/internal/config"
)

func compiledSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	data, err := config.Schema()
	require.NoError(t, err)
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	require.NoError(t, compiler.AddResource("configuration.json", document))
	schema, err := compiler.Compile("configuration.json")
	require.NoError(t, err)
	return schema
}

func TestTheSchemaTakesAndRefusesWhatTheReaderDoes(t *testing.T) {
	schema := compiledSchema(t)
	for _, text := range []string{
		everything, "{}", "drain: {delay: 0s}", "drain:\n", "limit: {header_bytes: 2048}", "limit: {header_bytes: 64KiB}", "listen: ['localhost:1']",
		"reflection: true", "connection: {streams: 1}", "log: {level: warn}", "policies: {a: preset:x}", "deadline: {call: 1h2m3.5s}",
		// And what it refuses.
		"listen_on: x", "drain: {dealy: 1s}", "drain: {delay: 5}", "drain: {delay: -5s}", "drain: {delay: soon}", "limit: {header_bytes: 5 apples}",
		"limit: {header_bytes: -5}", "limit: {header_bytes: 1.5}", "connection: {streams: many}", "connection: {streams: 0}", "connection: {streams: 2000000}",
		"log: {sample_every: -1}",
		"reflection: 1", "reflection: 'true'", "log: {level: 5}", "log: {level: loud}", "log: {level: [info]}", "listen: localhost:1", "listen: [1]",
		"log: [info]", "policies: [a]", "policies: {a: 1}", "[listen]", "listen:", "identities: [{token: x}]", "identities: [x]", "identities: {name: x}",
	} {
		var document any
		require.NoError(t, yaml.Unmarshal([]byte(text), &document), text)
		taken := schema.Validate(document)
		_, err := tryRead(t, write(t, text), nil)
		require.Equal(t, err == nil, taken == nil, "%s\nreader: %v\nschema: %v", text, err, taken)
	}
}

var update = flag.Bool("update", false, "write docs/configuration.schema.json and docs/configuration.md")

func TestSchemaAndReferenceInDocsAreThoseOfTheStruct(t *testing.T) {
	schema, err := config.Schema()
	require.NoError(t, err)
	for file, fresh := range map[string][]byte{
		"../../../../docs/configuration.schema.json": schema, "../../../../docs/configuration.md": config.Reference(),
	} {
		if *update {
			require.NoError(t, os.WriteFile(file, fresh, 0o600))
		}
		there, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, string(fresh), string(there), "run make generate-config")
	}
}

func TestEveryDefaultCanBeReadAndEverySettingIsExplained(t *testing.T) {
	require.NoError(t, func() error { _, err := config.Read(config.Sources{}); return err }())
	require.NoError(t, compiledSchema(t).Validate(map[string]any{}))
	seen := map[string]bool{}
	for _, s := range config.Settings() {
		require.NotEmpty(t, s.Help, s.Path)
		require.True(t, strings.HasSuffix(s.Help, "."), s.Path)
		require.False(t, seen[s.Variable()] || seen[s.Flag()], s.Path)
		seen[s.Variable()], seen[s.Flag()] = true, true
		if s.Default != "" {
			e := read(t, "", nil, "--"+s.Flag()+"="+s.Default)
			require.Equal(t, config.Default(), e.Config, s.Path)
		}
	}
}

// FuzzRead tries any bytes as a file, a variable and a flag: nothing may crash, what is taken is printed as something that means the same,
// and a fault has few lines.
func FuzzRead(f *testing.F) {
	f.Add([]byte(everything))
	f.Add([]byte("drain: {delay: 5}\n"))
	f.Add([]byte("a: &a [*a]\n"))
	f.Add([]byte("? [a]\n: b\n"))
	f.Add([]byte("<<: {listen: []}\n"))
	f.Add([]byte("identities: [{name: \"\\u0000\", tokens: ['" + hash + "']}]\n"))
	f.Add([]byte("policies: {\"a\\nb\": 'preset:x'}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file := filepath.Join(t.TempDir(), "f.yaml")
		require.NoError(t, os.WriteFile(file, data, 0o600))
		for _, name := range []string{"APPORTION_IDENTITIES", "APPORTION_POLICIES", "APPORTION_LISTEN", "APPORTION_LIMIT_MESSAGE_BYTES"} {
			_, _ = config.Read(config.Sources{Environment: []string{name + "=" + string(data)}})
		}
		e, err := config.Read(config.Sources{File: file})
		if err != nil {
			require.LessOrEqual(t, strings.Count(err.Error(), file), 400)
			return
		}
		var out bytes.Buffer
		require.NoError(t, e.Print(&out))
		require.NotContains(t, out.String(), "sha256:")
		for _, id := range e.Identities {
			if len(id.Tokens) > 0 {
				return
			}
		}
		require.NoError(t, os.WriteFile(file, out.Bytes(), 0o600))
		again, err := config.Read(config.Sources{File: file})
		require.NoError(t, err, out.String())
		require.Equal(t, e.Config, again.Config)
	})
}
