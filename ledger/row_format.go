package ledger

import (
	"maps"
	"slices"
)

func (r *Row) write() *writer {
	w := &writer{}
	w.signed(r.Epoch)
	w.vector(r.Offered)
	for _, m := range []map[string][]int64{r.Queues, r.Starting} {
		w.vectors(m)
	}
	w.owners(r.Owners)
	w.allowances(r.Budgets)
	w.owners(r.StartingOwners)
	return w
}

func (w *writer) owners(m map[string]map[string][]int64) {
	w.unsigned(uint64(len(m)))
	for _, queue := range slices.Sorted(maps.Keys(m)) {
		w.text(queue)
		w.vectors(m[queue])
	}
}

func (w *writer) vectors(m map[string][]int64) {
	w.unsigned(uint64(len(m)))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		w.text(name)
		w.vector(m[name])
	}
}

func readRow(r *reader) *Row {
	row := &Row{Epoch: r.signed(), Offered: r.vector()}
	row.Queues, row.Starting = r.vectors(), r.vectors()
	row.Owners, row.Budgets = r.owners(), r.allowances()
	// A row that was written before owners could start with usage ends here.
	if len(r.data) > 0 {
		if owners := r.owners(); len(owners) > 0 {
			row.StartingOwners = owners
		}
	}
	return row
}

func (r *reader) owners() map[string]map[string][]int64 {
	m := map[string]map[string][]int64{}
	for range r.count() {
		queue := r.text()
		m[queue] = r.vectors()
	}
	return m
}

func (r *reader) vectors() map[string][]int64 {
	m := map[string][]int64{}
	for range r.count() {
		name := r.text()
		m[name] = r.vector()
	}
	return m
}

// widest returns the greatest length of a vector of the row.
func (r *Row) widest() int {
	n := len(r.Offered)
	widen := func(m map[string][]int64) {
		for _, v := range m {
			n = max(n, len(v))
		}
	}
	for _, m := range []map[string][]int64{r.Queues, r.Starting} {
		widen(m)
	}
	for _, all := range []map[string]map[string][]int64{r.Owners, r.StartingOwners} {
		for _, m := range all {
			widen(m)
		}
	}
	return n
}

func (w *writer) allowances(m map[string]*Allowance) {
	w.unsigned(uint64(len(m)))
	for _, queue := range slices.Sorted(maps.Keys(m)) {
		a := m[queue]
		w.text(queue)
		w.signed(a.Begin)
		for _, amounts := range []map[string]int64{a.Amount, a.Granted, a.Spent} {
			w.unsigned(uint64(len(amounts)))
			for _, name := range slices.Sorted(maps.Keys(amounts)) {
				w.text(name)
				w.signed(amounts[name])
			}
		}
	}
}

func (r *reader) allowances() map[string]*Allowance {
	m := map[string]*Allowance{}
	for range r.count() {
		queue := r.text()
		a := &Allowance{Begin: r.signed()}
		for _, amounts := range []*map[string]int64{&a.Amount, &a.Granted, &a.Spent} {
			*amounts = map[string]int64{}
			for range r.count() {
				name := r.text()
				(*amounts)[name] = r.signed()
			}
		}
		m[queue] = a
	}
	return m
}
