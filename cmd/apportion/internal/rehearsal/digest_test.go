package rehearsal

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/cmd/apportion/internal/trace"
	"github.com/apportion/apportion/engine/cycle"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

func TestTheDigestOfARunChangesWithAllThatItsResultDependsOn(t *testing.T) {
	type inputs struct {
		v  Variant
		t  trace.Trace
		of [32]byte
		o  Options
	}
	given := func() *inputs {
		return &inputs{
			v: Variant{Snapshot: &apportionv1.Snapshot{AsOf: 5, Nodes: []*apportionv1.Node{{}}}, Policy: &apportionv1.Policy{}},
			o: Options{Every: 300, Resource: "cpu", Entitlement: &apportionv1.Policy{}},
		}
	}
	digest := func(i *inputs) [32]byte {
		d, err := i.v.Digest(&i.t, i.of, &i.o)
		require.NoError(t, err)
		return d
	}
	seen := map[[32]byte]string{digest(given()): "nothing"}
	for name, change := range map[string]func(*inputs){
		"queues":      func(i *inputs) { i.v.Snapshot.Queues = []*apportionv1.Queue{{Weight: proto.Uint32(2)}} },
		"policy":      func(i *inputs) { i.v.Policy.Tiers = []*apportionv1.Tier{{}} },
		"entitlement": func(i *inputs) { i.o.Entitlement.Tiers = []*apportionv1.Tier{{}} },
		"actions":     func(i *inputs) { i.v.Actions = []cycle.Action{cycle.Reclaim} },
		"memory":      func(i *inputs) { i.v.Memory = &Memory{Epoch: time.Hour} },
		"used": func(i *inputs) {
			i.v.Memory = &Memory{Epoch: time.Hour, Used: map[string]map[string]int64{"a": {"cpu": 1}}}
		},
		"seed":       func(i *inputs) { i.v.Seed = 1 },
		"trace":      func(i *inputs) { i.of[0] = 1 },
		"every":      func(i *inputs) { i.o.Every = 600 },
		"checkpoint": func(i *inputs) { i.o.Checkpoint = 600 },
		"resource":   func(i *inputs) { i.o.Resource = "memory" },
	} {
		changed := given()
		change(changed)
		of := digest(changed)
		require.NotContains(t, seen, of, "%s as %s", name, seen[of])
		seen[of] = name
	}
	for name, change := range map[string]func(*inputs){
		"name": func(i *inputs) { i.v.Name = "another" },
		"date": func(i *inputs) { i.v.Snapshot.AsOf = 6 },
		"jobs": func(i *inputs) { i.v.Snapshot.Jobs = []*apportionv1.Job{{}} },
	} {
		changed := given()
		change(changed)
		require.Equal(t, "nothing", seen[digest(changed)], name)
	}
	require.Equal(t, 7, reflect.TypeFor[Variant]().NumField(), "the digest has all fields of Variant but the name")
	require.Equal(t, 8, reflect.TypeFor[Options]().NumField(),
		"the digest has all fields of Options but what reports, saves time or is for tests")
}
