package odds

// end is when a job ends, unless its version has changed by then.
type end struct {
	at      int64
	job     int32
	version int32
}

func (e end) before(o end) bool { return e.at < o.at || e.at == o.at && e.job < o.job }

// ends is a heap, the next end on top.
type ends []end

func (h ends) next() int64 {
	if len(h) == 0 {
		return Never
	}
	return h[0].at
}

// order makes a heap of ends in any order.
func (h ends) order() {
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.sink(i)
	}
}

func (h ends) sink(i int) {
	for {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(h); c++ {
			if h[c].before(h[least]) {
				least = c
			}
		}
		if least == i {
			return
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}

func (h *ends) push(e end) {
	*h = append(*h, e)
	list := *h
	for i := len(list) - 1; i > 0 && list[i].before(list[(i-1)/2]); i = (i - 1) / 2 {
		list[i], list[(i-1)/2] = list[(i-1)/2], list[i]
	}
}

func (h *ends) pop() end {
	list := *h
	first, last := list[0], len(list)-1
	list[0] = list[last]
	*h = list[:last]
	h.sink(0)
	return first
}
