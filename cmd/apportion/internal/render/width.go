package render

import (
	"strings"
	"unicode"

	eastasian "golang.org/x/text/width"
)

// width returns the number of columns that a text takes on a terminal, without colours: two for each wide character, as those of Chinese
// and most emoji are, and none for one that is combined with the character before it.
func width(text string) int {
	columns, escaped := 0, false
	hued := strings.Contains(text, colour)
	for i, r := range text {
		switch {
		case hued && text[i] == colour[0]:
			escaped = true
		case escaped:
			escaped = r != 'm'
		default:
			columns += columnsOf(r)
		}
	}
	return columns
}

func columnsOf(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	}
	if kind := eastasian.LookupRune(r).Kind(); kind == eastasian.EastAsianWide || kind == eastasian.EastAsianFullwidth {
		return 2
	}
	return 1
}
