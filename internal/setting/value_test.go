package setting_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/internal/setting"
)

func TestBytesAreReadAsTheyAreWritten(t *testing.T) {
	for text, want := range map[string]setting.Bytes{
		"0": 0, "1": 1, "1B": 1, "1024": 1024, "1KiB": 1024, "1536B": 1536, "2MiB": 2 << 20, "3GiB": 3 << 30, "8388607TiB": 8388607 << 40,
	} {
		got, err := setting.ParseBytes(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
		again, err := setting.ParseBytes(got.String())
		require.NoError(t, err)
		require.Equal(t, want, again)
	}
	for _, text := range []string{"", "B", "-1", "+1", "1.5MiB", "1 MiB", "1MB", "1mib", "8388608TiB", "9223372036854775808"} {
		_, err := setting.ParseBytes(text)
		require.Error(t, err, text)
	}
}
