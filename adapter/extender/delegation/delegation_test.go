package delegation_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/adapter/extender/delegation"
	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/adapter/volcano/schedulerconf"
)

var update = flag.Bool("update", false, "write the forms anew")

var options = delegation.Options{URL: "http://127.0.0.1:7173/volcano", Timeout: time.Second}

// configurations are the configurations in testdata, by name.
func configurations(t *testing.T) map[string]objects.Source {
	t.Helper()
	files, err := filepath.Glob("testdata/*.conf")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	all := map[string]objects.Source{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		name := filepath.Base(file)
		all[strings.TrimSuffix(name, ".conf")] = objects.Source{Name: name, Data: data}
	}
	return all
}

func TestFormsOfConfigurations(t *testing.T) {
	for name, source := range configurations(t) {
		t.Run(name, func(t *testing.T) {
			forms, _, err := delegation.New(source, options)
			require.NoError(t, err)
			got := string(forms.Delegating) + "---\n" + string(forms.Shadow)
			file := filepath.Join("testdata", name+".forms")
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, string(want), got)
		})
	}
}

func TestWhatCannotBeRewritten(t *testing.T) {
	const refused = "\n" + schedulerconf.Instead
	for name, c := range map[string]struct{ conf, want string }{
		"not a configuration": {conf: "tiers: 3\nactions: allocate\n", want: "v.conf:1: tiers: not a list" + refused},
		"nothing":             {conf: "# nothing\n", want: "v.conf:1: nothing is configured, so there are no actions" + refused},
		"no tiers":            {conf: "actions: allocate\n", want: "v.conf: there are no tiers"},
		"nothing to delegate": {
			conf: "tiers:\n- plugins:\n  - name: predicates\n  - name: sla\n-\n- plugins:\nactions: allocate\n",
			want: "v.conf: no plugin takes part in a decision that can be delegated",
		},
		"everything is switched off": {
			conf: "tiers:\n- plugins:\n  - name: priority\n    enablePreemptable: false\nactions: allocate\n",
			want: "v.conf: no plugin takes part in a decision that can be delegated",
		},
		"every decision has an obstacle": {
			conf: "tiers:\n- plugins:\n  - name: gang\n  - name: pdb\nactions: allocate\n",
			want: "v.conf: no decision can be delegated:\n" +
				"v.conf:4: reclaimable: pdb names victims in the same tier as plugins that Apportion implements, or between them\n" +
				"v.conf:4: preemptable: pdb names victims in the same tier as plugins that Apportion implements, or between them",
		},
		"an extender": {
			conf: "tiers:\n- plugins:\n  - name: gang\n  - name: extender\nactions: allocate\n",
			want: "v.conf:4: tiers[0].plugins[1]: an extender is already configured, and Volcano supports only one",
		},
		"a plugin twice": {
			conf: "tiers:\n- plugins:\n  - name: gang\n  - name: gang\nactions: allocate\n",
			want: "v.conf: 1 violation\npolicy.tiers[0].plugins[1]: plugin \"gang\" is tiers[0].plugins[0] already",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := delegation.New(objects.Source{Name: "v.conf", Data: []byte(c.conf)}, options)
			require.EqualError(t, err, c.want)
		})
	}
}

func TestWhereApportionIsMustMakeSense(t *testing.T) {
	source := objects.Source{Name: "v.conf", Data: []byte("actions: allocate\ntiers: [{plugins: [{name: gang}]}]")}
	for _, o := range []delegation.Options{
		{URL: "apportion:7173", Timeout: 1},
		{URL: "unix:///run/apportion.sock", Timeout: 1},
		{URL: "http://", Timeout: 1},
		{URL: "http://a/b?c=d", Timeout: 1},
		{URL: "http://a b", Timeout: 1},
		{URL: "http://a/b", Timeout: 0},
		{URL: "http://a/b", Timeout: -1},
	} {
		_, _, err := delegation.New(source, o)
		require.Error(t, err, o)
	}
}

func TestCapacityKeepsReclaimableBesideAnOrderThatIsNotKnown(t *testing.T) {
	for name, c := range map[string]struct{ quota, other, by string }{
		"jobs":                     {"capacity", "sla", "sla"},
		"jobs by zones":            {"capacity", "tdm", "tdm"},
		"tasks":                    {"capacity", "task-topology", "task-topology"},
		"a custom plugin":          {"capacity", "magic", "magic"},
		"one that only orders":     {"capacity", "magic\n    enableReclaimable: false", "magic"},
		"a switch of another kind": {"capacity", "task-topology\n    enableJobOrder: false", "task-topology"},
		"switched off":             {"capacity", "sla\n    enableJobOrder: false", ""},
		"tasks, switched off":      {"capacity", "task-topology\n    enableTaskOrder: false", ""},
		"no order":                 {"capacity", "nodeorder", ""},
		"capacity does not vote":   {"capacity\n    enableReclaimable: false", "sla", ""},
		"an order that is known":   {"capacity", "priority", ""},
		"candidates as they come":  {"proportion", "sla", ""},
	} {
		t.Run(name, func(t *testing.T) {
			conf := "tiers:\n- plugins:\n  - name: gang\n- plugins:\n  - name: " + c.quota + "\n- plugins:\n  - name: " + c.other + "\nactions: allocate\n"
			forms, _, err := delegation.New(objects.Source{Name: "v.conf", Data: []byte(conf)}, options)
			require.NoError(t, err)
			if c.by == "" {
				require.Contains(t, forms.Delegated, "reclaimable")
				return
			}
			require.Equal(t, []delegation.Kept{{
				Verb: "reclaimable", Line: 7, Reason: "capacity chooses victims in the order of jobs and tasks, in which " + c.by + " takes part",
			}}, forms.Kept)
			require.Contains(t, string(forms.Delegating), "# - reclaimable: capacity chooses victims")
			require.NotContains(t, string(forms.Delegating), "reclaimableVerb")
		})
	}
}

func TestTimeoutsAreWrittenAsVolcanoReadsThem(t *testing.T) {
	for name, source := range configurations(t) {
		long := options
		long.Timeout = 72 * time.Hour
		forms, _, err := delegation.New(source, long)
		require.NoError(t, err)
		for _, form := range [][]byte{forms.Delegating, forms.Shadow} {
			if strings.Contains(string(form), "httpTimeout") {
				require.Contains(t, string(form), "extender.httpTimeout: 72h0m0s", name)
			}
		}
	}
}
