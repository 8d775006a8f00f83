package agreement_test

import (
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/quantity"
)

var (
	given  = regexp.MustCompile(`at least (.*) must (?:be given back|become free) first`)
	asking = regexp.MustCompile(`ask for no more than (.*)`)
	amount = regexp.MustCompile(`^(\S+) (cpu|nvidia\.com/gpu)(?: in queue ([^ ,]+))?(?:, | and )?`)
)

// bound is a queue, empty if the advice names none, and a dimension.
type bound struct {
	queue     string
	dimension uint32
}

// told returns the amounts that advice names, nil if it gives no such advice.
func told(advice *regexp.Regexp, text string) map[bound]float64 {
	found := advice.FindStringSubmatch(text)
	if found == nil {
		return nil
	}
	amounts := map[bound]float64{}
	for rest := found[1]; ; {
		one := amount.FindStringSubmatch(rest)
		if one == nil {
			return amounts
		}
		parsed, err := quantity.Parse(one[2], one[1])
		if err != nil {
			return nil
		}
		amounts[bound{one[3], uint32(slices.Index([]string{"cpu", "nvidia.com/gpu"}, one[2]))}] = parsed
		rest = rest[len(one[0]):]
	}
}

// advise requires that following the advice for a job makes the check pass that holds it back: other jobs release the named amount, or the
// job requests at most the named amount.
func (j *job) advise() {
	at, by := stands(j.explained)
	index, ok := j.position()
	if at != held || !ok {
		return
	}
	if less := told(asking, j.explained.GetText()); less != nil {
		j.questions["told to ask for less"]++
		asked := proto.CloneOf(j.snapshot)
		if by.GetCheck() == apportionv1.CheckKind_CHECK_KIND_ADMISSION {
			lower(asked.GetJobs()[index].GetMinResources(), less)
		} else {
			j.shrink(asked, index, by, less)
		}
		j.obeyed("asked for less", by, asked, less)
	}
	if back := told(given, j.explained.GetText()); back != nil {
		if without := j.giveBack(index, by, back); without != nil {
			j.questions["told what others give back"]++
			j.obeyed("was given back what it takes", by, without, back)
		}
	}
}

// lower reduces amounts to at most the given ones.
func lower(r *apportionv1.Resource, most map[bound]float64) {
	for i, dimension := range r.GetDimensions() {
		if x, known := most[bound{dimension: dimension}]; known {
			r.Amounts[i] = min(r.GetAmounts()[i], x)
		}
	}
}

// shrink lets the waiting tasks that a check is about ask together for no more than that, in whole units.
func (j *job) shrink(s *apportionv1.Snapshot, index uint32, by *apportionv1.Finding, most map[bound]float64) {
	each := map[bound]float64{}
	for bound, x := range most {
		if by.Task == nil {
			x = math.Floor(x / float64(max(j.explained.GetNeededTasks(), 1)))
		}
		each[bound] = x
	}
	for _, task := range lookup.Of(s).TasksOf(index) {
		if task.Pending() {
			if task.GetDetail().GetRequest() == nil {
				task.Detail.Request = proto.CloneOf(task.Group.GetRequest())
			}
			lower(task.GetDetail().GetRequest(), each)
		}
	}
}

// giveBack returns the cluster in which running tasks have ended that held so much below the queues that advice names, those first that
// help; nil if they hold too little. Advice that names no queue is about the only queue whose bounds are exceeded, or the whole cluster.
func (j *job) giveBack(index uint32, by *apportionv1.Finding, back map[bound]float64) *apportionv1.Snapshot {
	s := proto.CloneOf(j.snapshot)
	left := map[bound]float64{}
	for to, x := range back {
		if reason := by.GetCauses()[0]; to.queue == "" && reason.Queue != nil {
			to.queue = s.GetQueues()[reason.GetQueue()].GetName()
		}
		left[to] = x
	}
	for at, other := range s.GetJobs() {
		if uint32(at) == index {
			continue
		}
		for _, task := range lookup.Of(s).TasksOf(uint32(at)) {
			if task.GetStatus() != apportionv1.TaskStatus_TASK_STATUS_RUNNING {
				continue
			}
			request := task.Group.GetRequest()
			if task.GetDetail().GetRequest() != nil {
				request = task.GetDetail().GetRequest()
			}
			helps, rest := false, maps.Clone(left)
			for to, x := range left {
				i := slices.Index(request.GetDimensions(), to.dimension)
				if i >= 0 && (to.queue == "" || j.within(other.GetQueue(), to.queue)) {
					helps = helps || x > 0 && request.GetAmounts()[i] > 0
					rest[to] -= request.GetAmounts()[i]
				}
			}
			if helps {
				left = rest
				task.Status, task.Node = apportionv1.TaskStatus_TASK_STATUS_SUCCEEDED, nil
			}
		}
	}
	for _, x := range left {
		if x > 0 {
			return nil
		}
	}
	return s
}

// within reports whether a queue is another, or below it.
func (j *job) within(queue, of string) bool {
	for queue != of {
		at := slices.IndexFunc(j.snapshot.GetQueues(), func(q *apportionv1.Queue) bool { return q.GetName() == queue })
		if at < 0 {
			return false
		}
		queue = j.snapshot.GetQueues()[at].GetParent()
	}
	return true
}

// residue reports whether a bound is exceeded by less than the smallest amount that advice names. What a queue deserves under proportion
// follows what its jobs ask for, and the rounds that divide the cluster end with a remainder.
func residue(r *apportionv1.Cause) bool {
	return r.GetCode() == apportionv1.CauseCode_CAUSE_CODE_ABOVE_DESERVED && r.GetPlugin() == "proportion" &&
		r.GetHave()+r.GetNeed()-r.GetLimit() < 1
}

// obeyed requires that a bound that held the job back does not hold it back in a cluster where advice about it was followed.
func (j *job) obeyed(how string, by *apportionv1.Finding, s *apportionv1.Snapshot, told map[bound]float64) {
	after := j.on(s, explain(uids(j.explained.GetUid())))[0].GetExplain().GetJobs()[0]
	_, now := stands(after)
	if now.GetCheck() != by.GetCheck() || by.Task != nil && (now.Task == nil || by.GetTask() != now.GetTask()) {
		// Advice about one task says nothing about others, or all together.
		return
	}
	for _, was := range by.GetCauses() {
		for _, is := range now.GetCauses() {
			if len(is.GetDimensions()) > 0 && is.GetCode() == was.GetCode() && is.GetQueue() == was.GetQueue() &&
				slices.Equal(is.GetDimensions(), was.GetDimensions()) && !residue(is) {
				j.contradicts("the job "+how+", and is held back by the same bound: "+strings.TrimPrefix(is.GetCode().String(), "CAUSE_CODE_"),
					"%s | %s | %v", j.explained.GetText(), after.GetText(), told)
				return
			}
		}
	}
}
