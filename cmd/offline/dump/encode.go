package dump

import (
	"bytes"
	"encoding/binary"
	"encoding/json"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// head is what the page shows of a dump beside its snapshot.
type head struct {
	Policy    json.RawMessage `json:"policy,omitempty"`
	Title     string          `json:"title,omitempty"`
	Preset    string          `json:"preset,omitempty"`
	Patchable bool            `json:"patchable,omitempty"`
	Warnings  []string        `json:"warnings,omitempty"`
}

// Encode returns three parts: a document in JSON with everything but the snapshot, the snapshot in protobuf's JSON, and the snapshot in its
// binary form. Each of the first two begins with its length in bytes, 4 bytes, the lowest first.
func (d *Dump) Encode() ([]byte, error) {
	h := head{Preset: d.Preset, Title: d.Title, Patchable: d.Patchable()}
	for _, warning := range d.Warnings {
		h.Warnings = append(h.Warnings, warning.GetMessage())
	}
	if d.Policy != nil {
		policy, err := protojson.Marshal(d.Policy)
		if err != nil {
			return nil, err
		}
		h.Policy = policy
	}
	about, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	text, err := protojson.Marshal(d.Snapshot)
	if err != nil {
		return nil, err
	}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(d.Snapshot)
	if err != nil {
		return nil, err
	}
	return bytes.Join([][]byte{part(about), part(text), data}, nil), nil
}

func part(data []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(data))), data...)
}
