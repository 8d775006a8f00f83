// Package ledger keeps what queues and owners used, and decays it: the memory of the policy `fair`.
//
// A Ledger takes in evidence of running tasks, in any order and any number of times: when a task started, in which queues, what it holds,
// when it was last seen, when it ended. From that follows what each queue used in each epoch, exactly, in integers. Usage at the beginning
// of an epoch is the sum of the finished epochs, each weighted by its age.
//
//	l, err := ledger.New(ledger.Options{Epoch: 6 * time.Hour, HalfLife: 28})
//	l.Follow(snapshot, now)        // whenever the cluster changed, or once a minute
//	l.Fill(snapshot, now, budgets) // before the snapshot is sent
//
// The arithmetic stands here alone, without a clock and without a file, so that rehearsals use what servers use. Package ledger/file keeps
// a ledger on disk.
package ledger
