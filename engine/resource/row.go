package resource

import (
	"math"
	"slices"
)

// Row is one resource vector. V holds an amount for every dimension, 0 where the dimension is absent; Has is the set of dimensions that are
// present. The zero Row (V == nil) means that no vector is given.
type Row struct {
	V   []float64
	Has Mask
}

// NewRow returns a row of the given width with nothing present.
func NewRow(width int) Row { return Row{V: make([]float64, width)} }

// NewAccount returns a row of zeros with cpu and memory present, as Volcano's EmptyResource.
func NewAccount(width int) Row { return Row{V: make([]float64, width), Has: Base} }

// NewTable returns n rows of the given width in one allocation, each with nothing present.
func NewTable(n, width int) []Row {
	rows, cells := make([]Row, n), make([]float64, n*width)
	for i := range rows {
		rows[i].V = cells[i*width : (i+1)*width : (i+1)*width]
	}
	return rows
}

// NewAccounts returns n rows as NewTable does, each with cpu and memory present.
func NewAccounts(n, width int) []Row {
	rows := NewTable(n, width)
	for i := range rows {
		rows[i].Has = Base
	}
	return rows
}

// Matrix is rows of the same width in memory without pointers, which the garbage collector does not scan.
type Matrix struct {
	cells []float64
	has   []Mask
	width int
}

// NewMatrix returns n rows of zeros with the dimensions of has present.
func NewMatrix(n, width int, has Mask) Matrix {
	m := Matrix{cells: make([]float64, n*width), has: make([]Mask, n), width: width}
	for i := range m.has {
		m.has[i] = has
	}
	return m
}

// Row returns the i-th row. Its amounts are those of the matrix; which dimensions are present is changed by SetHas.
func (m *Matrix) Row(i int) Row {
	from, to := i*m.width, (i+1)*m.width
	return Row{V: m.cells[from:to:to], Has: m.has[i]}
}

// Clone returns a copy that shares nothing with m.
func (m *Matrix) Clone() Matrix { return Matrix{slices.Clone(m.cells), slices.Clone(m.has), m.width} }

// Cells returns the amounts of all rows, one row after the other.
func (m *Matrix) Cells() []float64 { return m.cells }

// SetHas sets which dimensions of the i-th row are present.
func (m *Matrix) SetHas(i int, has Mask) { m.has[i] = has }

// Absent reports whether no vector is given.
func (r Row) Absent() bool { return r.V == nil }

// Clone returns a copy that shares nothing with r. The copy of an absent row is absent.
func (r Row) Clone() Row {
	if r.V == nil {
		return Row{}
	}
	return Row{V: append([]float64(nil), r.V...), Has: r.Has}
}

// CopyFrom makes r equal to o, which has the same width.
func (r *Row) CopyFrom(o Row) {
	copy(r.V, o.V)
	r.Has = o.Has
}

// Clear makes r a row of zeros with exactly the dimensions of has present.
func (r *Row) Clear(has Mask) {
	clear(r.V)
	r.Has = has
}

// Set makes dimension d present with amount x.
func (r *Row) Set(d int, x float64) {
	r.V[d] = x
	r.Has = r.Has.With(d)
}

// Add adds o to r; the dimensions of both are present afterwards. Unlimited plus anything is unlimited.
func (r *Row) Add(o Row) {
	v := r.V[:len(o.V)]
	for d, x := range o.V {
		v[d] += x
	}
	r.Has |= o.Has
}

// AddTimes adds n times o to r.
func (r *Row) AddTimes(o Row, n float64) {
	for m := o.Has; m != 0; m = m.Rest() {
		d := m.First()
		r.V[d] += float64(o.V[d] * n)
	}
	r.Has |= o.Has
}

// Sub subtracts o from r; the dimensions of both are present afterwards and amounts may become negative. Unlimited minus anything is
// unlimited.
func (r *Row) Sub(o Row) {
	for m := o.Has; m != 0; m = m.Rest() {
		if d := m.First(); !math.IsInf(r.V[d], 1) {
			r.V[d] -= o.V[d]
		}
	}
	r.Has |= o.Has
}

// SubWithin subtracts o from r, but only cpu and memory if r names no scalar: Volcano's Resource.Sub on a resource without a map of
// scalars.
func (r *Row) SubWithin(o Row) {
	if r.Has&^Base == 0 {
		o.Has &= Base
	}
	r.Sub(o)
}

// Default is the value of a dimension that a limit does not name.
type Default bool

const (
	// Zero allows nothing.
	Zero Default = false
	// Infinity allows everything.
	Infinity Default = true
)

// Min lowers r to limit in every dimension that r names; it never makes a dimension present. If limit does not name one, missing decides:
// Infinity leaves r's amount, Zero makes it 0. cpu and memory are always compared (Volcano's MinDimensionResource).
func (r *Row) Min(limit Row, missing Default) {
	for m := r.Has; m != 0; m = m.Rest() {
		d := m.First()
		if !limit.Has.Has(d) && missing == Infinity && d > Memory {
			continue
		}
		if limit.V[d] < r.V[d] {
			r.V[d] = limit.V[d]
		}
	}
}

// Max raises r to o in every dimension of o, making them present (Volcano's SetMaxResource).
func (r *Row) Max(o Row) {
	for m := o.Has; m != 0; m = m.Rest() {
		if d := m.First(); !r.Has.Has(d) || o.V[d] > r.V[d] {
			r.V[d] = o.V[d]
		}
	}
	r.Has |= o.Has
}

// SetExceeded makes r the part of left that exceeds right: cpu and memory are floored at 0, a scalar that does not strictly exceed is
// absent (Volcano's ExceededPart, which is Diff's first result). A dimension that right does not name counts as 0 there. r may be left.
func (r *Row) SetExceeded(left, right Row) {
	has := Base
	for d := range r.V {
		x := 0.0
		if left.Has.Has(d) && left.V[d] > right.V[d] {
			x = left.V[d]
			if !math.IsInf(x, 1) {
				x -= right.V[d]
			}
			has = has.With(d)
		}
		r.V[d] = x
	}
	r.Has = has
}

// IsFinite reports whether no amount is unlimited.
func (r Row) IsFinite() bool {
	for _, x := range r.V {
		if math.IsInf(x, 1) {
			return false
		}
	}
	return true
}

// FloorAtZero raises negative amounts to 0; presence stays.
func (r *Row) FloorAtZero() {
	for d, x := range r.V {
		if x < 0 {
			r.V[d] = 0
		}
	}
}

// Covers reports whether r is at most limit in every dimension of r, with the absolute tolerance Threshold; a dimension that limit does not
// name is 0 there (Volcano's LessEqual with Zero).
func Covers(limit, r Row) bool { return FirstUncovered(limit, r) < 0 }

// FirstUncovered returns the first dimension in which r exceeds limit by Threshold or more, or -1.
func FirstUncovered(limit, r Row) int {
	for m := r.Has; m != 0; m = m.Rest() {
		if d := m.First(); r.V[d]-limit.V[d] >= Threshold {
			return d
		}
	}
	return -1
}

// Uncovered returns all dimensions in which r exceeds limit by Threshold or more.
func Uncovered(limit, r Row) Mask {
	var over Mask
	for m := r.Has; m != 0; m = m.Rest() {
		d := m.First()
		over |= only(d, r.V[d]-limit.V[d] >= Threshold)
	}
	return over
}

// only returns the set of dimension d if the condition holds, and the empty set otherwise, without a branch: the processor cannot predict
// in which dimensions amounts exceed others.
func only(d int, holds bool) Mask {
	var m Mask
	if holds {
		m = 1
	}
	return m << (uint(d) & 63)
}

// Exceeding returns the dimensions of mask in which used + asked is strictly above limit, without tolerance, among those with asked > 0; a
// dimension that limit does not name is 0 there (Volcano's LessEqualWithDimensionAndResourcesName, negated).
func Exceeding(limit, used, asked Row, mask Mask) Mask {
	var over Mask
	for m := asked.Has & mask; m != 0; m = m.Rest() {
		if d := m.First(); asked.V[d] > 0 && used.V[d]+asked.V[d] > limit.V[d] {
			over = over.With(d)
		}
	}
	return over
}

// Equal reports whether two rows name the same dimensions with exactly the same amounts.
func Equal(l, r Row) bool {
	if l.Has != r.Has {
		return false
	}
	for d, x := range l.V {
		if x != r.V[d] {
			return false
		}
	}
	return true
}

// IsEmpty reports whether every amount outside ignored is below Threshold (Volcano's IsEmpty ignores `pods`).
func (r Row) IsEmpty(ignored Mask) bool {
	for m := r.Has &^ ignored; m != 0; m = m.Rest() {
		if r.V[m.First()] >= Threshold {
			return false
		}
	}
	return true
}

// Positive returns the dimensions with an amount above 0.
func (r Row) Positive() Mask {
	var positive Mask
	for m := r.Has; m != 0; m = m.Rest() {
		d := m.First()
		positive |= only(d, r.V[d] > 0)
	}
	return positive
}

// AtLeastThreshold returns the dimensions with an amount of Threshold or more.
func (r Row) AtLeastThreshold() Mask {
	var some Mask
	for m := r.Has; m != 0; m = m.Rest() {
		d := m.First()
		some |= only(d, r.V[d] >= Threshold)
	}
	return some
}

// DominantShare returns the largest ratio of used to base over the dimensions of mask, and its dimension; (0, -1) if no ratio is above 0.
// Among equal ratios the first dimension wins. Callers must exclude dimensions from mask whose base is not a valid divisor. An unlimited
// base makes a ratio of 0, or none if so much is used: NaN is not above any share.
func DominantShare(used, base Row, mask Mask) (float64, int) {
	share, dominant := 0.0, -1
	for m := mask; m != 0; m = m.Rest() {
		d := m.First()
		if ratio := used.V[d] / base.V[d]; ratio > share {
			share, dominant = ratio, d
		}
	}
	return share, dominant
}
