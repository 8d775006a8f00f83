package report

import (
	_ "embed"
	"html/template"
	"io"
	"strconv"

	"github.com/apportion/apportion/cmd/apportion/internal/rehearsal"
)

// paints are the colours of drawings that stand alone.
var paints = [colors]string{"#1f6fb2", "#c8501a", "#2a8a57", "#8e4bb0", "#a8780a", "#0e8a93", "#b23a62", "#5d6673"}

// decayed draws what part queues have of what all use, decayed, against their parts by weight.
func (r *Report) decayed(i int) plot {
	run := r.Runs[i]
	s := &run.Shares
	p := plot{
		ID: "plot-shares-" + strconv.Itoa(i), Title: run.Name + ": shares of what was used", Width: plotWidth, Height: plotHeight,
		YUnit: "% of the " + r.Unit() + "s",
		About: "Solid: the part of a queue, where what was used counts half after " + Span(float64(s.HalfLife)) +
			". Dashed: its part by weight.",
	}
	// After the last arrival the queue that has most left has everything.
	from, to, most := r.Trace.First, max(r.Trace.Last, r.Trace.First+1), 0.0
	shown := func(of *rehearsal.Shares, share []float64) []float64 {
		return share[:min(len(share), int(max(0, (to-of.Start)/of.Step+1)))]
	}
	for _, run := range r.Runs {
		for _, q := range run.Shares.Queues {
			most = max(most, q.ByWeight)
			for _, x := range shown(&run.Shares, q.Share) {
				most = max(most, x)
			}
		}
	}
	p.times(from, to)
	end := p.vertical(100*most, func(x float64) string { return strconv.FormatFloat(x, 'g', 4, 64) }) / 100
	for k, q := range s.Queues {
		flat := line([]float64{q.ByWeight, q.ByWeight}, from-(to-from)/2, to-from, from, to, end)
		p.Curves = append(p.Curves,
			curve{Color: k % colors, Dashed: true, Points: flat, Name: q.Name + ", by weight"},
			// A share is that at the beginning of a step.
			curve{Color: k % colors, Points: line(shown(s, q.Share), s.Start-s.Step/2, s.Step, from, to, end), Name: q.Name})
		p.Legend = append(p.Legend, key{Color: k % colors, Name: q.Name})
	}
	p.Table = r.overTime(p.Title, from, to, func(head *[]string, value *[]sampled) {
		for k := range s.Queues {
			*head = append(*head, s.Queues[k].Name)
			*value = append(*value, sampled{s.Queues[k].Share, s.Start, s.Step, percent})
		}
	})
	return p
}

// panel is a plot of a drawing.
type panel struct {
	Top          float64
	Title, XUnit string
	Keys         []painted
	X, Y         []tick
	Lines        []painted
}

// painted is a curve, or a name at a place, with its colour.
type painted struct {
	X, Text      float64
	Name, Points string
	Paint        string
	Dashed       bool
}

//go:embed shares.svg
var sharesText string

var shares = template.Must(template.New("shares").Funcs(template.FuncMap{"at": at}).Parse(sharesText))

// WriteShares writes the shares of queues over time as a drawing, one plot below the other for each run.
func (r *Report) WriteShares(w io.Writer) error {
	var plots []plot
	for i := range r.Runs {
		plots = append(plots, r.decayed(i))
	}
	return draw(w, "Shares of what was used, against parts by weight (dashed)", plots)
}

// draw writes plots of curves as a drawing that stands alone.
func draw(w io.Writer, title string, plots []plot) error {
	const height, letter = plotHeight + 50, 7
	var panels []panel
	for i := range plots {
		p := &plots[i]
		drawn := panel{Top: height*float64(i) + 8, Title: p.Title + ", " + p.YUnit, XUnit: p.XUnit, X: p.X, Y: p.Y}
		x := left
		for _, k := range p.Legend {
			drawn.Keys = append(drawn.Keys, painted{X: x, Text: x + 18, Name: k.Name, Paint: paints[k.Color]})
			x += 18 + letter*float64(len(k.Name)) + 18
		}
		for _, c := range p.Curves {
			drawn.Lines = append(drawn.Lines, painted{Name: c.Name, Points: c.Points, Paint: paints[c.Color], Dashed: c.Dashed})
		}
		panels = append(panels, drawn)
	}
	return shares.Execute(w, map[string]any{"Title": title, "Height": height*float64(len(plots)) + 8, "Panels": panels})
}
