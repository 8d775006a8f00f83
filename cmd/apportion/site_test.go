package main

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/cmd/offline/dump"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

func TestThePageWithoutAServerReadsADumpAsTheCommandLineDoes(t *testing.T) {
	for _, pattern := range []string{"../../examples/clusters/research/*.yaml", "../../adapter/kueue/testdata/pending/borrowing-limit.yaml"} {
		t.Run(filepath.Base(pattern), func(t *testing.T) {
			files, err := filepath.Glob(pattern)
			require.NoError(t, err)
			require.NotEmpty(t, files)
			var sources []objects.Source
			var flags []string
			for _, file := range files {
				data, err := os.ReadFile(file)
				require.NoError(t, err)
				sources = append(sources, objects.Source{Name: file, Data: data})
				flags = append(flags, "-f", file)
			}
			read, err := dump.Read(sources, time.Now(), func(int) {})
			require.NoError(t, err)
			status, data := send(t, http.MethodGet, look(t, flags...)+"/ui/snapshot.json", "", nil)
			require.Equal(t, http.StatusOK, status)
			served := &apportionv1.Snapshot{}
			require.NoError(t, protojson.Unmarshal(data, served))
			read.Snapshot.AsOf, served.AsOf = 0, 0
			require.True(t, proto.Equal(served, read.Snapshot))
		})
	}
}
