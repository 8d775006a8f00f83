package main

import (
	"fmt"
	"io"
	"strings"
)

// The plot is a table of small charts: a row for each policy, a column for each queue. All have the same axes, so that the eye can
// compare along both.
const (
	chartWidth, chartHeight = 300.0, 110.0
	gapX, gapY              = 28.0, 26.0
	marginLeft, marginTop   = 150.0, 64.0
	marginBottom            = 40.0
)

// colours of the queues: three that colour-blind readers can distinguish too.
var colours = []string{"#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"}

// axes turn hours and GPUs into points of one chart.
type axes struct {
	left, top float64
	end, gpus int64
}

func (a axes) x(second int64) float64 { return a.left + chartWidth*float64(second)/float64(a.end) }
func (a axes) y(gpus float64) float64 { return a.top + chartHeight*(1-gpus/float64(a.gpus)) }

// plotShares draws what each queue has (filled), is entitled to (line) and wants (dotted), and when it lost tasks (ticks).
func plotShares(w io.Writer, c *Cluster, results []*Result) {
	end := int64(0)
	for _, result := range results {
		end = max(end, (result.end()/hour+1)*hour)
	}
	width := marginLeft + float64(len(c.Queues))*(chartWidth+gapX)
	height := marginTop + float64(len(results))*(chartHeight+gapY) + marginBottom
	fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="sans-serif" font-size="12">`+"\n",
		width, height)
	fmt.Fprintf(w, `<title>GPUs of each queue over the day, under each policy</title>`+"\n")
	fmt.Fprintf(w, `<rect width="100%%" height="100%%" fill="white"/>`+"\n")
	for q := range c.Queues {
		x := marginLeft + float64(q)*(chartWidth+gapX) + chartWidth/2
		fmt.Fprintf(w, `<text x="%.1f" y="26" text-anchor="middle" font-size="15" fill="%s">%s</text>`+"\n", x, colour(q), c.Queues[q].Name)
		fmt.Fprintf(w, `<text x="%.1f" y="46" text-anchor="middle" fill="#555">weight %d, deserved %d GPUs</text>`+"\n",
			x, c.Queues[q].Weight, c.Queues[q].Deserved)
	}
	for row, result := range results {
		top := marginTop + float64(row)*(chartHeight+gapY)
		fmt.Fprintf(w, `<text x="12" y="%.1f" font-size="14">%s</text>`+"\n", top+chartHeight/2, result.Policy)
		for q := range c.Queues {
			plotChart(w, axes{left: marginLeft + float64(q)*(chartWidth+gapX), top: top, end: end, gpus: c.gpus()}, result, c, q)
		}
	}
	fmt.Fprintf(w, `<text x="%.0f" y="%.1f" fill="#555">filled: GPUs in use; line: entitled to by weight; dotted: wanted `+
		`(cut off at the size of the cluster); red ticks: tasks evicted</text>`+"\n", marginLeft, height-14)
	fmt.Fprintln(w, "</svg>")
}

func colour(queue int) string { return colours[queue%len(colours)] }

func plotChart(w io.Writer, a axes, result *Result, c *Cluster, q int) {
	fmt.Fprintf(w, `<rect x="%.1f" y="%.1f" width="%.0f" height="%.0f" fill="none" stroke="#bbb"/>`+"\n",
		a.left, a.top, chartWidth, chartHeight)
	for _, gpus := range []int64{0, a.gpus / 2, a.gpus} {
		fmt.Fprintf(w, `<text x="%.1f" y="%.1f" text-anchor="end" font-size="9" fill="#777">%d</text>`+"\n",
			a.left-4, a.y(float64(gpus))+3, gpus)
	}
	for moment := int64(0); moment <= a.end; moment += 6 * hour {
		fmt.Fprintf(w, `<text x="%.1f" y="%.1f" text-anchor="middle" font-size="9" fill="#777">%d h</text>`+"\n",
			a.x(moment), a.top+chartHeight+12, moment/hour)
	}
	used := a.steps(result, func(s *Sample) float64 { return float64(s.Queues[q].Used) })
	fmt.Fprintf(w, `<path d="M%.1f %.1f%sV%.1fZ" fill="%s" fill-opacity="0.55"/>`+"\n", a.left, a.y(0), used, a.y(0), colour(q))
	wanted := a.steps(result, func(s *Sample) float64 { return float64(min(s.Queues[q].Wanted, a.gpus)) })
	fmt.Fprintf(w, `<path d="M%.1f %.1f%s" fill="none" stroke="#999" stroke-dasharray="1 3"/>`+"\n", a.left, a.y(0), wanted)
	entitled := a.steps(result, func(s *Sample) float64 { return s.Queues[q].Entitled })
	fmt.Fprintf(w, `<path d="M%.1f %.1f%s" fill="none" stroke="#222"/>`+"\n", a.left, a.y(0), entitled)
	for _, e := range result.Evictions {
		if e.Queue == c.Queues[q].Name {
			fmt.Fprintf(w, `<path d="M%.1f %.1fv8" stroke="#d00"/>`+"\n", a.x(e.At), a.top)
		}
	}
}

// steps is the path of a quantity that holds from each sample to the next; equal neighbours make one step.
func (a axes) steps(result *Result, quantity func(*Sample) float64) string {
	var path strings.Builder
	last := 0.0
	for i := range result.Samples {
		value := quantity(&result.Samples[i])
		if value == last {
			continue
		}
		fmt.Fprintf(&path, "H%.1fV%.1f", a.x(result.Samples[i].At), a.y(value))
		last = value
	}
	fmt.Fprintf(&path, "H%.1f", a.x(result.end()))
	return path.String()
}
