package model_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/model"
)

func TestEachWordForWhatATaskHasMeansTheSameStatuses(t *testing.T) {
	for status, want := range []string{
		model.Pending:   "counts stays",
		model.Allocated: "holds granted occupies counts stays",
		model.Pipelined: "granted stays",
		model.Binding:   "holds granted occupies counts stays",
		model.Bound:     "holds granted occupies counts stays",
		model.Running:   "holds granted occupies counts stays",
		model.Releasing: "occupies counts",
		model.Succeeded: "",
		model.Failed:    "",
		model.Unknown:   "counts stays",
	} {
		s, said := model.Status(status), ""
		for _, word := range []struct {
			name string
			is   bool
		}{{"holds", s.Holds()}, {"granted", s.Granted()}, {"occupies", s.Occupies()}, {"counts", s.Counts()}, {"stays", s.Stays()}} {
			if word.is && said != "" {
				said += " "
			}
			if word.is {
				said += word.name
			}
		}
		require.Equal(t, want, said, "status %d", status)
	}
}
