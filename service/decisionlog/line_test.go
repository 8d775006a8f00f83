package decisionlog

import (
	"bufio"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestALineLongerThanAnyEntryTakesNoMoreMemoryThanOne(t *testing.T) {
	const most = 100
	for _, size := range []int{0, 1, 15, 16, 17, 99, 100, 101, 1000, 5000} {
		from := bufio.NewReaderSize(strings.NewReader(strings.Repeat("x", size)+"\nnext\r\nlast"), 16)
		line, long, err := readLine(from, nil, most)
		require.NoError(t, err)
		require.Equal(t, size >= most, long, "%d bytes", size)
		require.Len(t, line, min(size, most))
		require.LessOrEqual(t, cap(line), 2*most)
		for _, want := range []string{"next", "last"} {
			line, long, err = readLine(from, line[:0], most)
			require.NoError(t, err)
			require.False(t, long)
			require.Equal(t, want, string(line))
		}
		_, _, err = readLine(from, line[:0], most)
		require.ErrorIs(t, err, io.EOF)
	}
}
