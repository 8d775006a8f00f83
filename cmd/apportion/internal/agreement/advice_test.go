package agreement_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/contract/lookup"
	"github.com/apportion/apportion/contract/quantity"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

var (
	given  = regexp.MustCompile(`at least (.*) must (?:be given back|become free) first`)
	asking = regexp.MustCompile(`ask for no more than (.*)`)
	amount = regexp.MustCompile(`^(\S+) (cpu|nvidia\.com/gpu)(?:, | and )?`)
)

// told returns the amounts that advice names by dimension, nil if it gives no such advice.
func told(advice *regexp.Regexp, text string) map[uint32]float64 {
	found := advice.FindStringSubmatch(text)
	if found == nil {
		return nil
	}
	amounts := map[uint32]float64{}
	for rest := found[1]; ; {
		one := amount.FindStringSubmatch(rest)
		if one == nil {
			return amounts
		}
		parsed, err := quantity.Parse(one[2], one[1])
		if err != nil {
			return nil
		}
		amounts[uint32(slices.Index([]string{"cpu", "nvidia.com/gpu"}, one[2]))] = parsed
		rest = rest[len(one[0]):]
	}
}

// advise requires that what a job is advised makes the check pass that holds it back: what others are to give back, and what the job is to
// ask for instead.
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

// lower makes amounts no larger than others.
func lower(r *apportionv1.Resource, most map[uint32]float64) {
	for i, dimension := range r.GetDimension() {
		if x, known := most[dimension]; known {
			r.Amount[i] = min(r.GetAmount()[i], x)
		}
	}
}

// shrink lets the waiting tasks that a check is about ask together for no more than that.
func (j *job) shrink(s *apportionv1.Snapshot, index uint32, by *apportionv1.Finding, most map[uint32]float64) {
	each := map[uint32]float64{}
	for dimension, x := range most {
		if by.Task == nil {
			x /= float64(max(j.explained.GetNeededTasks(), 1))
		}
		each[dimension] = x
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

// giveBack returns the cluster in which running tasks below the queues that a check names have ended that held so much, those first that
// help; nil if they hold too little.
func (j *job) giveBack(index uint32, by *apportionv1.Finding, back map[uint32]float64) *apportionv1.Snapshot {
	s := proto.CloneOf(j.snapshot)
	counts := map[uint32]bool{}
	for _, reason := range by.GetReasons() {
		if _, about := back[reason.GetDimension()]; about && reason.Queue != nil {
			counts[reason.GetQueue()] = true
		}
	}
	left := maps.Clone(back)
	for at, other := range s.GetJobs() {
		if uint32(at) == index || len(counts) > 0 && !j.within(other.GetQueue(), counts) {
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
			helps := false
			for i, dimension := range request.GetDimension() {
				helps = helps || left[dimension] > 0 && request.GetAmount()[i] > 0
			}
			if !helps {
				continue
			}
			for i, dimension := range request.GetDimension() {
				left[dimension] -= request.GetAmount()[i]
			}
			task.Status, task.Node = apportionv1.TaskStatus_TASK_STATUS_SUCCEEDED, nil
		}
	}
	for dimension := range back {
		if left[dimension] > 0 {
			return nil
		}
	}
	return s
}

// within reports whether a queue is one of some, or below one.
func (j *job) within(queue string, of map[uint32]bool) bool {
	for {
		at := slices.IndexFunc(j.snapshot.GetQueues(), func(q *apportionv1.Queue) bool { return q.GetName() == queue })
		if at < 0 {
			return false
		}
		if of[uint32(at)] {
			return true
		}
		queue = j.snapshot.GetQueues()[at].GetParent()
	}
}

// obeyed requires that a bound that held the job back does not hold it back in a cluster where advice about it was followed.
func (j *job) obeyed(how string, by *apportionv1.Finding, s *apportionv1.Snapshot, dimensions map[uint32]float64) {
	after := j.on(s, explain(uids(j.explained.GetUid())))[0].GetExplain().GetJobs()[0]
	_, now := stands(after)
	if now.GetCheck() != by.GetCheck() || by.Task != nil && (now.Task == nil || by.GetTask() != now.GetTask()) {
		// Advice about one task says nothing about others, or all together.
		return
	}
	for _, was := range by.GetReasons() {
		for _, is := range now.GetReasons() {
			_, about := dimensions[is.GetDimension()]
			if about && is.Dimension != nil && is.GetCode() == was.GetCode() && is.GetQueue() == was.GetQueue() && is.GetDimension() == was.GetDimension() {
				j.contradicts("the job "+how+", and is held back by the same bound: "+strings.TrimPrefix(is.GetCode().String(), "REASON_CODE_"),
					"%s | %s | %v", j.explained.GetText(), after.GetText(), dimensions)
				return
			}
		}
	}
}
