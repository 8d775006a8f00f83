package decode

import (
	"sync"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/internal/field"
)

const (
	// partBytes is how many bytes are worth a part: about those of partChanged tasks. To note where a part begins while everything is
	// counted costs nothing.
	partBytes = 128 << 10
	// besideBytes is from how many bytes on parts are counted at the same time. One processor counts 7 MB in a millisecond, and it takes
	// 0.1 to 0.5 ms until a goroutine starts on another.
	besideBytes = 16 << 20
	// maxParts bounds what one snapshot may occupy of a machine with many cores.
	maxParts = 4
)

// partOf returns the i-th part of the data.
func partOf(data []byte, cuts []partStart, i int) []byte {
	if i < len(cuts) {
		data = data[:cuts[i].at]
	}
	if i > 0 {
		data = data[cuts[i-1].at:]
	}
	return data
}

// partStart is the beginning of a part, with the numbers of entities before it. Only Measure counts groups and tasks.
type partStart struct {
	at     int
	before model.Extent
}

// cutsOf returns where the second and each later of n parts of about the same length begin, fields being kept whole.
func cutsOf(data []byte, n int) []partStart {
	cuts := make([]partStart, 0, n-1)
	jobs, at := 0, 0
	for len(cuts) < n-1 {
		if at >= (len(cuts)+1)*(len(data)/n) || at >= len(data) {
			cuts = append(cuts, partStart{at, model.Extent{Jobs: jobs}})
			continue
		}
		tag, _, _, to := field.At(data, at)
		if to < 0 {
			to = len(data)
		}
		if at = to; tag == tagSnapshotJob {
			jobs++
		}
	}
	return cuts
}

// oneByOne returns stop as one that several may ask at the same time.
func oneByOne(stop func() bool) func() bool {
	if stop == nil {
		return nil
	}
	var asking sync.Mutex
	return func() bool {
		asking.Lock()
		defer asking.Unlock()
		return stop()
	}
}
