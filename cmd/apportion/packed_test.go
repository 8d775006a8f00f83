package main

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
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
