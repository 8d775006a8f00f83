package render

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

func TestViewsNameKindsOfAnswers(t *testing.T) {
	kinds := (&apportionv1.Answer{}).ProtoReflect().Descriptor().Oneofs().ByName("answer").Fields()
	for name := range views {
		require.NotNil(t, kinds.ByName(name), "the contract has no answer %s", name)
	}
}

func TestAnAnswerOfAKindWithoutAViewIsShownByItsFields(t *testing.T) {
	view := views["jobs"]
	delete(views, "jobs")
	defer func() { views["jobs"] = view }()
	answer := &apportionv1.Answer{Answer: &apportionv1.Answer_Jobs{Jobs: &apportionv1.JobsAnswer{
		Jobs: []*apportionv1.JobStanding{{Job: 1, Ready: &apportionv1.Verdict{Vote: apportionv1.Vote_VOTE_PERMIT}, ReadyTasks: 2}},
	}}}
	var out bytes.Buffer
	(&Printer{Out: &out}).Answer(nil, answer)
	require.Equal(t, `jobs:
  - job: 1
    ready:
      vote: VOTE_PERMIT
    readyTasks: 2
`, out.String())
}
