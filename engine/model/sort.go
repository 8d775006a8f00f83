package model

import "slices"

// sortUnless sorts list; if stop, which may be nil, returns true, the order is undefined. compare never returns 0.
//
// The pieces that it sorts and then merges are small enough for stop to be asked every few milliseconds.
func sortUnless[T any](list []T, stop func() bool, compare func(l, r T) int) {
	const piece = 8 << 10
	if stop == nil || len(list) <= piece {
		slices.SortFunc(list, compare)
		return
	}
	for from := 0; from < len(list); from += piece {
		if stop() {
			return
		}
		slices.SortFunc(list[from:min(from+piece, len(list))], compare)
	}
	given, scratch := list, make([]T, len(list))
	for width := piece; width < len(list); width *= 2 {
		for from := 0; from < len(list); from += 2 * width {
			middle, to := min(from+width, len(list)), min(from+2*width, len(list))
			if !merge(scratch[from:to], list[from:middle], list[middle:to], stop, compare) {
				return
			}
		}
		list, scratch = scratch, list
	}
	if &list[0] != &given[0] {
		copy(given, list)
	}
}

// merge merges two sorted lists, or returns false if stop returns true.
func merge[T any](into, l, r []T, stop func() bool, compare func(l, r T) int) bool {
	for i := range into {
		if pollEach(stop, i) {
			return false
		}
		if len(r) == 0 || len(l) > 0 && compare(l[0], r[0]) <= 0 {
			into[i], l = l[0], l[1:]
		} else {
			into[i], r = r[0], r[1:]
		}
	}
	return true
}
