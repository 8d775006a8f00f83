// Package visible makes texts of others safe to show: names of a cluster reach terminals, logs and pages.
package visible

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Text returns a text with an escape such as \x1b, \n or \u202e in place of each character that a reader would not see: characters that
// control a terminal or the direction of writing, ends of lines, and bytes that are not UTF-8. All else is as it was.
func Text(s string) string { return escaped(s, "") }

// Lines returns a text as Text does, and keeps the ends of its lines.
func Lines(s string) string { return escaped(s, "\n") }

// Except returns a text as Text does, and keeps the bytes and characters of a list.
func Except(s, keep string) string { return escaped(s, keep) }

func escaped(s, keep string) string {
	first := next(s, keep)
	if first < 0 {
		return s
	}
	var out strings.Builder
	for first >= 0 {
		out.WriteString(s[:first])
		r, size := utf8.DecodeRuneInString(s[first:])
		if r == utf8.RuneError && size == 1 {
			out.WriteString(`\x` + strconv.FormatUint(uint64(s[first]), 16))
		} else {
			out.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
		s = s[first+size:]
		first = next(s, keep)
	}
	out.WriteString(s)
	return out.String()
}

// next returns where the first character is that is to be escaped, or -1.
func next(s, keep string) int {
	for i := 0; i < len(s); {
		if b := s[i]; b >= ' ' && b < 0x7f {
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if !strings.Contains(keep, s[i:i+size]) && (!strconv.IsPrint(r) || r == utf8.RuneError && size == 1) {
			return i
		}
		i += size
	}
	return -1
}
