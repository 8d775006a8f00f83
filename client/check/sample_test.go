package check_test

import (
	"bufio"
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/client/check"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

var sampleFile = flag.String("mutant-sample", "", "write mutants with the verdict of this checker to a file, for the checkers in other languages")

// sampled is a line of the sample: a request with a true response, or a mutant of the response before it.
type sampled struct {
	Request  json.RawMessage `json:"request,omitempty"`
	Response json.RawMessage `json:"response"`
	// Path and Kind say what was changed; Refused is the verdict of this checker.
	Path string `json:"path,omitempty"`
	Kind string `json:"kind,omitempty"`
	// Paths are the fields in which a forgery differs, in place of Path.
	Paths   []string `json:"paths,omitempty"`
	Refused bool     `json:"refused"`
}

// TestWriteASampleOfMutants writes some mutants of recorded shares.
func TestWriteASampleOfMutants(t *testing.T) {
	if *sampleFile == "" {
		t.Skip("run by tools/scripts/test-checker.sh")
	}
	file, err := os.Create(*sampleFile)
	require.NoError(t, err)
	out := bufio.NewWriter(file)
	encode := json.NewEncoder(out)
	write := func(line sampled, response *apportionv1.SimulateResponse) {
		data, err := protojson.Marshal(response)
		require.NoError(t, err)
		line.Response = data
		require.NoError(t, encode.Encode(line))
	}
	cases := 0
	var other *apportionv1.SimulateResponse
	sample := func(t *testing.T, r *apportionv1.SimulateRequest) {
		t.Helper()
		response := answered(t, r)
		request, err := protojson.Marshal(r)
		require.NoError(t, err)
		write(sampled{Request: request}, response)
		cases++
		for i, m := range mutants(response.ProtoReflect(), "") {
			if (i+cases)%37 != 0 {
				continue
			}
			m.do()
			report, err := check.Response(r, response)
			require.NoError(t, err)
			// A response that cannot be sent is no case.
			if _, err := proto.Marshal(response); err == nil {
				write(sampled{Path: m.path, Kind: m.kind, Refused: len(report.Faults) > 0}, response)
			}
			m.undo()
		}
		eachForgery(r, response, other, uint64(cases), 1, func(name string, changed *apportionv1.SimulateResponse) {
			report, err := check.Response(r, changed)
			require.NoError(t, err)
			if _, err := proto.Marshal(changed); err == nil {
				paths := differences(plain(response).ProtoReflect(), plain(changed).ProtoReflect(), "")
				write(sampled{Paths: paths, Kind: name, Refused: len(report.Faults) > 0}, changed)
			}
		})
		other = response
	}
	shares := func(t *testing.T, r *apportionv1.SimulateRequest) {
		t.Helper()
		r.Steps = r.GetSteps()[:1]
		sample(t, r)
	}
	eachCase(t, 29, shares)
	eachRemembered(t, 23, shares)
	require.NoError(t, out.Flush())
	require.NoError(t, file.Close())
}
