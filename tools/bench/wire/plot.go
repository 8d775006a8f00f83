package main

import (
	"fmt"
	"io"
	"math"
	"strings"
)

// The plot, in SVG: tasks to the right, milliseconds upwards, both logarithmic, so that linear growth is a line of slope one, which is
// drawn as a dashed grid.
const (
	width, height                    = 760, 520
	left, right, top, bottom         = 70.0, 200.0, 40.0, 60.0
	innerWidth, innerHeight  float64 = width - left - right, height - top - bottom
)

var colors = [stages]string{"#4477aa", "#ee6677", "#228833", "#ccbb44", "#222222"}

// axes map logarithms to the plane.
type axes struct{ fromX, toX, fromY, toY float64 }

func (a axes) x(tasks float64) float64 {
	return left + innerWidth*(math.Log10(tasks)-a.fromX)/(a.toX-a.fromX)
}

func (a axes) y(ms float64) float64 {
	return top + innerHeight*(1-(math.Log10(ms)-a.fromY)/(a.toY-a.fromY))
}

// fit returns axes that whole decades end.
func fit(points []point) axes {
	a := axes{math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)}
	for _, p := range points {
		x := math.Log10(float64(p.tasks))
		a.fromX, a.toX = min(a.fromX, math.Floor(x)), max(a.toX, math.Ceil(x))
		for _, ms := range p.ms {
			y := math.Log10(max(ms, 1e-3))
			a.fromY, a.toY = min(a.fromY, math.Floor(y)), max(a.toY, math.Ceil(y))
		}
	}
	a.toX, a.toY = max(a.toX, a.fromX+1), max(a.toY, a.fromY+1)
	return a
}

func draw(out io.Writer, points []point) error {
	a := fit(points)
	var s strings.Builder
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`,
		width, height)
	fmt.Fprintf(&s, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	fmt.Fprintf(&s, `<text x="%g" y="22" font-size="15">Cost of a shares call by number of tasks</text>`+"\n", left)
	a.grid(&s)
	for of := range stages {
		a.line(&s, points, of)
	}
	s.WriteString("</svg>\n")
	_, err := io.WriteString(out, s.String())
	return err
}

// grid draws the decades, their labels, and lines of linear growth.
func (a axes) grid(s *strings.Builder) {
	fmt.Fprintf(s, `<clipPath id="inner"><rect x="%g" y="%g" width="%g" height="%g"/></clipPath>`+"\n", left, top, innerWidth, innerHeight)
	for e := a.fromX; e <= a.toX; e++ {
		x := a.x(math.Pow(10, e))
		fmt.Fprintf(s, `<line x1="%.1f" y1="%g" x2="%.1f" y2="%g" stroke="#dddddd"/>`, x, top, x, top+innerHeight)
		fmt.Fprintf(s, `<text x="%.1f" y="%g" text-anchor="middle">%s</text>`+"\n", x, top+innerHeight+20, power(e))
	}
	for e := a.fromY; e <= a.toY; e++ {
		y := a.y(math.Pow(10, e))
		fmt.Fprintf(s, `<line x1="%g" y1="%.1f" x2="%g" y2="%.1f" stroke="#dddddd"/>`, left, y, left+innerWidth, y)
		fmt.Fprintf(s, `<text x="%g" y="%.1f" text-anchor="end">%s</text>`+"\n", left-8, y+4, power(e))
	}
	for e := a.fromY - (a.toX - a.fromX); e < a.toY; e++ {
		fmt.Fprintf(s, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#ccc" stroke-dasharray="3 4" clip-path="url(#inner)"/>`+"\n",
			left, a.y(math.Pow(10, e)), left+innerWidth, a.y(math.Pow(10, e+a.toX-a.fromX)))
	}
	fmt.Fprintf(s, `<text x="%g" y="%d" text-anchor="middle">tasks</text>`, left+innerWidth/2, height-12)
	fmt.Fprintf(s, `<text transform="translate(18 %g) rotate(-90)" text-anchor="middle">milliseconds</text>`+"\n", top+innerHeight/2)
}

// line draws a stage and its name.
func (a axes) line(s *strings.Builder, points []point, of stage) {
	var path []string
	for _, p := range points {
		path = append(path, fmt.Sprintf("%.1f,%.1f", a.x(float64(p.tasks)), a.y(max(p.ms[of], 1e-3))))
	}
	fmt.Fprintf(s, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`, strings.Join(path, " "), colors[of])
	for _, at := range path {
		x, y, _ := strings.Cut(at, ",")
		fmt.Fprintf(s, `<circle cx="%s" cy="%s" r="3" fill="%s"/>`, x, y, colors[of])
	}
	y := top + 14 + 20*float64(stages-1-of)
	fmt.Fprintf(s, "\n"+`<line x1="%g" y1="%g" x2="%g" y2="%g" stroke="%s" stroke-width="3"/>`,
		left+innerWidth+14, y-4, left+innerWidth+34, y-4, colors[of])
	fmt.Fprintf(s, `<text x="%g" y="%g">%s</text>`+"\n", left+innerWidth+40, y, names[of])
}

// power writes 10 to a whole power.
func power(e float64) string {
	if e >= 0 && e < 4 {
		return fmt.Sprintf("%.0f", math.Pow(10, e))
	}
	return fmt.Sprintf(`10<tspan dy="-5" font-size="9">%.0f</tspan>`, e)
}
