package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestACompressedDumpIsReadAndItsUnpackedSizeIsBounded(t *testing.T) {
	dump, err := os.ReadFile("../../examples/clusters/research/queues.yaml")
	require.NoError(t, err)
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err = w.Write(dump)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	name := filepath.Join(t.TempDir(), "queues.yaml.gz")
	require.NoError(t, os.WriteFile(name, packed.Bytes(), 0o600))
	for _, file := range []string{name, stdin} {
		source, err := readInput(file, bytes.NewReader(packed.Bytes()))
		require.NoError(t, err)
		require.Equal(t, string(dump), string(source.Data))
	}
	_, err = plain("f", packed.Bytes(), int64(len(dump))-1)
	require.ErrorContains(t, err, "f: unpacks to more than")
	_, err = plain("f", packed.Bytes()[:packed.Len()/2], maxUnpacked)
	require.EqualError(t, err, "f: cannot be unpacked by gzip: unexpected EOF")
}

func TestAHistoryOfAnEditorOrAPipeOfWindowsIsReadOrNamed(t *testing.T) {
	const csv = "# jobs\narrival,queue,seconds,cpu\n0,q,60,1\n"
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write([]byte("\ufeff" + csv))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	for _, marked := range []string{"\ufeff" + csv, packed.String()} {
		reader, err := unpacked("f", strings.NewReader(marked))
		require.NoError(t, err)
		text, err := io.ReadAll(reader)
		require.NoError(t, err)
		require.Equal(t, csv, string(text))
	}
	_, err = unpacked("f", strings.NewReader("\xff\xfea\x00"))
	require.EqualError(t, err, "f: the text is UTF-16; save it as UTF-8")
}

func TestAHistoryThatIsCutOffInTheMiddleOfGzipIsNamed(t *testing.T) {
	trace, err := os.ReadFile("../../examples/traces/week.csv")
	require.NoError(t, err)
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err = w.Write(trace)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	reader, err := unpacked("f", bytes.NewReader(packed.Bytes()[:packed.Len()/2]))
	require.NoError(t, err)
	_, err = io.ReadAll(reader)
	require.EqualError(t, err, "f: cannot be unpacked by gzip: unexpected EOF")
}
