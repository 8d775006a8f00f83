package wire

import (
	"encoding/binary"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// The shares of a thousand queues are eight thousand messages, each of which is encoded once and then dropped. Where an answer is made in a
// Room, nothing looks at its messages but Encode, so that rows are written as bytes at once. These lie among the unknown fields of the
// plugin's message, as the entries of the field that they are.

// pluginQueues is the field of PluginShares with the shares of queues.
const pluginQueues = 4

// encodedShares fills in the shares of queues as bytes.
func (s *Session) encodedShares(
	plugin *apportionv1.PluginShares, sharer policy.Sharer, queues []model.QueueID, wanted fields, omitNames bool,
) error {
	w := &s.out.lent.shares
	from := w.size()
	for _, q := range slices.Backward(queues) {
		before := w.size()
		s.encodeQueueShare(w, sharer, q, wanted, omitNames)
		w.begin(pluginQueues, w.size()-before)
		if s.out.left < 0 {
			return s.out.tooLarge("queues")
		}
	}
	plugin.ProtoReflect().SetUnknown(w.memory[w.at : len(w.memory)-from])
	return nil
}

// encodeQueueShare writes what writeQueueShare writes of the message of queueShare, and counts as much for it.
func (s *Session) encodeQueueShare(w *writer, sharer policy.Sharer, q model.QueueID, wanted fields, omitNames bool) {
	name := ""
	if !omitNames {
		name = s.engine.View().Queues[q].Name
	}
	s.out.left -= messageBytes + len(name)
	if share, participating := sharer.Share(q); participating {
		s.out.left -= 2 * messageBytes
		s.encodeShare(w, &share, wanted)
		w.boolean(3, true)
	}
	w.text(2, name)
	w.number(1, uint64(uint32(q)))
}

func (s *Session) encodeShare(w *writer, share *policy.Share, wanted fields) {
	row := func(number protowire.Number, field apportionv1.ShareField, row resource.Row) {
		if wanted.has(field) && !row.Absent() {
			s.out.left -= messageBytes + numberBytes*w.row(number, row, s.out.dims.Order())
		}
	}
	if wanted == allFields {
		s.out.left -= numberBytes * (len(share.Children) + len(share.Ancestors))
		writeIDs(w, 17, share.Children)
		writeIDs(w, 16, share.Ancestors)
	}
	w.boolean(15, share.Overused)
	if wanted.has(apportionv1.ShareField_SHARE_FIELD_SHARE) {
		if share.Dominant >= 0 {
			dominant := uint32(s.out.dims.Position(share.Dominant))
			w.optional(14, &dominant)
		}
		w.double(13, share.Share)
	}
	row(12, apportionv1.ShareField_SHARE_FIELD_REAL_CAPABILITY, share.RealCapability)
	row(11, apportionv1.ShareField_SHARE_FIELD_CAPABILITY, share.Capability)
	row(10, apportionv1.ShareField_SHARE_FIELD_ELASTIC, share.Elastic)
	row(9, apportionv1.ShareField_SHARE_FIELD_INQUEUE, share.Inqueue)
	row(8, apportionv1.ShareField_SHARE_FIELD_REQUEST, share.Request)
	row(7, apportionv1.ShareField_SHARE_FIELD_ALLOCATED, share.Allocated)
	row(6, apportionv1.ShareField_SHARE_FIELD_DESERVED, share.Deserved)
	row(5, apportionv1.ShareField_SHARE_FIELD_GUARANTEE, share.Guarantee)
	if wanted.has(apportionv1.ShareField_SHARE_FIELD_WEIGHT) {
		w.number(4, uint64(uint32(share.Weight)))
	}
}

// writeIDs writes a packed list of indices.
func writeIDs[ID ~int32](w *writer, field protowire.Number, ids []ID) {
	if len(ids) == 0 {
		return
	}
	before := w.size()
	for _, id := range slices.Backward(ids) {
		w.varint(uint64(uint32(id)))
	}
	w.begin(field, w.size()-before)
}

// row writes a row as a Resource, and returns how many dimensions it has, which order numbers. A number of a dimension takes a byte.
func (w *writer) row(field protowire.Number, row resource.Row, order []int) (n int) {
	before := w.size()
	if n = row.Has.Len(); n > 0 {
		const lengths = 4 * binary.MaxVarintLen64
		w.room(9*n + lengths)
		w.at -= 8 * n
		amounts := w.at
		w.begin(2, 8*n)
		w.at -= n
		dimensions := w.at
		for position, d := range order {
			if row.Has.Has(d) {
				binary.LittleEndian.PutUint64(w.memory[amounts:], math.Float64bits(row.V[d]))
				w.memory[dimensions] = byte(position)
				amounts, dimensions = amounts+8, dimensions+1
			}
		}
		w.begin(1, n)
	}
	w.begin(field, w.size()-before)
	return n
}
