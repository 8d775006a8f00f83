package client_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/test/raced"
	"github.com/apportion/apportion/internal/test/reference"
	"github.com/apportion/apportion/service"
)

// The recorded cases of Kueue, over gRPC and in process: both answer alike in every way that the client has, and each nomination is the
// recorded one.
func TestRecordedCasesOfKueueAreAnsweredAlikeAndAsKueueDoes(t *testing.T) {
	r := startReplica(t, service.Options{})
	p := parity{remote: dialAll(t, []*replica{r}), local: client.InProcess()}
	n, compared, nominations := 0, 0, 0
	for line, err := range reference.Lines("../testdata/kueue") {
		require.NoError(t, err)
		if n++; n%sample != 0 && !*whole {
			continue
		}
		compared++
		q, err := reference.ReadKueueQuestion(line)
		require.NoError(t, err)
		t.Run(q.Label, func(t *testing.T) {
			p.compare(t, q.Input, q.Steps)
			answer, err := p.remote.Simulate(t.Context(), client.Input{Snapshot: q.Input.GetSnapshot(), Policy: q.Input.GetPolicy()}, q.Steps...)
			require.NoError(t, err)
			for _, job := range answer.Answers[q.Explain].GetExplain().GetJobs() {
				if want, recorded := q.Nominations[job.GetName()]; recorded {
					nominations++
					require.Equal(t, want, nominationOf(job.GetKueue()), job.GetName())
					plan, err := client.InProcess().Plan(t.Context(), client.Input{Snapshot: q.Input.GetSnapshot(), Policy: q.Input.GetPolicy()},
						client.PlanQuestion{Job: job.GetUid()})
					require.NoError(t, err)
					require.Equal(t, want, nominationOf(plan.Answer.GetKueue()), "a plan of %s", job.GetName())
				}
			}
		})
	}
	t.Log(compared, "of", n, "cases,", p.answers, "answers,", nominations, "recorded nominations")
	require.Greater(t, n, 800)
	require.Greater(t, nominations, 30)
}

// camel returns a value of an enum as Kueue writes it.
func camel(value fmt.Stringer, prefix string) string {
	var out strings.Builder
	for word := range strings.SplitSeq(strings.TrimPrefix(value.String(), prefix), "_") {
		out.WriteString(word[:1] + strings.ToLower(word[1:]))
	}
	return out.String()
}

// nominationOf returns an answer in the recorded form.
func nominationOf(n *apportionv1.KueueNomination) reference.KueueNomination {
	out := reference.KueueNomination{
		Mode: camel(n.GetMode(), "KUEUE_MODE_"), Borrows: n.GetBorrows(), Partial: n.GetPartial(), Counts: []int32{},
	}
	for _, p := range n.GetPodSets() {
		out.Counts = append(out.Counts, p.GetCount())
	}
	for _, v := range n.GetVictims() {
		out.Victims = append(out.Victims, v.GetName()+" "+camel(v.GetReason(), "KUEUE_VICTIM_REASON_"))
	}
	return out
}

// A change of the cluster after a cycle opens the policy anew: what was admitted still holds its quota.
func TestAdmissionsOfACycleOutliveAChangeOfTheCluster(t *testing.T) {
	raced.Skip(t)
	n, admitted := 0, 0
	for line, err := range reference.Lines("../testdata/kueue") {
		require.NoError(t, err)
		if n++; n%(sample/4) != 0 {
			continue
		}
		q, err := reference.ReadKueueQuestion(line)
		require.NoError(t, err)
		shares := q.Steps[0]
		answer, err := client.InProcess().Simulate(t.Context(), client.Input{Snapshot: q.Input.GetSnapshot(), Policy: q.Input.GetPolicy()},
			&apportionv1.Step{Step: &apportionv1.Step_Enqueue{Enqueue: &apportionv1.EnqueueStep{Mode: apportionv1.EnqueueMode_ENQUEUE_MODE_ACTION}}},
			shares, &apportionv1.Step{Step: &apportionv1.Step_Mark{Mark: &apportionv1.MarkStep{}}},
			&apportionv1.Step{Step: &apportionv1.Step_Change{Change: &apportionv1.ChangeStep{Change: &apportionv1.Change{}}}},
			shares, &apportionv1.Step{Step: &apportionv1.Step_Rollback{Rollback: &apportionv1.RollbackStep{}}}, shares)
		require.NoError(t, err)
		for i := range answer.Answers {
			require.NoError(t, answer.Err(i))
		}
		for _, job := range answer.Answers[0].GetEnqueue().GetJobs() {
			if job.GetKueue().GetDecision() == apportionv1.KueueDecision_KUEUE_DECISION_ADMITTED {
				admitted++
			}
		}
		for _, later := range []int{4, 6} {
			require.True(t, proto.Equal(answer.Answers[1].GetShares(), answer.Answers[later].GetShares()), "%s\n%v\n%v", q.Label,
				answer.Answers[1].GetShares(), answer.Answers[later].GetShares())
		}
	}
	require.Greater(t, admitted, 50)
}

// Clusters that change from one recorded case to the next: a mirror sends what changed, and is answered as the whole snapshot.
func TestAMirrorFollowsClustersOfKueue(t *testing.T) {
	r := startReplica(t, service.Options{})
	remote, local := dialAll(t, []*replica{r}), client.InProcess()
	mirror := client.NewMirror(remote)
	n := 0
	for line, err := range reference.Lines("../testdata/kueue") {
		require.NoError(t, err)
		if n++; n%(4*sample) != 0 {
			continue
		}
		q, err := reference.ReadKueueQuestion(line)
		require.NoError(t, err)
		require.NoError(t, mirror.Replace(q.Input.GetSnapshot()))
		state := mirror.State()
		question := client.SharesQuestion{}
		want, err := local.Shares(t.Context(), client.Input{Snapshot: state.Snapshot(), Policy: q.Input.GetPolicy()}, question)
		require.NoError(t, err)
		got, err := remote.Shares(t.Context(), client.Input{State: state, Policy: q.Input.GetPolicy()}, question)
		require.NoError(t, err)
		for _, queue := range q.Input.GetSnapshot().GetQueues() {
			a, found := want.Queue(queue.GetName())
			require.True(t, found)
			require.NotNil(t, a.Kueue)
			b, _ := got.Queue(queue.GetName())
			require.True(t, proto.Equal(a.Kueue, b.Kueue), "%v\n%v", a.Kueue, b.Kueue)
		}
	}
}

// Two flavors of GPUs, which exist or not.
var drawnFlavors = []string{"a100", "h100"}

func drawKueue(t *rapid.T) *apportionv1.KueueSnapshot {
	out := &apportionv1.KueueSnapshot{Cohorts: []*apportionv1.KueueCohort{{Name: "all"}}}
	for _, name := range drawnFlavors {
		if rapid.IntRange(0, 3).Draw(t, name) > 0 {
			out.Flavors = append(out.Flavors, &apportionv1.KueueFlavor{Name: name})
		}
	}
	if rapid.Bool().Draw(t, "check") {
		out.Checks = []*apportionv1.KueueCheck{{Name: "capacity", Active: rapid.Bool().Draw(t, "active")}}
	}
	return out
}

func drawKueueQueue(t *rapid.T) *apportionv1.KueueQueue {
	group := &apportionv1.KueueResourceGroup{CoveredResources: []string{"cpu"}}
	for _, name := range drawnFlavors {
		group.Flavors = append(group.Flavors, &apportionv1.KueueFlavorQuotas{
			Name: name, Resources: []*apportionv1.KueueQuota{{Name: "cpu", Nominal: rapid.Int64Range(0, 9000).Draw(t, "nominal")}},
		})
	}
	return &apportionv1.KueueQueue{
		Cohort: rapid.SampledFrom([]string{"", "all", "others"}).Draw(t, "cohort"), Groups: []*apportionv1.KueueResourceGroup{group},
		Preemption: &apportionv1.KueuePreemption{
			ReclaimWithinCohort: apportionv1.KueueChoice_KUEUE_CHOICE_ANY,
			WithinClusterQueue:  apportionv1.KueueChoice_KUEUE_CHOICE_LOWER_PRIORITY,
		},
		Strict: rapid.Bool().Draw(t, "strict"),
	}
}

func drawKueueWorkload(t *rapid.T) *apportionv1.KueueWorkload {
	out := &apportionv1.KueueWorkload{PodSets: []*apportionv1.KueuePodSet{{
		Name: "main", Count: 2, Requests: []*apportionv1.KueueAmount{{Name: "cpu", Amount: rapid.Int64Range(0, 6000).Draw(t, "cpu")}},
	}}}
	if rapid.Bool().Draw(t, "admitted") {
		out.ReserveTime = new(rapid.Int64Range(1, 9).Draw(t, "reserved"))
		out.Admission = &apportionv1.KueueAdmission{PodSets: []*apportionv1.KueueAdmittedPodSet{{
			Name: "main", Usage: []*apportionv1.KueueFlavoredUsage{{
				Resource: "cpu", Flavor: rapid.SampledFrom(drawnFlavors).Draw(t, "flavor"), Amount: new(rapid.Int64Range(0, 6000).Draw(t, "used")),
			}},
		}}}
	}
	return out
}
