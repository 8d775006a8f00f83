package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/wire"
)

// TestAChangeOfTasksForWhichTooLittleWorkIsLeftChangesNone moves tasks that many rules count: how much that costs is found out on the way.
func TestAChangeOfTasksForWhichTooLittleWorkIsLeftChangesNone(t *testing.T) {
	rules := &apportionv1.PodRules{Topologies: topologies(60), Classes: []*apportionv1.PodClass{{}}}
	for i := range uint32(20) {
		class := &apportionv1.PodClass{}
		for k := range uint32(60) {
			class.AntiAffinities = append(class.AntiAffinities, &apportionv1.PodAntiAffinity{Selection: i, Topology: k})
		}
		rules.Classes = append(rules.Classes, class)
		rules.Classes[0].Selections = append(rules.Classes[0].Selections, i)
	}
	s := podSnapshot(1, rules)
	for range 99 {
		s.Jobs[0].Groups[0].Tasks = append(s.Jobs[0].Groups[0].Tasks, &apportionv1.Task{})
	}
	for _, task := range s.Jobs[0].Groups[0].Tasks {
		task.Status, task.Node = apportionv1.TaskStatus_TASK_STATUS_RUNNING, new(uint32(0))
	}
	m, err := decode.Compile(s)
	require.NoError(t, err)
	session, err := wire.Open(m, parse(t, &apportionv1.Policy{}, byGang), wire.Options{Work: 1_200_000})
	require.NoError(t, err)
	all := ""
	for i := range 100 {
		all += " indices: " + numbered("", 100)[i]
	}
	state := func() string {
		answer, err := session.Ask(parse(t, &apportionv1.Step{}, `inspect { tasks: true }`))
		require.NoError(t, err)
		return answer.String()
	}
	before := state()
	for _, step := range []string{`event { status { tasks {` + all + ` } status: TASK_STATUS_RELEASING } }`, `event { evict { tasks {` + all + ` } } }`} {
		_, err = session.Ask(parse(t, &apportionv1.Step{}, step))
		require.ErrorContains(t, err, tooMuchWork)
		require.Equal(t, before, state())
	}
	_, err = session.Ask(parse(t, &apportionv1.Step{}, `event { status { tasks { indices: 7 } status: TASK_STATUS_RELEASING } }`))
	require.NoError(t, err)
}
