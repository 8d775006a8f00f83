// Package quota admits jobs that their namespaces have quota for: Volcano's plugin resourcequota (pkg/scheduler/plugins/resourcequota).
package quota

import (
	"slices"
	"strings"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// Name is the plugin's name in a configuration.
const Name = "resourcequota"

// Plugin is the policy; it has no settings.
type Plugin struct{}

// Name returns "resourcequota".
func (Plugin) Name() string { return Name }

// Open returns a *State.
func (Plugin) Open(v *policy.View) (policy.State, error) {
	s := &State{view: v, of: map[string][]*model.Quota{}, permitted: map[promise]float64{}}
	for i := range v.Quotas {
		if q := &v.Quotas[i]; q.Name != "" {
			s.of[q.Namespace] = append(s.of[q.Namespace], q)
		}
	}
	for _, list := range s.of {
		slices.SortFunc(list, func(l, r *model.Quota) int { return strings.Compare(l.Name, r.Name) })
	}
	return s, nil
}

// State follows what has been permitted.
type State struct {
	view *policy.View
	// of are the quotas of each namespace, by name.
	of map[string][]*model.Quota
	// permitted are the requests of the jobs that were permitted, in namespaces with quotas.
	permitted map[promise]float64
}

// promise is an amount in a namespace, under the name of quotas.
type promise struct{ namespace, name string }

// promiseBytes is about what undoing one promise refers to.
const promiseBytes = 64

// Enqueueable rejects a job whose request exceeds, with what is used and what was permitted before, a quota of its namespace in something
// that both name. It permits any other job and books its request, whatever others say about it.
func (s *State) Enqueueable(j model.JobID, why *policy.Reasons) policy.Vote {
	job := s.view.Jobs.At(j)
	quotas := s.of[job.Namespace]
	if job.MinResources.Absent() || len(quotas) == 0 {
		return policy.Permit
	}
	request := s.request(job)
	for _, q := range quotas {
		exceeded := false
		for _, asked := range request {
			hard, bounded := amount(q.Hard, asked.Name)
			used, _ := amount(q.Used, asked.Name)
			used += s.permitted[promise{job.Namespace, asked.Name}]
			if bounded && used+asked.Amount > hard {
				exceeded = true
				why.Add(s.above(q.Name, asked, used, hard))
			}
		}
		if exceeded {
			return policy.Reject
		}
	}
	for _, asked := range request {
		s.promise(promise{job.Namespace, asked.Name}, asked.Amount)
	}
	return policy.Permit
}

// request is what a job asks for under the names of quotas: what it states, or else its minimum, whose dimensions are such names.
func (s *State) request(job *model.Job) []model.NamedAmount {
	if job.Detail != nil && len(job.Detail.QuotaRequest) > 0 {
		return job.Detail.QuotaRequest
	}
	var list []model.NamedAmount
	for m := job.MinResources.Has; m != 0; m = m.Rest() {
		d := m.First()
		list = append(list, model.NamedAmount{Name: s.view.Dims.Name(d), Amount: job.MinResources.V[d]})
	}
	return list
}

func (s *State) promise(p promise, asked float64) {
	before, known := s.permitted[p]
	s.permitted[p] = before + asked
	s.view.Journal.UndoHolding(promiseBytes, func() {
		if s.permitted[p] = before; !known {
			delete(s.permitted, p)
		}
	})
}

// above is the reason that something exceeds a quota.
func (s *State) above(quota string, asked model.NamedAmount, used, hard float64) policy.Reason {
	reason := policy.Because(Name, policy.AboveNamespaceQuota, model.None)
	plain := strings.TrimPrefix(strings.TrimPrefix(asked.Name, "requests."), "limits.")
	if d, ok := s.view.Dims.Index(plain); ok {
		reason.Dimension = d
	}
	reason.Have, reason.Need, reason.Limit = used, asked.Amount, hard
	reason.Detail = asked.Name + " of quota " + quota
	return reason
}

// amount returns the amount of a name in a list, and whether the list has it.
func amount(list []model.NamedAmount, name string) (float64, bool) {
	for i := range list {
		if list[i].Name == name {
			return list[i].Amount, true
		}
	}
	return 0, false
}
