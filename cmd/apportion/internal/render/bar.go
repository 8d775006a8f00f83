package render

import (
	"fmt"
	"math"
	"strings"
)

// glyphs are the characters of bars.
type glyphs struct {
	full, empty, mark string
	// parts are eighths of full, without none and all.
	parts []string
}

func (s Style) glyphs() glyphs {
	if s.ASCII {
		return glyphs{full: "#", empty: ".", mark: "|"}
	}
	return glyphs{full: "█", empty: "░", mark: "│", parts: []string{"▏", "▎", "▍", "▌", "▋", "▊", "▉"}}
}

// Bar shows in so many columns how much of a bound is used: the mark stands where the bound is, and what is used beyond it lies behind the
// mark. The percentage follows.
func (s Style) Bar(used, bound float64, columns int) string {
	g := s.glyphs()
	switch {
	case math.IsInf(bound, 1):
		return strings.Repeat(g.empty, columns-1) + g.mark + " no bound"
	case bound <= 0 && used <= 0:
		return ""
	case bound <= 0:
		return g.mark + strings.Repeat(g.full, columns-1) + " none deserved"
	}
	percent := fmt.Sprintf(" %3.0f%%", 100*used/bound)
	if used <= bound {
		return s.fill(columns-1, used/bound) + g.mark + percent
	}
	within := max(1, int(math.Round(float64(columns-1)*bound/used)))
	within = min(within, columns-2)
	return strings.Repeat(g.full, within) + g.mark + strings.Repeat(g.full, columns-1-within) + percent
}

// Gauge shows a part of a whole without a mark.
func (s Style) Gauge(part, whole float64, columns int) string {
	if whole <= 0 || math.IsInf(whole, 1) {
		return s.fill(columns, 0)
	}
	return s.fill(columns, min(part/whole, 1))
}

// fill fills a fraction of so many columns.
func (s Style) fill(columns int, fraction float64) string {
	g := s.glyphs()
	fraction = max(0, fraction)
	if len(g.parts) == 0 {
		filled := int(math.Round(fraction * float64(columns)))
		return strings.Repeat(g.full, filled) + strings.Repeat(g.empty, columns-filled)
	}
	eighths := int(math.Round(fraction * float64(columns) * 8))
	text := strings.Repeat(g.full, eighths/8)
	rest := columns - eighths/8
	if eighths%8 > 0 {
		text += g.parts[eighths%8-1]
		rest--
	}
	return text + strings.Repeat(g.empty, rest)
}
