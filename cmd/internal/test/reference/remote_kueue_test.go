package reference

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/event"
	"github.com/apportion/apportion/internal/test/raced"
	"github.com/apportion/apportion/internal/test/recording"
)

// The recorded cases of Kueue, over gRPC and in process: both answer alike in every way that the client has, and each nomination is the
// recorded one.
func TestRecordedCasesOfKueueAreAnsweredAlikeAndAsKueueDoes(t *testing.T) {
	p := parity{remote: dialed(t), local: client.InProcess()}
	n, compared, nominations := 0, 0, 0
	for line, err := range recording.Lines(kueueRecordings) {
		require.NoError(t, err)
		if n++; n%sample != 0 && !*every {
			continue
		}
		compared++
		q, err := ReadKueueQuestion(line)
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
func nominationOf(n *apportionv1.KueueNomination) KueueNomination {
	out := KueueNomination{
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
	for line, err := range recording.Lines(kueueRecordings) {
		require.NoError(t, err)
		if n++; n%(sample/4) != 0 {
			continue
		}
		q, err := ReadKueueQuestion(line)
		require.NoError(t, err)
		shares := q.Steps[0]
		answer, err := client.InProcess().Simulate(t.Context(), client.Input{Snapshot: q.Input.GetSnapshot(), Policy: q.Input.GetPolicy()},
			&apportionv1.Step{Step: &apportionv1.Step_Enqueue{Enqueue: &apportionv1.EnqueueStep{Mode: apportionv1.EnqueueMode_ENQUEUE_MODE_ACTION}}},
			shares, &apportionv1.Step{Step: &apportionv1.Step_Mark{Mark: &apportionv1.MarkStep{}}},
			event.Change(&apportionv1.Change{}),
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
	remote, local := dialed(t), client.InProcess()
	mirror := client.NewMirror(remote)
	n := 0
	for line, err := range recording.Lines(kueueRecordings) {
		require.NoError(t, err)
		if n++; n%(4*sample) != 0 {
			continue
		}
		q, err := ReadKueueQuestion(line)
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
