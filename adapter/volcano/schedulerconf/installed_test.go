package schedulerconf_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/adapter/volcano/schedulerconf"
	"github.com/apportion/apportion/client"
)

// The preset volcano is what the installers of Volcano 1.15.1 pass to its scheduler (installer/helm/chart/volcano/config).
func TestThePresetOfVolcanoIsTheFileOfItsInstallers(t *testing.T) {
	policy, _, err := schedulerconf.Read(objects.Source{Name: "volcano-scheduler.conf", Data: []byte(`
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
`)})
	require.NoError(t, err)
	preset, ok := client.Preset("volcano")
	require.True(t, ok)
	require.Equal(t, "volcano-scheduler.conf", policy.Source)
	policy.Source = ""
	require.True(t, proto.Equal(preset, policy), "%v\n%v", preset, policy)
}
