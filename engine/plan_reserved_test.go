package engine_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// keeper draws reservations of nodes and ends of jobs; nil draws none.
type keeper struct{ dice }

func newKeeper(seed uint64) *keeper { return &keeper{dice{Rand: rand.New(rand.NewPCG(seed, 23))}} }

// planNow is the time of the clusters of plans, and planSoon the time before which all that is known to end or begin does.
const (
	planNow  = 1_000_000
	planSoon = planNow + 60
)

func (k *keeper) reserve(spec *model.NodeSpec, cpu, gpu int) {
	if k == nil {
		return
	}
	for range k.IntN(3) {
		r := model.ReservationSpec{From: planNow + int64(k.between(-20, 40))}
		if k.chance(70) {
			r.Until = min(r.From+int64(k.between(1, 40)), planSoon)
		}
		if k.chance(85) {
			r.Request = amounts(k.between(1, max(1, cpu-1)), k.between(0, gpu))
		}
		if k.chance(60) {
			r.Holder = fmt.Sprint("j", k.IntN(7))
		}
		spec.Reservations = append(spec.Reservations, r)
	}
}

func (k *keeper) last(spec *model.JobSpec) {
	if k == nil {
		return
	}
	if k.chance(60) {
		spec.ExpectedRuntime = int64(k.between(1, 50))
	}
	if k.chance(60) {
		spec.ExpectedEnd = planNow + int64(k.between(-5, 50))
	}
}

// eachReservedPlan is eachPlan on clusters of which nodes are reserved.
func eachReservedPlan(t require.TestingT, runs int, try func(name string, seed uint64, s *engine.Session, j model.JobID)) {
	for i := range runs {
		seed := *planSeed + uint64(i)
		for name, p := range planPolicies() {
			s, err := engine.Open(drawnCluster(t, seed, name == "tree", newKeeper(seed)), p, nil)
			require.NoError(t, err)
			for _, j := range s.Waiting() {
				try(name, seed, s, j)
			}
		}
	}
}

// keeps is the plain check of a plan against reservations: once the victims are gone, each node that it uses has at every instant, while
// the job runs, room for all that uses it then and all that is kept for others. It looks at each instant, and knows nothing of the planner.
func keeps(s *engine.Session, plan *engine.Plan) error {
	gone, placed := map[model.TaskID]bool{}, map[model.TaskID]model.NodeID{}
	for i := range plan.Victims {
		gone[plan.Victims[i].Task] = true
	}
	for i, t := range plan.Tasks {
		placed[t] = plan.Nodes[i]
	}
	ends := map[model.JobID]int64{}
	for _, j := range s.View().Present() {
		ends[j] = s.View().EndOf(j)
	}
	for _, n := range plan.Nodes {
		for at := int64(planNow); at < min(ends[plan.Job], planSoon+1); at++ {
			if err := keepsAt(s.View(), plan.Job, n, at, ends, gone, placed); err != nil {
				return err
			}
		}
	}
	return nil
}

func keepsAt(
	v *policy.View, asking model.JobID, n model.NodeID, at int64, ends map[model.JobID]int64,
	gone map[model.TaskID]bool, placed map[model.TaskID]model.NodeID,
) error {
	used := map[string][2]float64{}
	for t := range model.TaskID(v.Tasks.Len()) {
		on, isNew := placed[t]
		if !isNew {
			on = v.NodeOf(t)
		}
		status := v.Status(t)
		if on != n || gone[t] || !isNew && (status == model.Pending || status == model.Releasing) || ends[v.Tasks.At(t).Job] <= at {
			continue
		}
		uid, sum := v.Jobs.At(v.Tasks.At(t).Job).UID, v.Request(t).V
		used[uid] = [2]float64{used[uid][0] + sum[0], used[uid][1] + sum[1]}
	}
	kept := map[string][2]float64{}
	for _, r := range v.Nodes[n].Reservations() {
		if r.Holder == v.Jobs.At(asking).UID || r.From > at || r.Until != 0 && r.Until <= max(at, planNow) {
			continue
		}
		if r.Whole() {
			return fmt.Errorf("node %s is kept whole at %d", v.Nodes[n].Name, at)
		}
		kept[r.Holder] = [2]float64{kept[r.Holder][0] + r.Request.V[0], kept[r.Holder][1] + r.Request.V[1]}
	}
	for d := range 2 {
		all, some := 0.0, false
		for _, amount := range used {
			all += amount[d]
		}
		for holder, amount := range kept {
			some = some || amount[d] > 0
			all += max(0, amount[d]-used[holder][d])
		}
		asks := used[v.Jobs.At(asking).UID][d] > 0
		if some && asks && all > v.Nodes[n].Allocatable.V[d] {
			return fmt.Errorf("node %s lacks %g of dimension %d at %d", v.Nodes[n].Name, all-v.Nodes[n].Allocatable.V[d], d, at)
		}
	}
	return nil
}

// placedInOrder carries out a plan without one of its victims, and reports whether the policy lets each task be placed when it is its
// turn. Under fair a task may have to wait although all together do not: what others claim depends on the nodes that are free. Seed 7238
// has such a plan: without its victim one task of the gang fills a node halfway, and what others can claim beside it keeps the next off.
func placedInOrder(s *engine.Session, plan *engine.Plan, without model.TaskID) bool {
	for i := range plan.Victims {
		if v := plan.Victims[i].Task; v != without && s.Deallocate(v, model.Pending) != nil {
			return false
		}
	}
	for i, t := range plan.Tasks {
		if !s.Allocatable([]model.TaskID{t}, policy.InSession, nil, nil) || s.Allocate(t, plan.Nodes[i]) != nil {
			return false
		}
	}
	return true
}

// TestPlansLeaveReservationsTheirRoom checks that every plan, with evictions and without, can be carried out, does without none of its
// victims, and leaves others at each instant what is reserved for them.
func TestPlansLeaveReservationsTheirRoom(t *testing.T) {
	made, evicting, victims := 0, 0, 0
	eachReservedPlan(t, *planRuns, func(name string, seed uint64, s *engine.Session, j model.JobID) {
		for _, means := range []engine.Means{engine.PlaceOnly, engine.ByReclaim, engine.ByPreempt, engine.ByAny} {
			plan := ask(t, s, j, means)
			if plan.Outcome != engine.PlanMade {
				continue
			}
			made++
			victims += len(plan.Victims)
			if len(plan.Victims) > 0 && s.View().Reservations().Reserved(plan.Nodes[0]) {
				evicting++
			}
			require.NoError(t, keeps(s, plan), "%s %d: %s", name, seed, s.View().Jobs.At(j).UID)
			mark := s.Mark()
			require.True(t, carry(s, plan, model.None), "%s %d: %s", name, seed, s.View().Jobs.At(j).UID)
			require.NoError(t, s.Rollback(mark))
			for i := range plan.Victims {
				needless := carry(s, plan, plan.Victims[i].Task)
				require.NoError(t, s.Rollback(mark))
				needless = needless && (name != "fair" || placedInOrder(s, plan, plan.Victims[i].Task))
				require.NoError(t, s.Rollback(mark))
				require.False(t, needless, "%s %d: victim %d is not needed", name, seed, i)
			}
		}
	})
	t.Log(made, "plans,", evicting, "with evictions beside reservations;", victims, "victims")
	require.Greater(t, evicting, *planRuns/20)
}
