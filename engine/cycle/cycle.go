// Package cycle is the loop of a scheduler: in which order its actions ask what waits, and when they begin again. What waits, how it is
// placed, what is counted and when to stop are the caller's; see Scheduler.
package cycle

import "iter"

// Action is a part of a cycle, as Volcano names it.
type Action string

// The actions.
const (
	Enqueue  Action = "enqueue"
	Allocate Action = "allocate"
	Preempt  Action = "preempt"
	Reclaim  Action = "reclaim"
)

// Actions returns all actions in the order in which Volcano's documentation names them.
func Actions() []Action { return []Action{Enqueue, Allocate, Preempt, Reclaim} }

// ServesOverused reports whether an action also serves queues that use all they may: preemption takes from the queue itself, as in Volcano,
// and reclaim by plans asks what each queue is entitled to.
func (a Action) ServesOverused(plans bool) bool { return a == Preempt || a == Reclaim && plans }

// Scheduler lists what waits and carries out decisions for it. J is the unit that is served in one step: a job, a gang or a task.
type Scheduler[J any] interface {
	// Enqueue lets jobs in.
	Enqueue() error
	// Waiting yields what an action may serve, the first in order first. After an item was served, the new order counts; it does not yield
	// again what could not be served. It ends after it has yielded an error.
	Waiting(action Action) iter.Seq2[J, error]
	// Allocate starts it on what is free, and reports whether it did. If not, nothing has changed.
	Allocate(job J) (bool, error)
	// Evict starts it in the place of tasks of its own queue (Preempt) or of others (Reclaim), and reports whether it did. If not, nothing
	// has changed.
	Evict(job J, action Action) (bool, error)
}

// Cycle runs the actions of a scheduler.
type Cycle[J any] struct {
	Scheduler[J]

	// Plans is true if the policy reclaims by plans, as fair does. Free resources are then given out until no item takes more, because a
	// refusal may depend on what others could still have been given. After each plan of reclaim this is repeated.
	Plans bool
	// Settled, if not nil, is called when what a plan of reclaim left free is given out. Reclaim ends if it returns true.
	Settled func() bool
}

// Run carries out actions in order. It returns the first error.
func (c *Cycle[J]) Run(actions ...Action) error {
	for _, action := range actions {
		if err := c.act(action); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cycle[J]) act(action Action) error {
	switch {
	case action == Enqueue:
		return c.Enqueue()
	case action == Allocate:
		return c.allocate()
	case action == Reclaim && c.Plans:
		return c.reclaimByPlans()
	}
	_, err := Serve(c.Waiting(action), func(job J) (bool, error) { return c.Evict(job, action) })
	return err
}

// allocate gives out what is free.
func (c *Cycle[J]) allocate() error {
	for {
		served, err := Serve(c.Waiting(Allocate), c.Allocate)
		if err != nil || served == 0 || !c.Plans {
			return err
		}
	}
}

// reclaimByPlans carries out plans, the first there is, and gives out what is free after each, until there is none.
func (c *Cycle[J]) reclaimByPlans() error {
	for {
		moved, err := First(c.Waiting(Reclaim), func(job J) (bool, error) { return c.Evict(job, Reclaim) })
		if err != nil || !moved {
			return err
		}
		if err := c.allocate(); err != nil {
			return err
		}
		if c.Settled != nil && c.Settled() {
			return nil
		}
	}
}

// Serve tries to serve all that waits, and returns for how many that was done.
func Serve[J any](waiting iter.Seq2[J, error], serve func(J) (bool, error)) (served int, err error) {
	for job, err := range waiting {
		if err != nil {
			return served, err
		}
		done, err := serve(job)
		if err != nil {
			return served, err
		}
		if done {
			served++
		}
	}
	return served, nil
}

// First serves the first that can be served of what waits, and reports whether there is one.
func First[J any](waiting iter.Seq2[J, error], serve func(J) (bool, error)) (bool, error) {
	for job, err := range waiting {
		if err != nil {
			return false, err
		}
		if done, err := serve(job); done || err != nil {
			return done, err
		}
	}
	return false, nil
}
