package model

import "github.com/apportion/apportion/engine/resource"

// slab allocates rows from large pieces of memory. A reset frees all of them.
type slab struct {
	pieces   [][]float64
	at, used int
}

// The sizes of the first and of the largest piece, in amounts. Each piece is twice as large as the one before, so that small models stay
// small.
const (
	firstCells = 512
	slabCells  = 8 << 10
)

// row returns a row of zeros with the given dimensions present.
func (s *slab) row(width int, has resource.Mask) resource.Row {
	if s.at < len(s.pieces) && s.used+width > len(s.pieces[s.at]) {
		s.at, s.used = s.at+1, 0
	}
	if s.at == len(s.pieces) {
		s.pieces = append(s.pieces, make([]float64, min(firstCells<<min(s.at, 8), slabCells)))
	}
	v := s.pieces[s.at][s.used : s.used+width : s.used+width]
	s.used += width
	clear(v)
	return resource.Row{V: v, Has: has}
}

// clone returns a copy of a row.
func (s *slab) clone(r resource.Row) resource.Row {
	c := s.row(len(r.V), r.Has)
	copy(c.V, r.V)
	return c
}

func (s *slab) reset() { s.at, s.used = 0, 0 }

// accountStore is the memory of accounts.
type accountStore struct {
	accounts   []Account
	cells      []float64
	counts     [][NumStatus]int32
	bestEffort []int32
}

// rowsOfAccount is the number of rows in an account.
const rowsOfAccount = 4

// open returns empty accounts of the given adjacent jobs.
func (s *accountStore) open(jobs []Job, groups, width int) []Account {
	s.accounts, s.cells = zeroed(s.accounts, len(jobs)), zeroed(s.cells, rowsOfAccount*len(jobs)*width)
	s.counts, s.bestEffort = zeroed(s.counts, groups), zeroed(s.bestEffort, groups)
	first := GroupID(0)
	if len(jobs) > 0 {
		first = jobs[0].FirstGroup
	}
	for i := range s.accounts {
		s.lay(&s.accounts[i], i, width)
		s.end(i, int(jobs[i].FirstGroup-first), int(jobs[i].EndGroup-first)) //nolint:gosec // G602: there is an account for each job.
	}
	return s.accounts
}

// zeroed returns n zero values, in the memory of list if it is large enough.
func zeroed[T any](list []T, n int) []T {
	if cap(list) < n {
		return make([]T, n)
	}
	list = list[:n]
	clear(list)
	return list
}
