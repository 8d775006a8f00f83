package main

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
)

// The size of the plot of one policy.
const (
	square, gap, edge, head = 150.0, 40.0, 44.0, 30.0
	plotHeight              = head + square + 66
)

// colors are those of the traces, and their dashes tell them apart without colour.
var (
	colors = []string{"#3182bd", "#e6550d", "#31a354", "#756bb1", "#636363", "#b5930a"}
	dashes = []string{"", "7 3", "2 2", "9 3 2 3", "4 4", "1 3"}
)

// draw writes a plot of the chances that were stated against the shares that held, a square for each policy with a line for each trace.
func draw(file string, rows []*row) error {
	var b strings.Builder
	var names, traces []string
	for _, r := range rows {
		if !slices.Contains(names, r.policy) {
			names = append(names, r.policy)
		}
		if !slices.Contains(traces, r.trace) {
			traces = append(traces, r.trace)
		}
	}
	width := edge + float64(len(names))*(square+gap)
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" width=\"%g\" "+
		"font-family=\"sans-serif\" font-size=\"12\">\n", width, plotHeight, width)
	fmt.Fprintln(&b, "<title>The chance stated for a start against the share of starts that came by then, for each policy and trace; "+
		"the diagonal is exact</title>")
	fmt.Fprintf(&b, "<rect width=\"%g\" height=\"%g\" fill=\"#ffffff\"/>\n", width, plotHeight)
	for i, name := range names {
		left := edge + float64(i)*(square+gap)
		frame(&b, left, name, i == 0)
		for _, r := range rows {
			if r.policy == name {
				k := slices.Index(traces, r.trace) % len(colors)
				fmt.Fprintf(&b, "<polyline points=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\" stroke-dasharray=\"%s\"/>\n",
					points(&r.score, left), colors[k], dashes[k])
			}
		}
	}
	for i, name := range traces {
		left, k := edge+float64(i)*120, i%len(colors)
		fmt.Fprintf(&b, "<path d=\"M%g %gH%g\" stroke=\"%s\" stroke-width=\"1.5\" stroke-dasharray=\"%s\"/>\n",
			left, plotHeight-16, left+28, colors[k], dashes[k])
		fmt.Fprintf(&b, "<text x=\"%g\" y=\"%g\">%s</text>\n", left+34, plotHeight-12, name)
	}
	b.WriteString("</svg>\n")
	return os.WriteFile(file, []byte(b.String()), 0o644) //nolint:gosec // It is a picture for a document.
}

// frame draws the axes of a policy and the diagonal.
func frame(b *strings.Builder, left float64, name string, first bool) {
	fmt.Fprintf(b, "<text x=\"%g\" y=\"%g\" text-anchor=\"middle\" font-weight=\"bold\">%s</text>\n", left+square/2, head-12, name)
	fmt.Fprintf(b, "<rect x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\" fill=\"none\" stroke=\"#999999\"/>\n", left, head, square, square)
	fmt.Fprintf(b, "<path d=\"M%g %gL%g %g\" stroke=\"#333333\" stroke-dasharray=\"4 3\"/>\n", left, head+square, left+square, head)
	for _, at := range []float64{0, 0.5, 1} {
		fmt.Fprintf(b, "<text x=\"%g\" y=\"%g\" text-anchor=\"middle\" fill=\"#555555\">%.0f %%</text>\n",
			left+at*square, head+square+16, 100*at)
		if first {
			fmt.Fprintf(b, "<text x=\"%g\" y=\"%g\" text-anchor=\"end\" fill=\"#555555\">%.0f %%</text>\n",
				left-5, head+square*(1-at)+4, 100*at)
		}
	}
}

// points are the places of a line, one for each level.
func points(s *score, left float64) string {
	var list []string
	for i := range s.held {
		if part := s.held[i].part; !math.IsNaN(part) {
			list = append(list, fmt.Sprintf("%.1f,%.1f", left+square*float64(i+1)/(levels+1), head+square*(1-part)))
		}
	}
	return strings.Join(list, " ")
}
