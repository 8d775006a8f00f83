package service_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	apportionv1alpha1 "github.com/apportion/apportion/gen/apportion/v1alpha1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/setting"
	"github.com/apportion/apportion/ledger"
	"github.com/apportion/apportion/service"
)

// memory is a ledger in memory.
type memory struct{ *ledger.Ledger }

func (m memory) View(read func(*ledger.Ledger)) { read(m.Ledger) }

// using returns a ledger in which ann used 2 hours of a core in queue ml/a, and bob 1 in ml/b, on 1970-01-02.
func using(t *testing.T) memory {
	t.Helper()
	l, err := ledger.New(ledger.Options{Epoch: time.Hour})
	require.NoError(t, err)
	for queue, owner := range map[string]string{"a": "ann", "b": "bob"} {
		e := ledger.Evidence{
			Task: owner, Start: 86400, Path: []string{queue, "ml", "root"}, Owner: owner, Amounts: map[string]int64{"cpu": 1000},
			Seen: 86400 + 3600*map[string]int64{"a": 2, "b": 1}[queue],
		}
		require.NoError(t, l.Enter(&e, 1<<40))
	}
	return memory{l}
}

// treeOf is a snapshot with the queues of using.
func treeOf() *apportionv1.Snapshot {
	return &apportionv1.Snapshot{Queues: []*apportionv1.Queue{{Name: "ml"}, {Name: "a", Parent: "ml"}, {Name: "b", Parent: "ml"}}}
}

func TestCallersAreToldWhatTheirQueuesUsed(t *testing.T) {
	budgets := []ledger.Budget{
		{Queue: "a", Hard: true, Periods: []ledger.Period{{Begin: 0, Amount: map[string]int64{"cpu": 3600000}}}},
		{Queue: "ml", Periods: []ledger.Period{{Begin: 0, Amount: map[string]int64{"cpu": 36000000}}}},
	}
	for name, c := range map[string]struct {
		own     func(context.Context) func(string) bool
		queues  string
		budgets string
	}{
		"a caller that may see all":                  {nil, "a a/ann b b/bob ml root", "a: ann; ml: a b ann bob"},
		"a caller that owns a queue":                 {owning("a"), "a a/ann", "a: ann"},
		"a caller that owns a queue above":           {owning("ml"), "a a/ann b b/bob ml", "a: ann; ml: a b ann bob"},
		"a caller that owns a name that is no queue": {owning("gone"), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			server, err := service.New(service.Options{Own: c.own})
			require.NoError(t, err)
			k := server.Keep("cluster", "", asOfNow)
			ask := func(r *apportionv1alpha1.GetUsageRequest) *apportionv1alpha1.GetUsageResponse {
				r.Name = "cluster"
				out, err := server.Direct().GetUsage(t.Context(), r)
				require.NoError(t, err)
				return out
			}
			keep(t, k, treeOf())
			require.True(t, proto.Equal(&apportionv1alpha1.GetUsageResponse{}, ask(&apportionv1alpha1.GetUsageRequest{})), "there is no ledger")
			server.Remember("cluster", using(t), budgets)

			got := ask(&apportionv1alpha1.GetUsageRequest{Owners: true, Period: apportionv1alpha1.UsagePeriod_USAGE_PERIOD_DAY})
			require.Equal(t, int64(86400e9), got.GetBegins())
			require.Len(t, got.GetIntervals(), 1)
			var queues []string
			for _, q := range got.GetIntervals()[0].GetQueues() {
				queues = append(queues, strings.TrimSuffix(q.GetQueue()+"/"+q.GetOwner(), "/"))
				require.Equal(t, []string{"cpu"}, got.GetDimensions())
				if q.GetQueue() == "a" {
					require.Equal(t, []int64{7200000}, q.GetUsed().GetQuantumSeconds())
				}
			}
			require.Equal(t, c.queues, strings.Join(queues, " "))

			var spent []string
			for _, b := range ask(&apportionv1alpha1.GetUsageRequest{Owners: true, Budgets: true}).GetBudgets() {
				text := b.GetQueue() + ":"
				for _, u := range b.GetUsers() {
					if u.Owner == nil {
						text += " " + u.GetQueue()
					}
				}
				for _, u := range b.GetUsers() {
					if u.Owner != nil {
						text += " " + u.GetOwner()
					}
				}
				spent = append(spent, text)
			}
			require.Equal(t, c.budgets, strings.Join(spent, "; "))
		})
	}
}

func owning(names ...string) func(context.Context) func(string) bool {
	return func(context.Context) func(string) bool {
		return func(queue string) bool {
			return slices.Contains(names, queue)
		}
	}
}

// A program may keep a ledger without the snapshot, which says which queues are below others.
func TestCallersAreToldWhatTheirQueuesUsedThoughNoSnapshotIsKept(t *testing.T) {
	for name, c := range map[string]struct {
		own             func(context.Context) func(string) bool
		queues, budgets string
	}{
		"a server that restricts no caller":   {nil, "a a/ann b b/bob ml root", "a ml"},
		"a caller that may see all":           {func(context.Context) func(string) bool { return nil }, "a a/ann b b/bob ml root", "a ml"},
		"a caller that owns a queue":          {owning("a"), "a a/ann", "a"},
		"a caller that owns a queue above":    {owning("ml"), "ml", "ml"},
		"a caller that owns nothing of these": {owning("c"), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			server, err := service.New(service.Options{Own: c.own})
			require.NoError(t, err)
			server.Remember("file", using(t), []ledger.Budget{
				{Queue: "a", Periods: []ledger.Period{{Begin: 0, Amount: map[string]int64{"cpu": 1}}}},
				{Queue: "ml", Periods: []ledger.Period{{Begin: 0, Amount: map[string]int64{"cpu": 1}}}},
			})
			ask := func(budgets bool) *apportionv1alpha1.GetUsageResponse {
				out, err := server.Direct().GetUsage(t.Context(), &apportionv1alpha1.GetUsageRequest{
					Name: "file", Owners: true, Budgets: budgets, Period: apportionv1alpha1.UsagePeriod_USAGE_PERIOD_TOTAL,
				})
				require.NoError(t, err)
				return out
			}
			var queues, budgets []string
			for _, x := range ask(false).GetIntervals() {
				for _, q := range x.GetQueues() {
					queues = append(queues, strings.TrimSuffix(q.GetQueue()+"/"+q.GetOwner(), "/"))
				}
			}
			for _, b := range ask(true).GetBudgets() {
				budgets = append(budgets, b.GetQueue())
			}
			require.Equal(t, c.queues, strings.Join(queues, " "))
			require.Equal(t, c.budgets, strings.Join(budgets, " "))
		})
	}
}

// TestALedgerWithoutItsSnapshotIsShownToCallersThatMayNameItsCluster has a caller that may name one cluster.
func TestALedgerWithoutItsSnapshotIsShownToCallersThatMayNameItsCluster(t *testing.T) {
	server, err := service.New(service.Options{Permit: func(_ context.Context, cluster string) error {
		if cluster == "mine" {
			return nil
		}
		return &decode.Fault{Code: codes.PermissionDenied, Reason: apportionv1.ErrorReason_ERROR_REASON_PERMISSION_DENIED, Text: "not yours"}
	}})
	require.NoError(t, err)
	server.Remember("mine", using(t), nil)
	server.Remember("other", using(t), nil)
	_, err = server.Direct().GetUsage(t.Context(), &apportionv1alpha1.GetUsageRequest{Name: "mine"})
	require.NoError(t, err)
	_, err = server.Direct().GetUsage(t.Context(), &apportionv1alpha1.GetUsageRequest{Name: "other"})
	requireFault(t, err, codes.PermissionDenied, "PERMISSION_DENIED")
}

func TestUsageIsRefusedWithItsReason(t *testing.T) {
	limits := setting.Default[setting.Limit]()
	limits.AnswerBytes = 200
	server, err := service.New(service.Options{Limit: limits})
	require.NoError(t, err)
	server.Remember("file", using(t), nil)
	for name, c := range map[string]struct {
		ask    *apportionv1alpha1.GetUsageRequest
		code   codes.Code
		reason string
	}{
		"no snapshot is named":     {&apportionv1alpha1.GetUsageRequest{}, codes.InvalidArgument, "INVALID_REQUEST"},
		"the server keeps no such": {&apportionv1alpha1.GetUsageRequest{Name: "other"}, codes.NotFound, "SNAPSHOT_NAME_NOT_FOUND"},
		"it ends before it begins": {&apportionv1alpha1.GetUsageRequest{Name: "file", StartTime: new(int64(2)), EndTime: new(int64(1))}, codes.InvalidArgument, "INVALID_REQUEST"},
		"there are too many periods": {
			&apportionv1alpha1.GetUsageRequest{Name: "file", EndTime: new(int64(1) << 62), Period: apportionv1alpha1.UsagePeriod_USAGE_PERIOD_DAY},
			codes.InvalidArgument, "INVALID_REQUEST",
		},
		"the answer is too large": {&apportionv1alpha1.GetUsageRequest{Name: "file", Owners: true}, codes.OutOfRange, "ANSWER_TOO_LARGE"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := server.Direct().GetUsage(t.Context(), c.ask)
			requireFault(t, err, c.code, c.reason)
		})
	}
}
