package service

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	apportionv1alpha1 "github.com/apportion/apportion/gen/apportion/v1alpha1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/wire"
	"github.com/apportion/apportion/service/admission"
	"github.com/apportion/apportion/service/history"
)

// RecordOptions of Kept.Record.
type RecordOptions struct {
	// History receives the versions.
	History *history.History
	// Policy finds the causes; nil: the policy that the server has under PolicyName.
	Policy     *apportionv1.Policy
	PolicyName string
	// Ahead returns by how much the clock that dates the versions is ahead of one that is right, so that the history does not jump with it.
	// nil: it is right.
	Ahead func() time.Duration
	// Interval is the shortest time from one version whose causes are found to the next.
	Interval time.Duration
	// Taken, if not nil, is called with each version that the history was given and the policy by which its causes and shares were found.
	// Its error counts as one of the history.
	Taken func(*history.Version, *apportionv1.Policy) error
	// Failed is called with the error that keeps a version out of the history, and with nil after each version that is in it.
	Failed func(error)
}

const (
	// recordPause is the pause after causes were found, as a multiple of the time that it took.
	recordPause = 9
	// RecordRefresh is the longest time until a version that lasts is recorded again.
	RecordRefresh = time.Minute
)

// recording is the history of a kept snapshot.
type recording struct {
	RecordOptions

	mutex sync.Mutex
	// digest is that of the policy by which causes were found last.
	digest string
	// of and by are the version and the policy of found.
	of    *version
	by    string
	found *history.Version
}

// Record keeps the history of the snapshot until ctx ends: it finds the causes and shares of new versions, at most one in each interval, in
// a tenth of the time of one processor, after all decisions that callers wait for.
func (k *Kept) Record(ctx context.Context, o RecordOptions) {
	r := &recording{RecordOptions: o}
	k.mutex.Lock()
	k.recording = r
	k.mutex.Unlock()
	for {
		began := time.Now()
		if v := k.latest(); v != nil {
			err := k.record(ctx, r, v)
			if ctx.Err() != nil {
				return
			}
			r.Failed(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(r.Interval, recordPause*time.Since(began))):
		}
		select {
		case <-ctx.Done():
			return
		case <-k.fresh:
		case <-time.After(RecordRefresh):
		}
	}
}

// record takes a version into the history, as of when the cluster was known to be like that.
func (k *Kept) record(ctx context.Context, r *recording, v *version) error {
	by, err := k.server.rule(r.Policy, r.PolicyName, "")
	if err != nil {
		return StatusOf(err)
	}
	if r.of != v || r.by != by.digest {
		found, err := k.server.causes(ctx, v, by)
		if err != nil {
			return StatusOf(err)
		}
		r.of, r.by, r.found = v, by.digest, found
	}
	r.found.At = k.viewOf(v).GetAsOf()
	if r.Ahead != nil {
		r.found.At -= int64(r.Ahead())
	}
	r.mutex.Lock()
	r.digest = by.digest
	r.mutex.Unlock()
	err = r.History.Take(r.found)
	if r.Taken != nil {
		err = errors.Join(err, r.Taken(r.found, by.policy))
	}
	return err
}

// causes finds the causes and shares of a version.
func (s *Server) causes(ctx context.Context, v *version, by rule) (*history.Version, error) {
	steps := []*apportionv1.Step{
		{Step: &apportionv1.Step_Explain{Explain: &apportionv1.ExplainStep{GroupsOnly: true}}},
		{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{Fields: []apportionv1.ShareField{
			apportionv1.ShareField_SHARE_FIELD_DESERVED, apportionv1.ShareField_SHARE_FIELD_ALLOCATED,
			apportionv1.ShareField_SHARE_FIELD_REQUEST, apportionv1.ShareField_SHARE_FIELD_RESERVED,
		}}}},
	}
	p := follow(ctx)
	leave, err := s.enter(p, admission.Simulation, v.bytes+s.stepMemory(steps, decode.ExtentOf(v.model, by.policy)))
	if err != nil {
		return nil, err
	}
	defer leave()
	session, err := s.openModel(v.model, by, p)
	if err != nil {
		return nil, err
	}
	session.Show(false, true)
	answers := make([]*apportionv1.Answer, len(steps))
	for i, step := range steps {
		if answers[i], err = session.Ask(step); err != nil {
			return nil, err
		}
	}
	out := &history.Version{
		Dimensions: session.Basis().GetDimensions(), Exists: func(id string) bool { _, ok := v.model.Job(id); return ok },
	}
	out.Jobs = waitingIn(v.model, out.Dimensions, answers[0].GetExplain())
	out.Queues = queuesIn(v.model, answers[0].GetExplain(), answers[1].GetShares(), len(out.Dimensions))
	return out, nil
}

// waitingIn returns the waiting jobs of a version with their causes.
func waitingIn(m *model.Model, dimensions []string, answer *apportionv1.ExplainAnswer) []history.Job {
	var jobs []history.Job
	for _, group := range answer.GetGroups() {
		reason := group.GetCause()
		cause := history.Cause{Verdict: group.GetVerdict(), Check: group.GetCheck(), Code: reason.GetCode()}
		if reason != nil && reason.Queue != nil {
			cause.Queue = m.Queues[reason.GetQueue()].Name
		}
		if d := reason.GetDimensions(); len(d) > 0 {
			cause.Dimension = dimensions[d[0]]
		}
		for _, j := range group.GetJobs() {
			job := m.Jobs.At(model.JobID(j))
			jobs = append(jobs, history.Job{ID: job.UID, Name: wire.JobName(job), Queue: m.Queues[job.Queue].Name, Cause: cause})
		}
	}
	return jobs
}

// queuesIn returns the queues of a version with the numbers of the first plugin that divides among queues.
func queuesIn(m *model.Model, explained *apportionv1.ExplainAnswer, shares *apportionv1.SharesAnswer, width int) []history.Queue {
	list := make([]history.Queue, len(m.Queues))
	for i := range list {
		list[i].Name = m.Queues[i].Name
	}
	for _, q := range explained.GetQueues() {
		list[q.GetQueue()].Waiting = int(q.GetJobCount())
	}
	for _, standing := range shares.GetStandings() {
		list[standing.GetQueue()].Overused = standing.GetOverused()
	}
	row := func(r *apportionv1.Resource) []float64 {
		out := make([]float64, width)
		for i, d := range r.GetDimensions() {
			out[d] = r.GetAmounts()[i]
		}
		return out
	}
	for _, plugin := range shares.GetPlugins() {
		if len(plugin.GetQueues()) == 0 {
			continue
		}
		for _, q := range plugin.GetQueues() {
			of := &list[q.GetQueue()]
			of.Deserved, of.Allocated, of.Request = row(q.GetDeserved()), row(q.GetAllocated()), row(q.GetRequest())
			if q.GetReserved() != nil {
				of.Reserved = row(q.GetReserved())
			}
		}
		break
	}
	kept := list[:0]
	for i := range list {
		if list[i].Name != "" {
			kept = append(kept, list[i])
		}
	}
	return kept
}

// mostHistories bounds the jobs and the queues that one request names.
const mostHistories = 100

// Bytes of answers about a job and a queue, at most.
const jobHistoryBytes, queueHistoryBytes = 16 << 10, 4 << 20

// GetHistory returns the history of jobs and queues of a kept snapshot.
func (c *call) GetHistory(ctx context.Context, r *apportionv1alpha1.GetHistoryRequest) (*apportionv1alpha1.GetHistoryResponse, error) {
	response, err := c.getHistory(ctx, r)
	if err != nil {
		return nil, c.server.fail(ctx, err)
	}
	return response, nil
}

func (c *call) getHistory(ctx context.Context, r *apportionv1alpha1.GetHistoryRequest) (*apportionv1alpha1.GetHistoryResponse, error) {
	s := c.server
	for field, names := range map[string][]string{"jobs": r.GetJobs(), "queues": r.GetQueues()} {
		if len(names) > mostHistories {
			return nil, invalidRequest(field, "at most "+strconv.Itoa(mostHistories)+" are answered at once")
		}
	}
	if r.GetName() == "" {
		return nil, invalidRequest("name", "no snapshot is named")
	}
	v, err := s.newestShown(ctx, r.GetName(), "name")
	if err != nil {
		return nil, err
	}
	k := s.keptNamed(r.GetName())
	k.mutex.Lock()
	of := k.recording
	k.mutex.Unlock()
	if of == nil {
		return &apportionv1alpha1.GetHistoryResponse{}, nil
	}
	limited, cancel := c.limited(ctx)
	defer cancel()
	memory := int64(len(r.GetJobs()))*jobHistoryBytes + int64(len(r.GetQueues()))*min(queueHistoryBytes, 4*of.History.Bytes())
	if r.GetWaiting() {
		memory += 4 * of.History.Bytes()
	}
	p := follow(limited)
	leave, err := s.enter(p, admission.Decision, memory)
	if err != nil {
		return nil, err
	}
	defer leave()
	out := of.History.Answer(r, historyAudience(s.audienceOf(ctx, v.entry), v.model))
	of.mutex.Lock()
	out.PolicyName, out.PolicyDigest = of.PolicyName, of.digest
	of.mutex.Unlock()
	bytes := proto.Size(out)
	if most := int(s.options.Limit.AnswerBytes); bytes > most {
		return nil, &decode.Fault{
			Code: codes.OutOfRange, Reason: apportionv1.ErrorReason_ERROR_REASON_ANSWER_TOO_LARGE,
			Text: "the history has " + strconv.Itoa(bytes) + " bytes, at most " + strconv.Itoa(most) + " are sent",
		}
	}
	reply, err := c.reserve(ctx)
	if err == nil {
		err = reply.grow(ctx, p.turn, int64(bytes), s.outbox.patience)
	}
	return out, err
}

// historyAudience returns what an audience may see of a history: its queues and those above them. A queue that no longer exists is known by
// its name alone.
func historyAudience(a *Audience, m *model.Model) *history.Audience {
	if a == nil {
		return &history.Audience{}
	}
	return &history.Audience{
		Owns: func(name string) bool {
			q, ok := m.Queue(name)
			return ok && a.audience.Owns(q) || !ok && a.own(name)
		},
		Shows: func(name string) bool {
			q, ok := m.Queue(name)
			return ok && a.audience.Shows(q) || !ok && a.own(name)
		},
	}
}
