package text

import (
	"strconv"
	"strings"
)

// cellMark before a text keeps a spreadsheet from reading it as a formula.
const cellMark = "'"

// begins are the characters with which a formula may begin, or another cell.
const begins = "=+-@\t\r"

// Cell returns a text as a cell of a table that people open in a spreadsheet: one that could be a formula, and is no number, gets a mark
// before it. A text with marks before what could be a formula gets one more, so that FromCell returns each text as it was.
func Cell(text string) string {
	if bare := strings.TrimLeft(text, cellMark); bare == "" || !strings.Contains(begins, bare[:1]) {
		return text
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return text
	}
	return cellMark + text
}

// FromCell returns the text of a cell.
func FromCell(cell string) string {
	if bare, marked := strings.CutPrefix(cell, cellMark); marked && Cell(bare) == cell {
		return bare
	}
	return cell
}
