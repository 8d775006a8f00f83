package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/apportion/apportion/cmd/apportion/internal/rehearsal"
)

// The size of a plot in units of its view box: of the whole plot, and of the area with curves and bars.
const (
	plotWidth, plotHeight = 760.0, 260.0
	left, right           = 56.0, 748.0
	top, bottom           = 26.0, 228.0
)

// plot is a drawing and a table with the same content.
type plot struct {
	ID, Title, About string
	Width, Height    float64
	// Ticks are the lines of the scale.
	X, Y []tick
	// XUnit and YUnit name the axes.
	XUnit, YUnit string
	Curves       []curve
	Bars         []bar
	Legend       []key
	Table        section
}

// tick is a labelled line of a scale.
type tick struct {
	At   float64
	Text string
}

// curve is a line with the class of its colour. Dashed curves show entitlements.
type curve struct {
	Color  int
	Dashed bool
	Points string
	Name   string
}

// bar is a rectangle with its value.
type bar struct {
	X, Y, Width, Height float64
	Color               int
	Name, Value         string
}

// key explains a colour.
type key struct {
	Color  int
	Dashed bool
	Name   string
}

// colors is the number of colours; they repeat.
const colors = 8

func at(x float64) string { return strconv.FormatFloat(math.Round(x*10)/10, 'f', -1, 64) }

// nice returns round numbers from 0 to at least most, about n of them.
func nice(most float64, n int) []float64 {
	if most <= 0 {
		return []float64{0, 1}
	}
	step := math.Pow(10, math.Floor(math.Log10(most/float64(n))))
	for _, m := range []float64{1, 2, 2.5, 5, 10} {
		if float64(step*m)*float64(n) >= most {
			step *= m
			break
		}
	}
	list := []float64{0}
	for x := step; list[len(list)-1] < most*(1-1e-9); x = float64(step * float64(len(list))) {
		list = append(list, x)
	}
	return list
}

// vertical adds the scale of the vertical axis and returns its end.
func (p *plot) vertical(most float64, text func(float64) string) float64 {
	const lines = 4
	list := nice(most, lines)
	end := list[len(list)-1]
	for _, x := range list {
		p.Y = append(p.Y, tick{bottom - (bottom-top)*x/end, text(x)})
	}
	return end
}

// times adds the scale of time, in seconds from one moment to another.
func (p *plot) times(from, to int64) {
	const lines = 8
	unit, name := float64(hour), "hours"
	if to-from > 3*day {
		unit, name = day, "days"
	}
	p.XUnit = name + " since the first arrival"
	length := float64(to-from) / unit
	for _, x := range nice(length, lines) {
		if x <= length*(1+1e-9) {
			p.X = append(p.X, tick{left + (right-left)*x/length, strconv.FormatFloat(x, 'g', 4, 64)})
		}
	}
}

// line draws values over steps of time.
func line(values []float64, start, step, from, to int64, end float64) string {
	var b strings.Builder
	for i, v := range values {
		middle := float64(start-from) + (float64(i)+.5)*float64(step)
		x := left + (right-left)*min(middle/float64(max(to-from, 1)), 1)
		fmt.Fprintf(&b, "%s,%s ", at(x), at(bottom-(bottom-top)*min(v/end, 1)))
	}
	return strings.TrimSpace(b.String())
}

// plots returns all drawings.
func (r *Report) plots() []plot {
	list := []plot{r.waitBars("plot-queues", "Mean wait of the jobs of each queue", r.queueNames(), queueWait)}
	var classes []string
	for i := range r.Runs[0].Classes {
		classes = append(classes, r.Runs[0].Classes[i].Name)
	}
	list = append(list, r.waitBars("plot-classes", "Mean wait by size of jobs, in "+r.Unit()+"s", classes, classWait), r.fairness())
	most, from, to := r.scale()
	for i := range r.Runs {
		list = append(list, r.shares(i, most, from, to), r.decayed(i))
	}
	return list
}

func queueWait(run *rehearsal.Result, name string) (float64, bool) {
	for i := range run.Queues {
		if run.Queues[i].Name == name {
			return run.Queues[i].Waits.Mean, true
		}
	}
	return 0, false
}

func classWait(run *rehearsal.Result, name string) (float64, bool) {
	for i := range run.Classes {
		if run.Classes[i].Name == name {
			return run.Classes[i].Waits.Mean, true
		}
	}
	return 0, false
}

// waitBars draws a group of bars for each name, with a bar for each run. If there are too many to distinguish, it draws the first ones.
func (r *Report) waitBars(id, title string, names []string, wait func(*rehearsal.Result, string) (float64, bool)) plot {
	const mostGroups = 12
	p := plot{ID: id, Title: title, Width: plotWidth, Height: plotHeight, YUnit: "hours"}
	p.Table = section{Title: title, Names: 1, Head: []string{""}}
	for _, run := range r.Runs {
		p.Table.Head = append(p.Table.Head, run.Name)
	}
	most := 0.0
	for _, name := range names {
		row := []string{name}
		for _, run := range r.Runs {
			seconds, ok := wait(run, name)
			most = max(most, seconds)
			cell := "–"
			if ok {
				cell = Span(seconds)
			}
			row = append(row, cell)
		}
		p.Table.Rows = append(p.Table.Rows, row)
	}
	if len(names) > mostGroups {
		p.About = fmt.Sprintf("The first %d of %d are drawn; the table has all.", mostGroups, len(names))
		names = names[:mostGroups]
	}
	unit := float64(hour)
	if most < 2*hour {
		unit, p.YUnit = minute, "minutes"
	}
	end := p.vertical(most/unit, func(x float64) string { return strconv.FormatFloat(x, 'g', 4, 64) }) * unit
	group := (right - left) / float64(max(len(names), 1))
	width := min(group*.8/float64(len(r.Runs)), 48)
	for i, name := range names {
		middle := left + group*(float64(i)+.5)
		p.X = append(p.X, tick{middle, brief(name)})
		for k, run := range r.Runs {
			seconds, _ := wait(run, name)
			height := (bottom - top) * seconds / end
			p.Bars = append(p.Bars, bar{
				X: middle + width*(float64(k)-float64(len(r.Runs))/2), Y: bottom - height, Width: max(width-2, 1), Height: height,
				Color: k % colors, Name: name + ", " + run.Name, Value: Span(seconds),
			})
		}
	}
	p.Legend = r.runKeys()
	return p
}

// brief shortens a name that would overlap the next one.
func brief(name string) string {
	const most = 14
	if runes := []rune(name); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return name
}

func (r *Report) runKeys() []key {
	var keys []key
	for k, run := range r.Runs {
		keys = append(keys, key{Color: k % colors, Name: run.Name})
	}
	return keys
}

// scale contains the common scale of plots over time: the largest value, and the first and last time.
func (r *Report) scale() (most float64, from, to int64) {
	from, to = r.Trace.First, r.Trace.First+1
	for _, run := range r.Runs {
		to = max(to, run.Series.Start+run.Series.Step*int64(len(run.Series.Fairness)))
		for _, q := range run.Series.Queues {
			for i := range q.Used {
				most = max(most, q.Used[i], q.Entitled[i])
			}
		}
	}
	return most, from, to
}

// fairness draws the index over time.
func (r *Report) fairness() plot {
	_, from, to := r.scale()
	p := plot{
		ID: "plot-fairness", Title: "Fairness over time", Width: plotWidth, Height: plotHeight, YUnit: "Jain's index",
		About: "1: every queue that wants something has the same part of what it is entitled to.", Legend: r.runKeys(),
	}
	p.times(from, to)
	p.vertical(1, func(x float64) string { return strconv.FormatFloat(x, 'g', 3, 64) })
	for k, run := range r.Runs {
		s := &run.Series
		p.Curves = append(p.Curves, curve{Color: k % colors, Points: line(s.Fairness, s.Start, s.Step, from, to, 1), Name: run.Name})
	}
	p.Table = r.overTime(p.Title, from, to, func(head *[]string, value *[]sampled) {
		for _, run := range r.Runs {
			*head = append(*head, run.Name)
			*value = append(*value, sampled{run.Series.Fairness, run.Series.Start, run.Series.Step, third})
		}
	})
	return p
}

// shares draws the usage and the entitlement of each queue over time.
func (r *Report) shares(i int, most float64, from, to int64) plot {
	run := r.Runs[i]
	p := plot{
		ID: "plot-run-" + strconv.Itoa(i), Title: run.Name + ": " + r.Unit() + "s of each queue", Width: plotWidth, Height: plotHeight,
		YUnit: r.Unit() + "s", About: "Solid: in use. Dashed: what the queue is entitled to, at most what it wants.",
	}
	p.times(from, to)
	end := p.vertical(most, func(x float64) string { return strconv.FormatFloat(x, 'g', 4, 64) })
	s := &run.Series
	for k, q := range s.Queues {
		p.Curves = append(p.Curves,
			curve{Color: k % colors, Dashed: true, Points: line(q.Entitled, s.Start, s.Step, from, to, end), Name: q.Name + ", entitled"},
			curve{Color: k % colors, Points: line(q.Used, s.Start, s.Step, from, to, end), Name: q.Name + ", in use"})
		p.Legend = append(p.Legend, key{Color: k % colors, Name: q.Name})
	}
	p.Table = r.overTime(p.Title+", in use / entitled to", from, to, func(head *[]string, value *[]sampled) {
		for k := range s.Queues {
			*head = append(*head, s.Queues[k].Name)
			for _, values := range [][]float64{s.Queues[k].Used, s.Queues[k].Entitled} {
				*value = append(*value, sampled{values, s.Start, s.Step, tenth})
			}
		}
	})
	return p
}

// sampled is a series that a table shows.
type sampled struct {
	values      []float64
	start, step int64
	text        func(float64) string
}

// overTime returns a table of some moments. Series beyond one for each heading are shown in pairs.
func (r *Report) overTime(title string, from, to int64, list func(*[]string, *[]sampled)) section {
	const rows = 12
	s := section{Title: title, Names: 1, Head: []string{"after"}}
	var values []sampled
	list(&s.Head, &values)
	pairs := len(values) > len(s.Head)-1
	for row := range int64(rows) {
		moment := (to - from) * (2*row + 1) / (2 * rows)
		cells := []string{Span(float64(moment))}
		for k := range values {
			v := &values[k]
			text := "–"
			if i := (moment + from - v.start) / v.step; i >= 0 && i < int64(len(v.values)) {
				text = v.text(v.values[i])
			}
			if pairs && k%2 == 1 {
				cells[len(cells)-1] += " / " + text
				continue
			}
			cells = append(cells, text)
		}
		s.Rows = append(s.Rows, cells)
	}
	return s
}
