package main

import (
	"encoding/json"
	"io"
	"net/http"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/apportion/apportion/adapter/kueue"
	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/adapter/volcano"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/text"
)

// patchesName is the path, below that of the page, of the patches of remedies.
const patchesName = "patches"

// patches returns the changes of objects that make a remedy of a job.
func (in *input) patches(names text.Names, job uint32, remedy *apportionv1.Remedy) []objects.Patch {
	if remedy.GetKueue() == nil {
		return volcano.Patches(in.snapshot, names, in.cluster, job, remedy)
	}
	return kueue.Patches(in.snapshot, job, remedy)
}

// patchesOf answers a POST of a SimulateResponse about the loaded snapshot whose first answer has remedies. It returns for each remedy the
// changes of objects that make it.
func patchesOf(loaded *input) http.HandlerFunc {
	const most = 1 << 20
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			http.Error(w, "only POST", http.StatusMethodNotAllowed)
			return
		}
		data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
		if err != nil {
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
			return
		}
		var asked apportionv1.SimulateResponse
		if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, &asked); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		changes := [][]objects.Patch{}
		if answers := asked.GetAnswers(); len(answers) > 0 {
			answer, names := answers[0].GetRemedies(), loaded.snapshot.Names(asked.GetBasis())
			for _, remedy := range answer.GetRemedies() {
				changes = append(changes, loaded.patches(names, answer.GetJob(), remedy))
			}
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_ = json.NewEncoder(w).Encode(changes)
	}
}
