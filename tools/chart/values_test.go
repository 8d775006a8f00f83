package chart

import (
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "take the schema of the server's configuration over into values.schema.json")

// owned are the settings that the chart writes by itself.
var owned = map[string][]string{
	"":         {"listen"},
	"admin":    {"listen"},
	"tls":      {"certificate", "key", "client_ca", "client_certificate", "plaintext"},
	"http":     {"listen"},
	"extender": {"listen", "schedulers", "shadow", "users", "tls", "plaintext"},
}

// configuration is the schema of values.config: the schema of the server's file without the settings that the chart owns.
func configuration(t *testing.T) map[string]any {
	t.Helper()
	data, err := os.ReadFile("../../docs/configuration.schema.json")
	require.NoError(t, err)
	var schema map[string]any
	require.NoError(t, json.Unmarshal(data, &schema))
	delete(schema, "$schema")
	properties := schema["properties"].(map[string]any)
	for group, names := range owned {
		within := properties
		if group != "" {
			within = properties[group].(map[string]any)["properties"].(map[string]any)
		}
		for _, name := range names {
			require.Contains(t, within, name)
			delete(within, name)
		}
	}
	return schema
}

func TestTheSchemaOfValuesKnowsEverySettingOfTheServer(t *testing.T) {
	const file = directory + "/values.schema.json"
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	var schema map[string]any
	require.NoError(t, json.Unmarshal(data, &schema))
	properties := schema["properties"].(map[string]any)
	if *update {
		properties["config"] = configuration(t)
		written, err := json.MarshalIndent(schema, "", "  ")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, append(written, '\n'), 0o600))
	}
	require.Equal(t, configuration(t), properties["config"], "run `make generate-chart`")

	var defaults map[string]any
	text, err := os.ReadFile(directory + "/values.yaml")
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalStrict(text, &defaults))
	delete(properties, "global")
	for name := range properties {
		require.Contains(t, defaults, name, "a value without a default, or the other way round")
	}
	require.Len(t, defaults, len(properties))
}

func TestFaultyValuesAreRefused(t *testing.T) {
	for fault, text := range map[string]string{
		"name a Secret (tls.secret)":            `{}`,
		"'/replicas'":                           `{tls: {plaintext: true}, replicas: 0}`,
		"'replica'":                             `{tls: {plaintext: true}, replica: 2}`,
		"'/config'":                             `{tls: {plaintext: true}, config: {lmit: {}}}`,
		"'/config/tls'":                         `{tls: {plaintext: true}, config: {tls: {plaintext: false}}}`,
		"'/image/digest'":                       `{tls: {plaintext: true}, image: {digest: latest}}`,
		"invalid propertyName 'a/b.conf'":       `{tls: {plaintext: true}, policies: {"a/b.conf": "x"}}`,
		"'/podDisruptionBudget/maxUnavailable'": `{tls: {plaintext: true}, podDisruptionBudget: {maxUnavailable: 0}}`,
		"answered by one replica alone":         `{tls: {plaintext: true}, extender: {schedulers: {/a: b}}}`,
		"invalid propertyName 'a'":              `{tls: {plaintext: true}, replicas: 1, extender: {schedulers: {a: b}}}`,
		"'/tls/clientCertificate'":              `{tls: {secret: a, clientCertificate: perhaps}}`,
	} {
		var with map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(text), &with))
		_, err := render(t, with)
		require.ErrorContains(t, err, fault, text)
	}
}
