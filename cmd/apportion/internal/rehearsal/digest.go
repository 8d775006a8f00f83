package rehearsal

import (
	"crypto/sha256"
	"encoding/json"
	"hash"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/cmd/apportion/internal/trace"
	"github.com/apportion/apportion/engine/cycle"
)

// Digest is a digest of all on which the result of a variant depends, apart from its name and the version of this program. The trace is
// named by its own digest, trace.Trace.Digest.
func (v *Variant) Digest(t *trace.Trace, of [sha256.Size]byte, o *Options) ([sha256.Size]byte, error) {
	sum := sha256.New()
	empty := emptied(v.Snapshot, t)
	// Sessions state the time of the simulation.
	empty.AsOf = 0
	if err := digestOf(sum, empty, v.Policy, o.Entitlement); err != nil {
		return [sha256.Size]byte{}, err
	}
	err := json.NewEncoder(sum).Encode(struct { //nolint:musttag // Nothing reads it.
		Trace             [sha256.Size]byte
		Seed              uint
		Actions           []cycle.Action
		Memory            *Memory
		LocalHalfLife     time.Duration
		Every, Checkpoint int64
		Resource          string
	}{of, v.Seed, v.Actions, v.Memory, v.LocalHalfLife, o.Every, o.Checkpoint, o.Resource})
	return [sha256.Size]byte(sum.Sum(nil)), err
}

// digestOf adds messages, each behind its length.
func digestOf(sum hash.Hash, messages ...proto.Message) error {
	for _, m := range messages {
		data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil {
			return err
		}
		if err := json.NewEncoder(sum).Encode(len(data)); err != nil {
			return err
		}
		sum.Write(data)
	}
	return nil
}
