package question

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/cmd/apportion/internal/cli"
)

// packed returns data as gzip packs it.
func packed(t *testing.T, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(data)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
}

func TestACompressedDumpIsReadAndItsUnpackedSizeIsBounded(t *testing.T) {
	dump, err := os.ReadFile("../../../../examples/clusters/research/queues.yaml")
	require.NoError(t, err)
	packed := packed(t, dump)
	name := filepath.Join(t.TempDir(), "queues.yaml.gz")
	require.NoError(t, os.WriteFile(name, packed, 0o600))
	for _, file := range []string{name, cli.Stdin} {
		source, err := ReadInput(file, bytes.NewReader(packed))
		require.NoError(t, err)
		require.Equal(t, string(dump), string(source.Data))
	}
	_, err = plain("f", packed, int64(len(dump))-1)
	require.ErrorContains(t, err, "f: unpacks to more than")
	_, err = plain("f", packed[:len(packed)/2], maxUnpacked)
	require.EqualError(t, err, "f: cannot be unpacked by gzip: unexpected EOF")
}

func TestAHistoryOfAnEditorOrAPipeOfWindowsIsReadOrNamed(t *testing.T) {
	const csv = "# jobs\narrival,queue,seconds,cpu\n0,q,60,1\n"
	for _, marked := range []string{"\ufeff" + csv, string(packed(t, []byte("\ufeff"+csv)))} {
		reader, err := unpacked("f", strings.NewReader(marked))
		require.NoError(t, err)
		text, err := io.ReadAll(reader)
		require.NoError(t, err)
		require.Equal(t, csv, string(text))
	}
	_, err := unpacked("f", strings.NewReader("\xff\xfea\x00"))
	require.EqualError(t, err, "f: the text is UTF-16; save it as UTF-8")
}

func TestAHistoryThatIsCutOffInTheMiddleOfGzipIsNamed(t *testing.T) {
	trace, err := os.ReadFile("../../../../examples/traces/week.csv")
	require.NoError(t, err)
	packed := packed(t, trace)
	reader, err := unpacked("f", bytes.NewReader(packed[:len(packed)/2]))
	require.NoError(t, err)
	_, err = io.ReadAll(reader)
	require.EqualError(t, err, "f: cannot be unpacked by gzip: unexpected EOF")
}
