package wire

import (
	"math"

	"github.com/apportion/apportion/engine/forecast"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/odds"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/text"
)

var forecastQuestion = question[*apportionv1.ForecastStep]{
	of:     (*apportionv1.Step).GetForecast,
	answer: (*Session).odds,
	need:   exceptNodes,
	// The rest is spent run by run.
	work: func(s *Session, q *apportionv1.ForecastStep) error {
		v := s.engine.View()
		if err := s.work.Spend(len(q.GetPast().GetKindIndices()), 8); err != nil {
			return err
		}
		return s.work.Spend(v.Tasks.Len()+len(v.Nodes), v.Dims.Len()*s.plugins)
	},
	memory: (*asking).forecast,
}

// The bounds of a question.
const (
	MaxForecastRuns = 1000
	// MaxForecastHorizon is in seconds.
	MaxForecastHorizon = 366 * 24 * 3600
	maxPastSeconds     = 100 * 366 * 24 * 3600
	maxPastTasks       = 1_000_000
	// maxRemembered is how many past jobs a server knows at most.
	maxRemembered = 20_000
	// mostCauses is how many jobs an answer lists.
	mostCauses = 10
)

func (s *Session) odds(q *apportionv1.ForecastStep) (*apportionv1.Answer, error) {
	question, err := s.oddsQuestion(q)
	if err != nil {
		return nil, err
	}
	found, err := forecast.ByChance(s.engine.Session, question)
	if err != nil {
		return nil, err
	}
	answer := s.oddsAnswer(question, found)
	answer.Text = text.Odds(s.names(), answer)
	if found != nil && found.Nothing != nil {
		answer.Text = text.OddsUnjudged(s.names(), answer.GetJob(), s.out.reasonList([]policy.Reason{*found.Nothing}))
	}
	s.out.left -= len(answer.GetText())
	return &apportionv1.Answer{Answer: &apportionv1.Answer_Forecast{Forecast: answer}}, s.out.check("job")
}

func (s *Session) oddsQuestion(q *apportionv1.ForecastStep) (*forecast.OddsQuestion, error) {
	var faults model.Error
	question := &forecast.OddsQuestion{
		Runs: int(q.GetRuns()), Seed: q.GetSeed(), Arrivals: q.GetArrivals(), Horizon: int64(q.GetHorizon()), Pause: int64(q.GetPause()),
		Started: map[model.JobID]int64{}, Beside: s.beside,
	}
	jobs := s.jobsNamed(q.GetJob(), "job", &faults)
	switch {
	case faults.Total > 0:
	case s.kueueState() != nil:
		faults.Add("job", "there is no forecast under the policy kueue, because the model that runs forward has no quotas of flavors; "+
			"rehearse the history under kueue instead, which decides with them, or ask under another policy")
	case len(jobs) != 1:
		faults.Add("job", "exactly one job is needed, not %d", len(jobs))
	default:
		question.Job = jobs[0]
	}
	if q.GetRuns() > MaxForecastRuns {
		faults.Add("runs", "%d runs are more than %d", q.GetRuns(), MaxForecastRuns)
	}
	if q.GetHorizon() > MaxForecastHorizon {
		faults.Add("horizon", "%d seconds are more than %d", q.GetHorizon(), MaxForecastHorizon)
	}
	s.readStarted(q, question, &faults)
	s.readPast(q.GetPast(), question, &faults)
	s.remember(q, question, &faults)
	return question, faults.OrNil()
}

// readStarted reads since when jobs run.
func (s *Session) readStarted(q *apportionv1.ForecastStep, question *forecast.OddsQuestion, faults *model.Error) {
	v := s.engine.View()
	if n, want := len(q.GetStartedUnixNanos()), len(q.GetRunningJobs()); n != want {
		faults.Add("started_unix_nanos", "%d times do not belong to %d running jobs", n, want)
		return
	}
	for i, j := range q.GetRunningJobs() {
		if int64(j) >= int64(v.Jobs.Len()) || !v.HasJob(model.JobID(j)) {
			faults.Add(indexed("running_jobs", i), "no job %d", j)
			continue
		}
		question.Started[model.JobID(j)] = q.GetStartedUnixNanos()[i]
	}
}

// readPast reads past jobs.
func (s *Session) readPast(past *apportionv1.PastJobs, question *forecast.OddsQuestion, faults *model.Error) {
	v := s.engine.View()
	for i, k := range past.GetKinds() {
		path := indexed("past.kinds", i)
		if int64(k.GetQueue()) >= int64(len(v.Queues)) || !v.HasQueue(model.QueueID(k.GetQueue())) {
			faults.Add(path+".queue", "no queue %d", k.GetQueue())
		}
		if k.GetTasks() > maxPastTasks {
			faults.Add(path+".tasks", "%d tasks are more than %d", k.GetTasks(), maxPastTasks)
		}
		tasks := max(int(k.GetTasks()), 1)
		least := int(k.GetMinAvailable())
		if least > tasks {
			faults.Add(path+".min_available", "%d is more than the %d tasks", least, tasks)
		}
		if least == 0 {
			least = tasks
		}
		question.Kinds = append(question.Kinds, forecast.PastKind{
			Queue: model.QueueID(k.GetQueue()), Owner: k.GetOwner(), Priority: k.GetPriority(), Tasks: tasks, Min: least,
			Request: s.pastRequest(k.GetRequest(), path+".request", faults),
		})
	}
	n := len(past.GetKindIndices())
	if len(past.GetAgeSeconds()) != n || len(past.GetRunSeconds()) != n {
		faults.Add("past", "kind_indices, age_seconds and run_seconds have %d, %d and %d entries",
			n, len(past.GetAgeSeconds()), len(past.GetRunSeconds()))
		return
	}
	if waits := len(past.GetWaitSeconds()); waits != 0 && waits != n {
		faults.Add("past.wait_seconds", "%d entries do not belong to %d jobs", waits, n)
		return
	}
	for i, k := range past.GetKindIndices() {
		age, seconds := past.GetAgeSeconds()[i], past.GetRunSeconds()[i]
		switch {
		case int64(k) >= int64(len(past.GetKinds())):
			faults.Add(indexed("past.kind_indices", i), "no kind %d", k)
		case age > maxPastSeconds:
			faults.Add(indexed("past.age_seconds", i), "%d seconds are more than %d", age, int64(maxPastSeconds))
		case seconds > maxPastSeconds:
			faults.Add(indexed("past.run_seconds", i), "%d seconds are more than %d", seconds, int64(maxPastSeconds))
		}
		job := forecast.PastJob{Kind: int(k), Arrival: -int64(age), Seconds: int64(seconds), Wait: odds.Unknown}
		if len(past.GetWaitSeconds()) > 0 {
			wait := past.GetWaitSeconds()[i]
			if job.Wait = int64(wait); wait > maxPastSeconds {
				faults.Add(indexed("past.wait_seconds", i), "%d seconds are more than %d", wait, int64(maxPastSeconds))
			}
		}
		question.Past = append(question.Past, job)
	}
	for i, at := range past.GetUnfinishedJobs() {
		if int64(at) >= int64(len(question.Past)) {
			faults.Add(indexed("past.unfinished_jobs", i), "no past job %d", at)
			continue
		}
		question.Past[at].Unfinished = true
	}
}

// pastRequest reads what a past task asked for.
func (s *Session) pastRequest(r *apportionv1.Resource, path string, faults *model.Error) resource.Row {
	v := s.engine.View()
	row := resource.NewAccount(v.Dims.Len())
	given := v.GivenDimensions()
	if len(r.GetDimensions()) != len(r.GetAmounts()) {
		faults.Add(path, "%d dimensions do not belong to %d amounts", len(r.GetDimensions()), len(r.GetAmounts()))
		return row
	}
	for i, d := range r.GetDimensions() {
		amount := r.GetAmounts()[i]
		switch {
		case int64(d) >= int64(len(given)):
			faults.Add(indexed(path+".dimensions", i), "no dimension %d", d)
		case amount < 0 || math.IsNaN(amount) || math.IsInf(amount, 0):
			faults.Add(indexed(path+".amounts", i), "%g is not an amount", amount)
		default:
			row.Set(given[d], amount)
		}
	}
	return row
}

func (s *Session) oddsAnswer(q *forecast.OddsQuestion, found *forecast.Odds) *apportionv1.ForecastAnswer {
	v := s.engine.View()
	answer := &apportionv1.ForecastAnswer{Job: uint32(q.Job), Seed: q.Seed, Kind: apportionv1.ForecastKind_FORECAST_KIND_NONE}
	if !s.omitNames {
		answer.Uid = v.Jobs.At(q.Job).UID
	}
	s.out.left -= 2*messageBytes + len(answer.GetUid())
	if found == nil || found.Nothing != nil {
		return answer
	}
	of := &found.Sources
	answer.Horizon = found.Horizon
	answer.Sources = &apportionv1.ForecastSources{
		Stated: uint32(of[forecast.FromStated]), Alike: uint32(of[forecast.FromKind]), Queue: uint32(of[forecast.FromQueue]),
		All: uint32(of[forecast.FromAll]), Prior: uint32(of[forecast.FromPrior]),
	}
	if !found.Known {
		answer.Kind = apportionv1.ForecastKind_FORECAST_KIND_BOUNDS
		answer.Earliest, answer.Latest = startAt(found.Earliest), startAt(found.Latest)
		return answer
	}
	answer.Kind, answer.Runs, answer.CutShort = apportionv1.ForecastKind_FORECAST_KIND_ODDS, uint32(found.Runs), uint32(found.Cut)
	const low, half, high, hour = 10, 50, 90, 3600
	answer.P10, answer.P50, answer.P90 = startAt(found.Percentile(low)), startAt(found.Percentile(half)), startAt(found.Percentile(high))
	if answer.Hindcasts = uint32(found.Hindcasts); found.Hindcasts > 0 {
		raw := odds.Summary{Starts: found.Raw}
		answer.RawP50, answer.RawP90 = startAt(raw.Percentile(half)), startAt(raw.Percentile(high))
	}
	if d := found.Drift; d != (odds.Drift{}) {
		answer.Drift = &apportionv1.ForecastDrift{Arrivals: d.Arrivals, Runtimes: d.Runtimes}
		s.out.left -= messageBytes
	}
	answer.WithinHour = uint32(found.Within(hour))
	answer.Starts = found.Starts[:found.Within(odds.Never-1)]
	for i := range found.Causes[:min(mostCauses, len(found.Causes))] {
		cause := &apportionv1.ForecastCause{Job: uint32(found.Jobs[found.Causes[i].Job]), Runs: uint32(found.Causes[i].Runs)}
		if !s.omitNames {
			cause.Uid = v.Jobs.At(model.JobID(cause.GetJob())).UID
		}
		answer.Causes = append(answer.Causes, cause)
		s.out.left -= messageBytes + len(cause.GetUid())
	}
	s.out.left -= len(answer.GetStarts()) * numberBytes
	return answer
}

// startAt is a start of an answer, absent if there is none before the horizon.
func startAt(start int64) *int64 {
	if start == odds.Never {
		return nil
	}
	return &start
}

// forecast returns the memory of an answer, and of a run with what all have in common.
func (a *asking) forecast(q *apportionv1.ForecastStep) (answer, work int64) {
	row := decode.RowBytes(int(a.Dimensions))
	runs := int64(min(max(q.GetRuns(), 100), MaxForecastRuns))
	past, kinds := int64(len(q.GetPast().GetKindIndices())), int64(len(q.GetPast().GetKinds()))
	if q.GetRemembered() != "" {
		past, kinds = maxRemembered, maxRemembered
	}
	answer = 8*runs + (mostCauses+4)*(decode.BytesOf[apportionv1.ForecastCause](1)+decode.MaxText)
	const likeness, kindText, live = 5, 1024, 256
	work = past*(2*decode.BytesOf[odds.Past](1)+decode.BytesOf[forecast.PastJob](1)+likeness*32) + (kinds+a.Jobs)*(kindText+4*row) +
		a.Jobs*(decode.BytesOf[odds.Job](1)+live) + a.Tasks*2*decode.BytesOf[odds.Held](1) + (a.Nodes+1)*6*row + a.Queues*6*row + runs*64
	if q.GetArrivals() {
		// Forecasts for jobs of the past.
		tasks := int64(0)
		for _, k := range q.GetPast().GetKindIndices() {
			if int(k) < len(q.GetPast().GetKinds()) {
				tasks += int64(q.GetPast().GetKinds()[k].GetTasks()) + 1
			}
		}
		const starts = 32 * 8
		work += past * (2*decode.BytesOf[odds.Past](1) + decode.BytesOf[odds.Job](1) + likeness*32 + starts)
		work += min(tasks, 2*odds.MaxReplayed) * decode.BytesOf[odds.Held](1)
		work += odds.MaxArrivals * live
	}
	return answer, work
}

// RememberedJob is a past job that a server knows itself. Times are in Unix seconds.
type RememberedJob struct {
	Queue, Owner          string
	Priority              int32
	Tasks, Min            int
	Request               map[string]float64
	Arrived, Began, Ended int64
	// Runs says that it had not ended by Ended.
	Runs bool
}

// Remember says where the past jobs of a snapshot are found by its name. The function returns nil and no error if none are known.
func (s *Session) Remember(past func(name string) ([]RememberedJob, error)) { s.past = past }

// remember reads the past jobs that the server knows.
func (s *Session) remember(q *apportionv1.ForecastStep, question *forecast.OddsQuestion, faults *model.Error) {
	v := s.engine.View()
	name := q.GetRemembered()
	switch {
	case name == "" || faults.Total > 0:
		return
	case len(q.GetPast().GetKindIndices()) > 0:
		faults.Add("remembered", "past jobs are given in past already")
		return
	case s.past == nil:
		faults.Add("remembered", "past jobs are known to a server alone, which follows the cluster with a ledger")
		return
	case v.AsOf == 0:
		faults.Add("remembered", "the snapshot does not state its time, as_of")
		return
	}
	jobs, err := s.past(name)
	if err != nil {
		faults.Add("remembered", "%s", err)
		return
	}
	const second = int64(1_000_000_000)
	now := v.AsOf / second
	for i := range jobs[:min(len(jobs), maxRemembered)] {
		job := &jobs[i]
		queue, known := v.Queue(job.Queue)
		if !known || !v.HasQueue(queue) || job.Arrived >= now || job.Ended > now || job.Runs {
			// Those that run are in the snapshot.
			continue
		}
		row := resource.NewAccount(v.Dims.Len())
		for name, amount := range job.Request {
			if d, ok := v.Dims.Index(name); ok && amount >= 0 && !math.IsInf(amount, 0) {
				row.Set(d, amount)
			}
		}
		tasks := min(max(job.Tasks, 1), maxPastTasks)
		question.Kinds = append(question.Kinds, forecast.PastKind{
			Queue: queue, Owner: job.Owner, Priority: job.Priority, Tasks: tasks, Min: min(max(job.Min, 1), tasks), Request: row,
		})
		question.Past = append(question.Past, forecast.PastJob{
			Kind: len(question.Kinds) - 1, Arrival: job.Arrived - now, Seconds: max(job.Ended-job.Began, 1),
			Wait: max(job.Began-job.Arrived, 0),
		})
	}
}
