package text

import (
	"strconv"
	"strings"

	"github.com/apportion/apportion/internal/quantity"
	"github.com/apportion/apportion/internal/visible"
)

// An amount in a text that is not complete is opened, followed by its dimension and its number, and closed. Sentence replaces it when all
// amounts are known that are read with it. exactMark opens an amount that must be read as the same number.
const (
	mark, exactMark = "\x01", "\x02"
	numberMark      = "\x03"
	closeMark       = "\x04"
)

// Figure is an amount of a dimension in a text that Sentence completes.
func Figure(dimension string, amount float64) string { return marked(mark, dimension, amount) }

// exactly is an amount of which all decimals are written.
func exactly(dimension string, amount float64) string { return marked(exactMark, dimension, amount) }

func marked(opening, dimension string, amount float64) string {
	return opening + dimension + numberMark + strconv.FormatFloat(amount, 'g', -1, 64) + closeMark
}

// Sentence returns a text with its amounts, all amounts of a dimension in one unit, and with what cannot be printed made visible.
func Sentence(text string) string {
	sentences(&text)
	return text
}

// sentences is Sentence for texts that are read together: they have one unit for each dimension.
func sentences(texts ...*string) {
	var all, exact map[string][]float64
	for _, text := range texts {
		if !strings.ContainsAny(*text, mark+exactMark) {
			continue
		}
		eachAmount(*text, func(opening, dimension string, amount float64) string {
			if all == nil {
				all, exact = map[string][]float64{}, map[string][]float64{}
			}
			all[dimension] = append(all[dimension], amount)
			if opening == exactMark {
				exact[dimension] = append(exact[dimension], amount)
			}
			return ""
		})
	}
	units := make(map[string]quantity.Unit, len(all))
	for dimension, list := range all {
		units[dimension] = quantity.UnitOfText(dimension, list...)
		if len(exact[dimension]) > 0 {
			units[dimension] = units[dimension].Exactly(exact[dimension]...)
		}
	}
	for _, text := range texts {
		*text = visible.Text(filled(*text, units))
	}
}

// filled returns a text with its amounts. Only a text in which one must be read as the same number shows thousandths.
func filled(text string, units map[string]quantity.Unit) string {
	if len(units) == 0 {
		return text
	}
	exact := map[string]bool{}
	eachAmount(text, func(opening, dimension string, _ float64) string {
		exact[dimension] = exact[dimension] || opening == exactMark
		return ""
	})
	return eachAmount(text, func(_, dimension string, amount float64) string {
		unit := units[dimension]
		if !exact[dimension] {
			unit = unit.Rounded()
		}
		return unit.Format(amount)
	})
}

// eachAmount returns a text with every amount replaced. A name of a cluster that only looks like an amount stays as it is.
func eachAmount(text string, replace func(opening, dimension string, amount float64) string) string {
	var out strings.Builder
	for {
		start := strings.IndexAny(text, mark+exactMark)
		if start < 0 {
			out.WriteString(text)
			return out.String()
		}
		out.WriteString(text[:start])
		inner, rest, closed := strings.Cut(text[start+1:], closeMark)
		dimension, number, _ := strings.Cut(inner, numberMark)
		amount, err := strconv.ParseFloat(number, 64)
		if !closed || err != nil {
			out.WriteString(text[start : start+1])
			text = text[start+1:]
			continue
		}
		out.WriteString(replace(text[start:start+1], dimension, amount))
		text = rest
	}
}
