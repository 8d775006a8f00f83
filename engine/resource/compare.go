package resource

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
