package kueue

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/engine/edit"
	"github.com/apportion/apportion/engine/resource"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// TestAnEditOfKueueChangesOneSettingAndLeavesTheMessageBefore compares what edits make of a queue and of a workload with messages.
func TestAnEditOfKueueChangesOneSettingAndLeavesTheMessageBefore(t *testing.T) {
	dims, _, err := resource.NewDimensions([]string{"cpu", "memory"})
	require.NoError(t, err)
	x := Edits{Dims: dims}
	parse := func(m proto.Message, text string) proto.Message {
		require.NoError(t, prototext.Unmarshal([]byte(text), m))
		return m
	}
	const spot, reserved = `quotas { node_set: "spot" nominal { dimensions: [0, 1] amounts: [4000, 8] } } `,
		`quotas { node_set: "reserved" nominal { dimensions: 0 amounts: 2000 } borrowing_limit { dimensions: 0 amounts: 1000 } }`
	of := func(kind edit.Kind, amount float64) edit.Edit {
		e := edit.Of(kind)
		e.Amount, e.Flavor, e.Dimension = amount, "reserved", dims.Order()[0]
		return e
	}
	removed := of(edit.BorrowingLimit, 0)
	removed.None = true
	for want, e := range map[string]edit.Edit{
		"weight: 2.5 " + spot + reserved:   of(edit.Weight, 2.5),
		"stopped: true " + spot + reserved: of(edit.Close, 0),
		spot + reserved:                    of(edit.Open, 0),
		spot + `quotas { node_set: "reserved" nominal { dimensions: 0 amounts: 9 } borrowing_limit { dimensions: 0 amounts: 1000 } }`:                                               of(edit.Nominal, 9),
		spot + `quotas { node_set: "reserved" nominal { dimensions: 0 amounts: 2000 } borrowing_limit { dimensions: 0 amounts: 9 } }`:                                               of(edit.BorrowingLimit, 9),
		spot + `quotas { node_set: "reserved" nominal { dimensions: 0 amounts: 2000 } borrowing_limit {} }`:                                                                         removed,
		spot + `quotas { node_set: "reserved" nominal { dimensions: 0 amounts: 2000 } borrowing_limit { dimensions: 0 amounts: 1000 } lending_limit { dimensions: 0 amounts: 9 } }`: of(edit.LendingLimit, 9),
	} {
		was := Kept(parse(&apportionv1.KueueQueue{}, spot+reserved))
		got := Extra[*apportionv1.KueueQueue](x.Queue(&e, was))
		require.Empty(t, cmpText(parse(&apportionv1.KueueQueue{}, want), got), want)
		require.Empty(t, cmpText(parse(&apportionv1.KueueQueue{}, spot+reserved), Extra[*apportionv1.KueueQueue](was)), "the message before")
	}
	other := of(edit.Capability, 1)
	was := Kept(parse(&apportionv1.KueueQueue{}, spot))
	require.Same(t, was, x.Queue(&other, was), "an edit that is not Kueue's")
	require.Nil(t, x.Queue(&other, nil))

	const sets = `pod_sets { name: "main" count: 3 request { dimensions: 0 amounts: 500 } }`
	lower := func(kind edit.Kind, amount float64, set string) edit.Edit {
		e := of(kind, amount)
		e.Text = set
		return e
	}
	for want, e := range map[string]edit.Edit{
		`pod_sets { name: "main" count: 3 min_count: 2 request { dimensions: 0 amounts: 500 } }`: lower(edit.Minimum, 2, "main"),
		`pod_sets { name: "main" count: 3 request { dimensions: 0 amounts: 100 } }`:              lower(edit.Request, 100, "main"),
		sets: lower(edit.Request, 900, "main"),
	} {
		was := Kept(parse(&apportionv1.KueueWorkload{}, sets))
		require.Empty(t, cmpText(parse(&apportionv1.KueueWorkload{}, want), Extra[*apportionv1.KueueWorkload](x.Job(&e, was))), want)
		none := lower(edit.Minimum, 2, "other")
		require.Same(t, was, x.Job(&none, was), "a pod set that it has not")
	}
}

// cmpText is empty if two messages are equal, else both.
func cmpText(want, got proto.Message) string {
	if proto.Equal(want, got) {
		return ""
	}
	return prototext.Format(want) + " is not " + prototext.Format(got)
}
