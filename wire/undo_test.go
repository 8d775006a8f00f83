package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/apportion/apportion/wire"
)

func TestChangesBeyondWhatCanBeRememberedAreRefusedUntilTheyAreRolledBack(t *testing.T) {
	s := open(t, twoQueues, proportional, wire.Options{UndoBytes: 100_000})
	for range 1000 {
		requireAnswer(t, `done {}`, ask(t, s, `set_status { tasks { index: 6 } status: TASK_STATUS_PIPELINED }`))
	}
	requireAnswer(t, `mark {}`, ask(t, s, `mark {}`))
	const change = `set_status { tasks { index: 5 } status: TASK_STATUS_PIPELINED }`
	requireFull := func() {
		t.Helper()
		st := ask(t, s, change).GetError()
		require.Equal(t, int32(codes.OutOfRange), st.GetCode())
		info := errorInfo(t, st)
		require.Equal(t, "LIMIT_EXCEEDED", info.GetReason())
		require.Equal(t, map[string]string{"limit": "undo_bytes", "maximum": "100000"}, info.GetMetadata())
	}
	changes := 0
	for ask(t, s, change).GetError() == nil {
		changes++
	}
	require.Greater(t, changes, 50)
	require.Less(t, changes, 5000)
	requireFull()
	requireAnswer(t, `done {}`, ask(t, s, `rollback {}`))
	requireAnswer(t, `done {}`, ask(t, s, change))

	jobs := 0
	for ask(t, s, `add_job { job { name: "new" namespace: "`+string(rune('a'+jobs%26))+string(rune('a'+jobs/26))+`" queue: "web" } }`).GetError() == nil {
		jobs++
	}
	require.Greater(t, jobs, 5)
	requireFull()
	s.Keep()
	s.Restore()
	requireAnswer(t, `done {}`, ask(t, s, change))
}
