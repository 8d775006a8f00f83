package render

import (
	"fmt"
	"strings"
)

// MarkdownTable begins a table; columns whose heading ends in a colon are aligned to the right.
func MarkdownTable(b *strings.Builder, headings ...string) {
	rules := make([]string, len(headings))
	for i, heading := range headings {
		plain, right := strings.CutSuffix(heading, ":")
		headings[i], rules[i] = plain, "---"
		if right {
			rules[i] = "---:"
		}
	}
	fmt.Fprintf(b, "| %s |\n|%s|\n", strings.Join(headings, " | "), strings.Join(rules, "|"))
}

var markdownCell = strings.NewReplacer("|", "\\|", "\n", " ", "<", "&lt;", "`", "'")

// MarkdownRow adds a row to a table.
func MarkdownRow(b *strings.Builder, cells ...string) {
	for i := range cells {
		cells[i] = markdownCell.Replace(cells[i])
	}
	fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
}
