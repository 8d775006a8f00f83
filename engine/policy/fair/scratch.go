package fair

import "github.com/apportion/apportion/engine/resource"

// scratch is working memory of single questions.
type scratch struct {
	// request is a sum of requests within the plugin, asked one that a question is about.
	request, asked []int64
	trial          trial
	// rows are those of a share.
	rows []resource.Row
	// supposed is nil until it is first needed.
	supposed *supposed
	exceeded []excess
}

// supposed is a division that is only supposed.
type supposed struct {
	column *column
	// giving and beyond have an amount for each place.
	giving, beyond []int64
}

// suppose returns working memory with the settings of a dimension.
func (s *State) suppose(d int) *supposed {
	of, n := &s.division.columns[d], s.tree.len()
	if s.scratch.supposed == nil {
		cells := make([]int64, 2*n)
		s.scratch.supposed = &supposed{of.separate(n), cells[:n:n], cells[n:]}
	}
	s.scratch.supposed.column.follow(of)
	return s.scratch.supposed
}

func (s *scratch) open(width int) {
	cells := make([]int64, 2*width)
	s.request, s.asked = cells[:width:width], cells[width:]
}
