package reference

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/apportion/apportion/internal/test/recording"
	"github.com/apportion/apportion/ledger"
)

// ledgerGroup is the profile of the cases of the ledger of past usage, whose form testdata/memory/README.md describes.
const ledgerGroup = "ledger"

// ledgerCase is one recorded case of the ledger.
type ledgerCase struct {
	ID     string          `json:"id"`
	Ledger *recordedLedger `json:"ledger"`
	Answer any             `json:"answer"`
}

// recordedLedger is what goes into a ledger and what is asked of it. Amounts and quanta are by number of dimension.
type recordedLedger struct {
	EpochSeconds   int64              `json:"epochSeconds"`
	HalfLifeEpochs int                `json:"halfLifeEpochs"`
	Window         int                `json:"window"`
	Now            int64              `json:"now"`
	Clock          int64              `json:"clock"`
	Begin          int64              `json:"begin"`
	Quanta         []uint64           `json:"quanta"`
	Evidence       []recordedEvidence `json:"evidence"`
	Periods        struct {
		Queue string `json:"queue"`
		Carry bool   `json:"carry"`
		List  []struct {
			Begin  int64   `json:"begin"`
			Amount []int64 `json:"amount"`
		} `json:"list"`
	} `json:"periods"`
}

type recordedEvidence struct {
	Task    string   `json:"task"`
	Start   int64    `json:"start"`
	Path    []string `json:"path"`
	Owner   string   `json:"owner"`
	Amounts []int64  `json:"amounts"`
	Seen    int64    `json:"seen"`
	End     *int64   `json:"end"`
}

// readLedger decodes a case of the ledger; false if the line is none.
func readLedger(line recording.Line) (*ledgerCase, bool) {
	var c ledgerCase
	if json.Unmarshal(line.Data, &c) != nil || c.ID == "" || c.Ledger == nil {
		return nil, false
	}
	return &c, c.Answer != nil
}

// check compares the answers of the ledger, exactly. There is one way only: the ledger answers without a policy and without a service.
func (c *ledgerCase) check(ways []Way, only string) *Result {
	result := &Result{Case: &Case{Profile: ledgerGroup, Name: c.ID}}
	answer, err := c.Ledger.answer()
	if err != nil {
		result.Failures = append(result.Failures, err.Error())
		return result
	}
	got := make([]any, len(ways))
	for i := range got {
		got[i] = answer
	}
	compared := comparison{only: only, unheld: map[Rule]int{}}
	compared.tree("", nil, ledgerForm(c.Answer), got)
	result.Answers, result.Equal, result.Differences = compared.answers, compared.equal, compared.differ
	return result
}

// ledgerForm leaves out names whose amounts are all 0, which may be absent.
func ledgerForm(answer any) any {
	o, _ := answer.(object)
	for _, part := range []string{usageKey, "spent"} {
		named, _ := o[part].(object)
		maps.DeleteFunc(named, func(_ string, amounts any) bool {
			list, _ := amounts.([]any)
			return !slices.ContainsFunc(list, func(v any) bool { return v != "0" })
		})
	}
	return answer
}

func (r *recordedLedger) answer() (any, error) {
	quanta := map[string]uint64{}
	for d, q := range r.Quanta {
		quanta[dimensionName(d)] = q
	}
	l, err := ledger.New(ledger.Options{
		Epoch: time.Duration(r.EpochSeconds) * time.Second, HalfLife: r.HalfLifeEpochs, Window: r.Window, Quanta: quanta,
	})
	if err != nil {
		return nil, err
	}
	for i := range r.Evidence {
		// A refusal is counted, and part of the answer.
		_ = l.Enter(r.Evidence[i].evidence(), r.Clock)
	}
	now := l.EpochOf(r.Now)
	return ledgerForm(object{
		"lambda": strconv.FormatUint(ledger.Lambda(r.HalfLifeEpochs), 10), refusedText: float64(l.Counts().Refused),
		usageKey: r.vectors(l, l.Usage(now)), "spent": r.vectors(l, l.Spent(l.EpochOf(r.Begin), now)),
		"periods": r.periods(l, now),
	}), nil
}

func dimensionName(d int) string { return fmt.Sprintf("d%02d", d) }

func (e *recordedEvidence) evidence() *ledger.Evidence {
	out := &ledger.Evidence{
		Task: e.Task, Start: e.Start, Path: e.Path, Owner: e.Owner, Amounts: named(e.Amounts), Seen: e.Seen, Ended: e.End != nil,
	}
	if e.End != nil {
		out.End = *e.End
	}
	return out
}

func named(amounts []int64) map[string]int64 {
	out := map[string]int64{}
	for d, amount := range amounts {
		out[dimensionName(d)] = amount
	}
	return out
}

func (r *recordedLedger) vectors(l *ledger.Ledger, usage map[ledger.Line][]int64) object {
	out := object{}
	names := l.Dimensions()
	for to, v := range usage {
		name := to.Queue
		if to.Owned {
			name += "//" + to.Owner
		}
		amounts := map[string]int64{}
		for d := range v {
			amounts[names[d]] = v[d]
		}
		texts := make([]any, len(r.Quanta))
		for d := range texts {
			texts[d] = strconv.FormatInt(amounts[dimensionName(d)], 10)
		}
		out[name] = texts
	}
	return out
}

func (r *recordedLedger) periods(l *ledger.Ledger, now int64) []any {
	periods := make([]ledger.Period, len(r.Periods.List))
	for i, p := range r.Periods.List {
		periods[i] = ledger.Period{Begin: p.Begin, Amount: named(p.Amount)}
	}
	out := []any{}
	for _, a := range l.Accounts(r.Periods.Queue, r.Periods.Carry, periods, now) {
		spent, granted := make([]any, len(r.Quanta)), make([]any, len(r.Quanta))
		for d := range spent {
			spent[d], granted[d] = strconv.FormatInt(a.Spent[dimensionName(d)], 10), a.Granted[dimensionName(d)].String()
		}
		out = append(out, object{"spent": spent, "amount": granted})
	}
	return out
}
