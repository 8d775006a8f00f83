package editing

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

var update = flag.Bool("update", false, "write testdata/edits.json")

// vector is a snapshot with edits of every kind as texts and as messages, and the arguments that make them all.
type vector struct {
	Snapshot  json.RawMessage `json:"snapshot"`
	Edits     []written       `json:"edits"`
	Arguments []string        `json:"arguments"`
}

type written struct {
	Text string          `json:"text"`
	Edit json.RawMessage `json:"edit"`
}

// TestThePageWritesEditsAsTheCommandLineDoes keeps testdata/edits.json, which the tests of the page read, as it is here.
func TestThePageWritesEditsAsTheCommandLineDoes(t *testing.T) {
	hostile := &cluster{
		queues: [2]string{"a", "a.weight"}, jobs: [2]string{"b=c", "job.role.x"}, roles: [2]string{"request", `"quoted".minAvailable`},
		nodes: [2]string{"n@1", "n.example.com"}, dimensions: [2]string{"example.com/a=b", "example.com/a.copies"},
	}
	var vectors []vector
	for _, c := range []*cluster{plainNames, hostile} {
		s := c.snapshot()
		names := s.Names(&apportionv1.Basis{Dimensions: s.GetDimensions()})
		names.Job, names.Node = s.JobName, s.NodeName
		data, err := protojson.Marshal(s.Snapshot)
		require.NoError(t, err)
		v := vector{Snapshot: data, Arguments: Arguments(names, &apportionv1.Remedy{Edits: c.edits()})}
		for _, e := range c.edits() {
			data, err := protojson.Marshal(e)
			require.NoError(t, err)
			v.Edits = append(v.Edits, written{Write(names, e), data})
		}
		vectors = append(vectors, v)
	}
	data, err := json.MarshalIndent(vectors, "", " ")
	require.NoError(t, err)
	file := filepath.Join("..", "..", "testdata", "edits.json")
	if *update {
		require.NoError(t, os.WriteFile(file, append(data, '\n'), 0o600))
	}
	kept, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(kept), string(data)+"\n", "go test ./internal/editing -update")
}
