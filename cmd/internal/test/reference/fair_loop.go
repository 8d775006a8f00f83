package reference

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/event"
)

// fairLoop runs a cluster through the steps of a session until nothing changes, as a scheduler does. It keeps the tasks, and the room on
// nodes, itself.
type fairLoop struct {
	*fairAsked
	cluster fairCluster
	// started counts the blocks that were started.
	started, plans, evictions int
}

// candidate is a waiting block, with the permitted actions for it.
type candidate struct {
	tasks []uint32
	// allowed is true if its queue may use more, evicts if it may have other tasks evicted.
	allowed, evicts bool
}

func (a *fairAsked) loop(ctx context.Context) (any, error) {
	l := fairLoop{fairAsked: a, cluster: newFairCluster(a)}
	if err := l.run(ctx); err != nil {
		return nil, err
	}
	running := []string{}
	for i := range l.cluster.tasks {
		if t := &l.cluster.tasks[i]; !t.aside && t.status == apportionv1.TaskStatus_TASK_STATUS_RUNNING {
			running = append(running, t.uid)
		}
	}
	slices.Sort(running)
	list := []any{}
	for _, uid := range running {
		list = append(list, uid)
	}
	return object{
		"steps": strconv.Itoa(l.started), "plans": strconv.Itoa(l.plans), "evictions": strconv.Itoa(l.evictions), "running": list,
	}, nil
}

// run starts the first waiting block that can be started, queue by queue in order, until there is none.
func (l *fairLoop) run(ctx context.Context) error {
	for started := -1; started != l.started; {
		started = l.started
		list, err := l.candidates(ctx)
		if err != nil {
			return err
		}
		for i := 0; i < len(list) && l.started == started; i++ {
			if err := l.move(ctx, list[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// candidates asks which actions are permitted for each block.
func (l *fairLoop) candidates(ctx context.Context) ([]candidate, error) {
	queues, err := l.inOrder(ctx)
	if err != nil {
		return nil, err
	}
	var list []candidate
	var steps []*apportionv1.Step
	for _, q := range queues {
		blocks, err := l.cluster.blocks(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, block := range blocks {
			tasks := &apportionv1.Selector{Indices: block}
			list = append(list, candidate{tasks: block})
			steps = append(steps, jointlyAllocatable(tasks), &apportionv1.Step{Step: &apportionv1.Step_Preemptive{
				Preemptive: &apportionv1.PreemptiveStep{Tasks: tasks, Jointly: true},
			}})
		}
	}
	if len(list) == 0 {
		return nil, nil
	}
	answers, err := l.session.Do(ctx, steps...)
	if err != nil {
		return nil, err
	}
	for i := range list {
		list[i].allowed = answers[2*i].GetAllocatable().GetTasks()[0].GetVerdict().GetVote() == apportionv1.Vote_VOTE_PERMIT
		list[i].evicts = answers[2*i+1].GetPreemptive().GetTasks()[0].GetVerdict().GetVote() == apportionv1.Vote_VOTE_PERMIT
	}
	return list, nil
}

// move starts a block on what is free, or in the place of others.
func (l *fairLoop) move(ctx context.Context, c candidate) error {
	if nodes, fits := l.cluster.firstFit(c.tasks); c.allowed && fits {
		return l.start(ctx, c.tasks, nodes)
	}
	if !c.evicts {
		return nil
	}
	return l.evictFor(ctx, c.tasks)
}

// start places a block and lets it run.
func (l *fairLoop) start(ctx context.Context, block, nodes []uint32) error {
	l.started++
	for i, t := range block {
		l.cluster.tasks[t].status, l.cluster.tasks[t].node = apportionv1.TaskStatus_TASK_STATUS_RUNNING, -1
		if len(nodes) > 0 {
			l.cluster.tasks[t].node = int(nodes[i])
		}
	}
	tasks := &apportionv1.Selector{Indices: block}
	return l.all(ctx,
		event.Place(tasks, &apportionv1.Selector{Indices: nodes}),
		event.SetStatus(tasks, apportionv1.TaskStatus_TASK_STATUS_RUNNING))
}

// evictFor asks for a plan for a block and carries it out: the victims are pending again, the block runs.
func (l *fairLoop) evictFor(ctx context.Context, block []uint32) error {
	answer, err := l.ask(ctx, &apportionv1.Step{Step: &apportionv1.Step_Reclaim{Reclaim: &apportionv1.ReclaimStep{
		Claimant: &apportionv1.Selector{Indices: block}, Candidates: &apportionv1.Selector{Indices: l.cluster.candidates()},
		Room: apportionv1.ClaimRoom_CLAIM_ROOM_ANY_NODES,
	}}})
	if err != nil || !answer.GetReclaim().GetPlan().GetMade() {
		return err
	}
	victims := []uint32{}
	for _, v := range answer.GetReclaim().GetVictims() {
		victims = append(victims, v.GetTask())
		l.cluster.tasks[v.GetTask()].status, l.cluster.tasks[v.GetTask()].node = apportionv1.TaskStatus_TASK_STATUS_PENDING, -1
	}
	l.plans++
	l.evictions += len(victims)
	if len(victims) > 0 {
		err = l.all(ctx, event.Evict(&apportionv1.Selector{Indices: victims}, apportionv1.TaskStatus_TASK_STATUS_PENDING))
		if err != nil {
			return err
		}
	}
	return l.start(ctx, block, answer.GetReclaim().GetPlan().GetNodes())
}

// all does steps that change something.
func (l *fairLoop) all(ctx context.Context, steps ...*apportionv1.Step) error {
	answers, err := l.session.Do(ctx, steps...)
	if err != nil {
		return err
	}
	for _, answer := range answers {
		if failure := answer.GetError(); failure != nil {
			return fmt.Errorf("code %d: %s", failure.GetCode(), failure.GetMessage())
		}
	}
	return nil
}

// candidates lists the running tasks: those of lower priority first, then the younger.
func (c *fairCluster) candidates() []uint32 {
	list := []uint32{}
	for i := range c.tasks {
		if c.tasks[i].status == apportionv1.TaskStatus_TASK_STATUS_RUNNING {
			list = append(list, uint32(i))
		}
	}
	slices.SortFunc(list, func(l, r uint32) int {
		lt, rt := &c.tasks[l], &c.tasks[r]
		return cmp.Or(cmp.Compare(lt.job.GetPriority(), rt.job.GetPriority()), cmp.Compare(lt.priority, rt.priority),
			cmp.Compare(rt.created, lt.created), cmp.Compare(l, r))
	})
	return list
}
