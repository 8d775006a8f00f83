package ledger

import (
	"math/big"
	"slices"
)

// Period is one period of a budget. It ends where the epoch begins in which the next period begins.
type Period struct {
	// Begin in seconds after 1970. The period starts with the epoch that contains it.
	Begin int64
	// Amount by dimension, in quantum-seconds.
	Amount map[string]int64
}

// Account is a period of a budget and what became of it.
type Account struct {
	Period
	// From and To are the first and the last epoch that count so far, To excluded.
	From, To int64
	// Spent of each dimension of the amount until To, in quantum-seconds.
	Spent map[string]int64
	// Granted is the amount without what the periods before overspent. May be negative.
	Granted map[string]*big.Int
}

// Accounts returns for each period of a queue's budget, in order of begin, what was spent of it until an epoch. With carry, what a period
// overspends is taken from the next.
func (l *Ledger) Accounts(queue string, carry bool, periods []Period, epoch int64) []Account {
	out := make([]Account, len(periods))
	for i, p := range periods {
		a := Account{Period: p, From: l.EpochOf(p.Begin), To: epoch, Spent: map[string]int64{}, Granted: map[string]*big.Int{}}
		if i+1 < len(periods) {
			a.To = min(a.To, l.EpochOf(periods[i+1].Begin))
		}
		a.To = max(a.From, a.To)
		spent := l.spent(queue, a.From, a.To)
		for name, amount := range p.Amount {
			granted := big.NewInt(amount)
			if d, known := l.dimension[name]; known {
				a.Spent[name] = spent[d].over(l.quantum(name), 0)
			}
			if i > 0 && carry {
				granted.Sub(granted, out[i-1].over(name))
			}
			a.Granted[name] = granted
		}
		out[i] = a
	}
	return out
}

// over returns what a period spent beyond its amount, at least 0. A dimension that it does not state was not limited.
func (a *Account) over(name string) *big.Int {
	granted, stated := a.Granted[name]
	if !stated {
		return new(big.Int)
	}
	over := new(big.Int).Sub(big.NewInt(a.Spent[name]), granted)
	if over.Sign() < 0 {
		over.SetInt64(0)
	}
	return over
}

// spent returns what a queue used in some epochs.
func (l *Ledger) spent(queue string, begin, end int64) []sum {
	charges := make([]bool, len(l.lines.list))
	for i := range l.lines.list {
		for _, name := range l.lines.list[i].path {
			charges[i] = charges[i] || name == queue
		}
	}
	out := make([]sum, len(l.dimensions))
	l.each(begin, end, func(_ int64, to int32, x []Amount) {
		if charges[to] {
			for d, a := range x {
				out[d].add(a, 1)
			}
		}
	})
	return out
}

// Users returns who used what of a queue in the epochs from begin to before end, in quantum-seconds: the queues directly below it and, if
// owners are wanted, the owners in it and in all queues below it.
func (l *Ledger) Users(queue string, begin, end int64, owners bool) map[Line][]int64 {
	of := make([][]Line, len(l.lines.list))
	for i := range of {
		own := &l.lines.list[i]
		at := slices.Index(own.path, queue)
		if at > 0 {
			of[i] = append(of[i], Line{Queue: own.path[at-1]})
		}
		if at >= 0 && owners {
			of[i] = append(of[i], Line{Queue: own.path[0], Owner: own.owner, Owned: true})
		}
	}
	totals := sums{}
	l.each(begin, end, func(_ int64, to int32, x []Amount) {
		for _, line := range of[to] {
			s := totals[line]
			if len(s) < len(x) {
				s = append(s, make([]sum, len(x)-len(s))...)
				totals[line] = s
			}
			for d, a := range x {
				s[d].add(a, 1)
			}
		}
	})
	out := make(map[Line][]int64, len(totals))
	for to, s := range totals {
		out[to] = l.inQuanta(s, 0)
	}
	return out
}

// Granted returns what a period of a budget grants, at least 0.
func Granted(a *Account) map[string]int64 {
	out := make(map[string]int64, len(a.Granted))
	for name, granted := range a.Granted {
		out[name] = clip(granted)
	}
	return out
}

// Budget is an amount of usage that a queue may have in each period.
type Budget struct {
	Queue string
	// Hard budgets lower the queue's capability, others its weight with memory.
	Hard bool
	// Free periods do not pay for what the period before overspent.
	Free bool
	// Periods in order of begin.
	Periods []Period
}

// period returns the period that contains an epoch; nil if none does.
func (b *Budget) period(l *Ledger, epoch int64) *Period {
	if n := b.begun(l, epoch); n > 0 {
		return &b.Periods[n-1]
	}
	return nil
}

// begun returns how many periods have begun.
func (b *Budget) begun(l *Ledger, epoch int64) int {
	n := 0
	for n < len(b.Periods) && l.EpochOf(b.Periods[n].Begin) <= epoch {
		n++
	}
	return n
}

// allowance returns what a row states of the current period of a budget, which exists.
func (l *Ledger) allowance(b *Budget, epoch int64) *Allowance {
	accounts := l.Accounts(b.Queue, !b.Free, b.Periods[:b.begun(l, epoch)], epoch)
	last := accounts[len(accounts)-1]
	return &Allowance{Begin: last.Begin, Amount: last.Amount, Granted: Granted(&last), Spent: last.Spent}
}
