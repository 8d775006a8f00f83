package fair

import "github.com/apportion/apportion/engine/resource"

// scratch is working memory of single questions.
type scratch struct {
	// request is a sum of requests within the plugin, asked one that a question is about.
	request, asked []int64
	trial          trial
	marked         []bool
	// rows are those of a share.
	rows []resource.Row
}

func (s *scratch) open(width int) {
	cells := make([]int64, 2*width)
	s.request, s.asked = cells[:width:width], cells[width:]
}

// marks returns n marks, none of them set, which are valid until the next call.
func (s *scratch) marks(n int) []bool {
	if s.marked == nil {
		s.marked = make([]bool, n)
	}
	clear(s.marked)
	return s.marked
}
