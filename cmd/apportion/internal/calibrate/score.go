package main

import (
	"math"

	"github.com/apportion/apportion/cmd/apportion/internal/rehearsal"
	"github.com/apportion/apportion/engine/odds"
)

// levels is how many chances are compared with what came true, evenly spaced: of 19, every twentieth.
const (
	levels   = 19
	p50, p90 = 9, 17
)

// share is a part of forecasts with its standard error. n is how many forecasts it is a part of.
type share struct {
	part, err float64
	n         int
}

// score is how well forecasts held.
type score struct {
	n int
	// held says for each level how often the job started by then, of the forecasts that state a time there.
	held [levels]share
	// open is the part of forecasts whose P90 is after the horizon, drifts that of those which say that the load changes.
	open, drifts        float64
	loss, drained, mean float64
}

// scoreOf sums up forecasts: how often they held, and the mean loss of P50 and P90 in hours, beside that of the naive forecasts. A wait
// and a forecast count as no more than the horizon.
func scoreOf(list []asked, horizon int64) score {
	s := score{n: len(list)}
	if s.n == 0 {
		return s
	}
	for level := range s.held {
		s.held[level] = shareOf(list, level)
	}
	s.open = 1 - float64(s.held[p90].n)/float64(s.n)
	most := float64(horizon)
	for i := range list {
		a := &list[i]
		if a.drifts {
			s.drifts += 1 / float64(s.n)
		}
		wait := min(float64(a.wait), most)
		for _, of := range []struct {
			quantile float64
			level    int
		}{{0.5, p50}, {0.9, p90}} {
			s.loss += pinball(of.quantile, min(float64(a.forecast[of.level]), most), wait) / 2
			s.drained += pinball(of.quantile, min(a.drain, most), wait) / 2
			s.mean += pinball(of.quantile, min(a.mean, most), wait) / 2
		}
	}
	for _, x := range []*float64{&s.loss, &s.drained, &s.mean} {
		*x /= float64(s.n) * 3600
	}
	return s
}

// pinball is the loss of a forecast of a quantile.
func pinball(quantile, forecast, wait float64) float64 {
	return math.Max(quantile*(wait-forecast), (quantile-1)*(wait-forecast))
}

// shareOf returns how often a level held. Its error is that of a ratio of sums over the parts, which are independent of each other (W.
// Cochran, Sampling Techniques, 1977, section 6.3).
func shareOf(list []asked, level int) share {
	type sums struct{ held, n float64 }
	parts := map[int]sums{}
	var all sums
	for i := range list {
		if list[i].forecast[level] == odds.Never {
			continue
		}
		p := parts[list[i].part]
		p.n, all.n = p.n+1, all.n+1
		if list[i].wait != rehearsal.Never && list[i].wait <= list[i].forecast[level] {
			p.held, all.held = p.held+1, all.held+1
		}
		parts[list[i].part] = p
	}
	if all.n == 0 {
		return share{part: math.NaN(), err: math.NaN()}
	}
	out := share{part: all.held / all.n, n: int(all.n), err: math.NaN()}
	squares, count := 0.0, float64(len(parts))
	for i := range list {
		p, left := parts[list[i].part]
		if !left {
			continue
		}
		off := p.held - float64(out.part*p.n)
		squares += float64(off * off)
		delete(parts, list[i].part)
	}
	if count > 1 {
		out.err = math.Sqrt(squares*count/(count-1)) / all.n
	}
	return out
}
