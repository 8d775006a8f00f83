package text_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	apportionv1alpha1 "github.com/apportion/apportion/gen/apportion/v1alpha1"
	"github.com/apportion/apportion/internal/text"
)

func TestAWaitIsToldInTurn(t *testing.T) {
	at := func(clock string) int64 {
		moment, err := time.Parse(time.DateOnly+" 15:04", "2026-11-24 "+clock)
		require.NoError(t, err)
		return moment.UnixNano()
	}
	clock := func(ns int64) string { return time.Unix(0, ns).UTC().Format("15:04") }
	one := func(from, until, why string, lasts bool) *apportionv1alpha1.CauseInterval {
		return &apportionv1alpha1.CauseInterval{StartTime: at(from), EndTime: at(until), Text: why, Lasts: lasts}
	}
	const gpus, limit, turn = "because no usable node has enough gpu left", "because queue ml would hold more cpu than it may", "for its turn"
	waits := apportionv1alpha1.WaitState_WAIT_STATE_WAITS
	for name, c := range map[string]struct {
		job  *apportionv1alpha1.JobHistory
		want string
	}{
		"one cause": {
			&apportionv1alpha1.JobHistory{State: waits, Since: at("09:12"), Intervals: []*apportionv1alpha1.CauseInterval{one("09:12", "12:00", gpus, true)}},
			"It waits since 09:12 because no usable node has enough gpu left.",
		},
		"two causes": {
			&apportionv1alpha1.JobHistory{State: waits, Since: at("09:12"), Intervals: []*apportionv1alpha1.CauseInterval{
				one("09:12", "11:40", gpus, false), one("11:40", "12:00", limit, true),
			}},
			"It waits since 09:12: until 11:40 because no usable node has enough gpu left, since then because queue ml would hold more cpu than it may.",
		},
		"as long as the history": {
			&apportionv1alpha1.JobHistory{State: waits, Since: at("08:00"), Intervals: []*apportionv1alpha1.CauseInterval{one("08:00", "12:00", turn, true)}},
			"It waits since 08:00 or longer for its turn.",
		},
		"again": {
			&apportionv1alpha1.JobHistory{State: waits, Since: at("11:40"), Intervals: []*apportionv1alpha1.CauseInterval{
				one("09:12", "10:00", gpus, false), one("11:40", "12:00", limit, true),
			}},
			"It waits since 11:40 because queue ml would hold more cpu than it may.",
		},
		"five causes": {
			&apportionv1alpha1.JobHistory{State: waits, Since: at("09:00"), Intervals: []*apportionv1alpha1.CauseInterval{
				one("09:00", "09:10", gpus, false), one("09:10", "09:20", limit, false), one("09:20", "09:30", gpus, false),
				one("09:30", "09:40", limit, false), one("09:40", "12:00", turn, true),
			}},
			"It waits since 09:00, for 5 causes in turn: until 09:30 because no usable node has enough gpu left, " +
				"until 09:40 because queue ml would hold more cpu than it may, since then for its turn.",
		},
		"no longer": {
			&apportionv1alpha1.JobHistory{
				State: apportionv1alpha1.WaitState_WAIT_STATE_ENDED, Since: at("09:12"), Ended: at("10:00"),
				Intervals: []*apportionv1alpha1.CauseInterval{one("09:12", "10:00", gpus, false)},
			},
			"It waits no longer: it waited from 09:12 until 10:00 because no usable node has enough gpu left.",
		},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, text.Waited(c.job, at("08:00"), clock)) })
	}
	for name, c := range map[string]struct {
		history *apportionv1alpha1.GetHistoryResponse
		want    string
	}{
		"in memory":   {&apportionv1alpha1.GetHistoryResponse{Begins: at("09:12"), Started: at("09:12")}, "Known since 09:12, when this server started."},
		"from a file": {&apportionv1alpha1.GetHistoryResponse{Begins: at("07:00"), Started: at("09:12")}, "Known since 07:00, from the file of this server, which started at 09:12."},
		"with gaps": {
			&apportionv1alpha1.GetHistoryResponse{Begins: at("07:00"), Started: at("07:00"), Gaps: []*apportionv1alpha1.HistoryGap{
				{StartTime: at("08:00"), EndTime: at("08:10")}, {StartTime: at("09:00"), EndTime: at("09:12")},
			}},
			"Known since 07:00, when this server started; not from 09:00 to 09:12 and 1 time before.",
		},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, text.Reaches(c.history, clock)) })
	}
}
