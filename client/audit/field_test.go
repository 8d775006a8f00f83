package audit_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/apportion/apportion/client/audit"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/quantity"
)

var update = flag.Bool("update", false, "write the table of the field's examples into docs/fair.md")

const fieldBegin, fieldEnd = "<!-- field -->\n", "<!-- /field -->\n"

// peer is a row of the table: an example, and what other systems do by their documentation.
type peer struct {
	Example     string `yaml:"example"`
	Dimension   string `yaml:"dimension"`
	Preset      string `yaml:"preset"`
	Kai         string `yaml:"kai"`
	Koordinator string `yaml:"koordinator"`
	Yarn        string `yaml:"yarn"`
	Kueue       string `yaml:"kueue"`
}

// TestTheFieldsExamples decides the examples of testdata/field by Volcano's rules and by fair, and compares with the table of docs/fair.md.
func TestTheFieldsExamples(t *testing.T) {
	directory := filepath.Join("..", "..", "testdata", "field")
	data, err := os.ReadFile(filepath.Join(directory, "peers.yaml"))
	require.NoError(t, err)
	var peers []peer
	require.NoError(t, yaml.Unmarshal(data, &peers))
	var table strings.Builder
	table.WriteString("| cluster | Volcano | `fair` | KAI | Koordinator | YARN (fair) | Kueue (fair sharing) |\n" +
		"| --- | --- | --- | --- | --- | --- | --- |\n")
	for _, p := range peers {
		source, err := os.ReadFile(filepath.Join(directory, p.Example+".yaml"))
		require.NoError(t, err)
		title, _, _ := strings.Cut(strings.TrimPrefix(string(source), "# "), "\n")
		snapshot := example(t, p.Example)
		fair := found(t, snapshot, "fair")
		require.Empty(t, fair.Breaches, p.Example)
		fmt.Fprintf(&table, "| [%s](../testdata/field/%s.yaml) | %s | **%s** | %s | %s | %s | %s |\n", title, p.Example,
			result(snapshot, found(t, snapshot, p.Preset), p), result(snapshot, fair, p), p.Kai, p.Koordinator, p.Yarn, p.Kueue)
	}
	file := filepath.Join("..", "..", "docs", "fair.md")
	document, err := os.ReadFile(file)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(document), fieldBegin)
	require.True(t, ok)
	kept, after, ok := strings.Cut(rest, fieldEnd)
	require.True(t, ok)
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(before+fieldBegin+table.String()+fieldEnd+after), 0o600))
		return
	}
	require.Equal(t, table.String(), kept, "run the test with -update if this is meant")
}

// result lists what each queue holds in the end, the evictions for it, and the broken properties.
func result(snapshot *apportionv1.Snapshot, report *audit.Report, p peer) string {
	held, used, total := []string{}, 0.0, 0.0
	for _, q := range snapshot.GetQueues() {
		x := report.Held[q.GetName()][p.Dimension]
		held, used = append(held, quantity.Short(p.Dimension, x)), used+x
	}
	for _, n := range snapshot.GetNodes() {
		total += n.GetAllocatable().GetAmounts()[slices.Index(snapshot.GetDimensions(), p.Dimension)]
	}
	text := strings.Join(held, ", ")
	var broken []string
	for _, b := range report.Breaches {
		if name := fmt.Sprint(int(b.Property)); !slices.Contains(broken, name) {
			broken = append(broken, name)
		}
	}
	if slices.Contains(broken, fmt.Sprint(int(audit.NoCircles))) {
		text = "evicts in circles"
	} else if report.Evictions > 0 {
		text += fmt.Sprintf(" (%d evicted)", report.Evictions)
	}
	if used < total && slices.Contains(broken, fmt.Sprint(int(audit.NothingWantedIsIdle))) {
		text += fmt.Sprintf(", %s idle", quantity.Short(p.Dimension, total-used))
	}
	if len(broken) > 0 {
		text += "; breaks " + strings.Join(broken, ", ")
	}
	return text
}
