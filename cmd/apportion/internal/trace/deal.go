package trace

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"slices"
	"time"
)

// day is 24 hours, counted from second 0.
const day = int64(24 * time.Hour / time.Second)

// Dealt returns the trace with its days in another order, which the seed determines: the jobs of a day arrive together on another day, at
// the same time of day. With the seed 0 it is the trace as it is.
func (t *Trace) Dealt(seed uint) *Trace {
	if seed == 0 || len(t.Jobs) == 0 {
		return t
	}
	dealt := *t
	dealt.Jobs = slices.Clone(t.Jobs)
	first, last := t.Jobs[0].Arrival/day, t.Jobs[len(t.Jobs)-1].Arrival/day
	order := dealOrder(seed, int(last-first)+1)
	for i := range dealt.Jobs {
		j := &dealt.Jobs[i]
		j.Arrival = (first+int64(order[j.Arrival/day-first]))*day + j.Arrival%day
	}
	dealt.Sort()
	return &dealt
}

// dealOrder returns where each of a number of days goes: to its rank among the digests of seed and day.
func dealOrder(seed uint, days int) []int {
	digests, byDigest, order := make([][sha256.Size]byte, days), make([]int, days), make([]int, days)
	for i := range byDigest {
		text := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(seed)), uint64(i))
		byDigest[i], digests[i] = i, sha256.Sum256(text)
	}
	slices.SortFunc(byDigest, func(a, b int) int { return bytes.Compare(digests[a][:], digests[b][:]) })
	for rank, i := range byDigest {
		order[i] = rank
	}
	return order
}

// Digest is a digest of the jobs, and of the moment at which the trace begins.
func (t *Trace) Digest() ([sha256.Size]byte, error) {
	sum := sha256.New()
	encoder := json.NewEncoder(sum)
	if err := encoder.Encode(t.Start); err != nil {
		return [sha256.Size]byte{}, err
	}
	for i := range t.Jobs {
		if err := encoder.Encode(&t.Jobs[i]); err != nil { //nolint:musttag // Nothing reads it.
			return [sha256.Size]byte{}, err
		}
	}
	return [sha256.Size]byte(sum.Sum(nil)), nil
}
