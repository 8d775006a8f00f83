package render_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/cmd/apportion/internal/render"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

func TestOfManyWarningsOfOneTextTheFirstIsWrittenWithTheirNumber(t *testing.T) {
	list := func(n int) (warnings []*apportionv1.Warning) {
		for i := range n {
			warnings = append(warnings, &apportionv1.Warning{Path: fmt.Sprintf("queues[%d]", i), Message: "no jobs"})
		}
		return append(warnings, &apportionv1.Warning{Message: "117 in all"})
	}
	for n, want := range map[int]string{
		0: "warning: 117 in all\n",
		3: "warning: queues[0]: no jobs\nwarning: queues[1]: no jobs\nwarning: queues[2]: no jobs\nwarning: 117 in all\n",
		4: "warning: queues[0]: no jobs (and 3 more like it)\nwarning: 117 in all\n",
	} {
		var out strings.Builder
		render.Warnings(&out, list(n))
		require.Equal(t, want, out.String())
	}
}

func TestAWarningIsBrokenToTheWidthOfTheTerminal(t *testing.T) {
	const text = "queues[0]: no jobs, so that it takes no part"
	require.Equal(t, "warning: "+text+"\n", render.Warning(text, 0))
	require.Equal(t, "warning: "+text+"\n", render.Warning(text, 80))
	require.Equal(t, "warning: queues[0]: no jobs,\n  so that it takes no part\n", render.Warning(text, 30))
}
