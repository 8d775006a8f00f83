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

	"github.com/apportion/apportion/adapter/volcano"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/ui/offline/dump"
)

func TestThePageWithoutAServerReadsADumpAsTheCommandLineDoes(t *testing.T) {
	for _, folder := range []string{"../../examples/clusters/research", "../../adapter/kueue/testdata/pending"} {
		t.Run(filepath.Base(filepath.Dir(folder))+"/"+filepath.Base(folder), func(t *testing.T) {
			files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
			require.NoError(t, err)
			if len(files) == 0 {
				t.Skip("no manifests are there")
			}
			var sources []volcano.Source
			for _, file := range files {
				data, err := os.ReadFile(file)
				require.NoError(t, err)
				sources = append(sources, volcano.Source{Name: file, Data: data})
			}
			read, err := dump.Read(sources, time.Now(), func(int) {})
			require.NoError(t, err)
			status, data := send(t, http.MethodGet, look(t, "-f", folder)+"/ui/snapshot.json", "", nil)
			require.Equal(t, http.StatusOK, status)
			served := &apportionv1.Snapshot{}
			require.NoError(t, protojson.Unmarshal(data, served))
			read.Snapshot.AsOf, served.AsOf = 0, 0
			require.True(t, proto.Equal(served, read.Snapshot))
		})
	}
}
