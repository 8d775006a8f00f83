package check_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/apportion/apportion/client/check"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/internal/test/raced"
)

// forgery is a change of several fields of a response that go together, as someone makes it who wants to deceive. It returns false if the
// response has nothing of the kind.
type forgery struct {
	name  string
	forge func(*forged) bool
}

// forged is a response that is being changed, with the request and with another true response.
type forged struct {
	request  *apportionv1.SimulateRequest
	response *apportionv1.SimulateResponse
	other    *apportionv1.SimulateResponse
	random   *rand.Rand
}

// plugins are the shares of all plugins in all answers.
func (f *forged) plugins(each func(*apportionv1.PluginShares) bool) bool {
	done := false
	for _, a := range f.response.GetAnswers() {
		for _, p := range a.GetShares().GetPlugins() {
			done = each(p) || done
		}
	}
	return done
}

func (f *forged) pick(n int) int { return f.random.IntN(max(n, 1)) }

// exchange exchanges what two messages of a list say but for some fields.
func exchange[M proto.Message](l, r M, but ...protoreflect.Name) {
	a, b := proto.Clone(l).ProtoReflect(), proto.Clone(r).ProtoReflect()
	fields := a.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		if slices.Contains(but, field.Name()) {
			continue
		}
		for _, to := range []struct{ to, from protoreflect.Message }{{l.ProtoReflect(), b}, {r.ProtoReflect(), a}} {
			to.to.Clear(field)
			if to.from.Has(field) {
				to.to.Set(field, to.from.Get(field))
			}
		}
	}
}

// victims calls f with an answer about victims.
func (f *forged) victims(each func(*apportionv1.VictimsAnswer) bool) bool {
	done := false
	for _, a := range f.response.GetAnswers() {
		for _, v := range []*apportionv1.VictimsAnswer{a.GetReclaim(), a.GetPreempt()} {
			done = v != nil && each(v) || done
		}
	}
	return done
}

// described are the task and its queue and request by number.
func (f *forged) described() (of []string, uids []string) {
	for _, j := range f.request.GetInput().GetSnapshot().GetJobs() {
		for _, g := range j.GetGroups() {
			for _, t := range g.GetTasks() {
				of = append(of, fmt.Sprint(j.GetQueue(), t.GetStatus(), g.GetRequest(), t.GetDetail(), t.GetPriority()))
				uids = append(uids, cmp.Or(t.GetUid(), strings.Trim(j.GetNamespace()+"/"+t.GetName(), "/")))
			}
		}
	}
	return of, uids
}

// differences lists the fields in which two messages differ.
func differences(l, r protoreflect.Message, path string) []string {
	var list []string
	fields := l.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		at := strings.TrimPrefix(path+"."+string(f.Name()), ".")
		switch {
		case f.IsList() && l.Get(f).List().Len() != r.Get(f).List().Len():
			list = append(list, at)
		case f.IsList() && f.Message() != nil:
			for k := range l.Get(f).List().Len() {
				list = append(list, differences(l.Get(f).List().Get(k).Message(), r.Get(f).List().Get(k).Message(), fmt.Sprintf("%s[%d]", at, k))...)
			}
		case f.Message() != nil && !f.IsList() && l.Has(f) && r.Has(f):
			list = append(list, differences(l.Get(f).Message(), r.Get(f).Message(), at)...)
		case l.Has(f) != r.Has(f) || !l.Get(f).Equal(r.Get(f)):
			list = append(list, at)
		}
	}
	return list
}

// eachForgery calls f with the response changed by each forgery in turn.
func eachForgery(request *apportionv1.SimulateRequest, response, other *apportionv1.SimulateResponse, seed uint64, times int, f func(name string, changed *apportionv1.SimulateResponse)) {
	random := rand.New(rand.NewPCG(seed, 1))
	for _, each := range forgeries {
		for range times {
			it := &forged{request, proto.CloneOf(response), other, random}
			if each.forge(it) && !proto.Equal(plain(it.response), plain(response)) {
				f(each.name, it.response)
			}
		}
	}
}

// plansOf asks for plans of some jobs.
func plansOf(s *apportionv1.Snapshot, most int) (steps []*apportionv1.Step) {
	for j := range s.GetJobs()[:min(most, len(s.GetJobs()))] {
		steps = append(steps, &apportionv1.Step{Step: &apportionv1.Step_Plan{Plan: &apportionv1.PlanStep{Job: &apportionv1.Selector{Indices: []uint32{uint32(j)}}}}})
	}
	return steps
}

// TestEveryForgeryIsFound changes fields of true answers together: each forgery is refused, or all fields in which it differs are on the list
// of what was not checked.
func TestEveryForgeryIsFound(t *testing.T) {
	raced.Skip(t)
	refused, listedOnly, every, times, seeds := map[string]int{}, map[string]int{}, 71, 2, uint64(4)
	if *allMutants {
		every, times, seeds = 5, 10, 60
	}
	var other *apportionv1.SimulateResponse
	seed := uint64(0)
	try := func(t *testing.T, r *apportionv1.SimulateRequest) {
		t.Helper()
		response := answered(t, r)
		truth, err := check.Response(r, response)
		require.NoError(t, err)
		require.Empty(t, truth.Faults)
		seed++
		eachForgery(r, response, other, seed, times, func(name string, changed *apportionv1.SimulateResponse) {
			report, err := check.Response(r, changed)
			require.NoError(t, err, name)
			if len(report.Faults) > 0 {
				refused[name]++
				return
			}
			for _, path := range differences(plain(response).ProtoReflect(), plain(changed).ProtoReflect(), "") {
				require.True(t, listed(report, path) || listed(truth, path), "%s: %s is changed, not found and not listed", name, path)
			}
			listedOnly[name]++
		})
		other = response
	}
	eachCase(t, every, func(t *testing.T, r *apportionv1.SimulateRequest) {
		t.Helper()
		s := r.GetInput().GetSnapshot()
		r.Steps = append(append(r.Steps, fairQuestions(s, 4)...), plansOf(s, 3)...)
		try(t, r)
	})
	for _, policy := range policies {
		t.Run(policy, func(t *testing.T) {
			for n := range seeds {
				s := generate.Snapshot(generate.Shape{Queues: 5, Jobs: 8, Tasks: 40, Nodes: 4, Seed: n, Depth: int(n) % 3, Dimensions: 3, UIDs: n%2 == 0})
				r := asked(t, s, policy, append(fairQuestions(s, 3), plansOf(s, 8)...)...)
				if n%2 == 0 {
					r = contested(t, policy, 3*n)
				}
				if n%4 == 3 {
					r.Steps[0].GetShares().Explain = nil
				}
				try(t, r)
			}
		})
	}
	n := 0
	for _, counts := range []map[string]int{refused, listedOnly} {
		for _, k := range counts {
			n += k
		}
	}
	t.Logf("%d forgeries", n)
	for _, f := range forgeries {
		t.Logf("%s: %d refused, %d only where nothing is checked", f.name, refused[f.name], listedOnly[f.name])
		require.Positive(t, refused[f.name]+listedOnly[f.name], "no answer has what this changes: %s", f.name)
	}
}

// FuzzAnyBytes reads any bytes as a response: it is refused or not, and the check does not fail.
func FuzzAnyBytes(f *testing.F) {
	s := generate.Snapshot(generate.Shape{Queues: 5, Jobs: 8, Tasks: 40, Nodes: 4, Seed: 1, Depth: 1, Dimensions: 3})
	var requests []*apportionv1.SimulateRequest
	for i, policy := range policies {
		r := asked(f, s, policy, append(fairQuestions(s, 3), plansOf(s, 4)...)...)
		requests = append(requests, r)
		data, err := proto.Marshal(answered(f, r))
		require.NoError(f, err)
		f.Add(uint8(i), data)
	}
	f.Fuzz(func(t *testing.T, policy uint8, data []byte) {
		response := &apportionv1.SimulateResponse{}
		if proto.Unmarshal(data, response) != nil {
			return
		}
		_, err := check.Response(requests[int(policy)%len(requests)], response)
		require.NoError(t, err)
	})
}
