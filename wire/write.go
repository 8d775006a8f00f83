package wire

import (
	"encoding/binary"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Encode returns the same bytes as the protobuf library for a response, or ok false for messages for which it is not faster. It writes at
// the end of memory, or of larger memory if that is too small: the result is the end of either. Messages that occur many times in an answer
// are encoded here, the others by the library. Unknown fields are dropped, which responses of this package have only where encodedShares
// makes them.
func Encode(memory []byte, response any) (encoded, larger []byte, ok bool, err error) {
	w := writer{memory: memory, at: len(memory)}
	switch m := response.(type) {
	case *apportionv1.RunSessionResponse:
		answers := m.GetAnswers()
		if answers == nil {
			return nil, memory, false, nil
		}
		message(&w, 2, answers, writeAnswerBatch)
	case *apportionv1.EvaluateSharesResponse:
		message(&w, 2, m.GetShares(), writeShares)
		message(&w, 1, m.GetBasis(), writeBasis)
	case *apportionv1.CheckEnqueueResponse:
		message(&w, 2, m.GetEnqueue(), writeEnqueue)
		message(&w, 1, m.GetBasis(), writeBasis)
	case *apportionv1.CheckAllocatableResponse:
		message(&w, 3, m.GetPreemptive(), writePreemptive)
		message(&w, 2, m.GetAllocatable(), writeAllocatable)
		message(&w, 1, m.GetBasis(), writeBasis)
	case *apportionv1.SelectVictimsResponse:
		message(&w, 2, m.GetVictims(), writeVictims)
		message(&w, 1, m.GetBasis(), writeBasis)
	case *apportionv1.SimulateResponse:
		messages(&w, 2, m.GetAnswers(), writeAnswer)
		message(&w, 1, m.GetBasis(), writeBasis)
	default:
		return nil, memory, false, nil
	}
	return w.memory[w.at:], w.memory, w.err == nil, w.err
}

func writeBasis(w *writer, m *apportionv1.Basis) {
	w.boolean(7, m.Restricted)
	w.library(6, m.View)
	for _, warning := range slices.Backward(m.Warnings) {
		w.library(5, warning)
	}
	for _, name := range slices.Backward(m.Dimensions) {
		w.room(len(name))
		w.at -= len(name)
		copy(w.memory[w.at:], name)
		w.begin(4, len(name))
	}
	w.text(3, m.SnapshotDigest)
	w.text(2, m.PolicyDigest)
	w.text(1, m.EngineVersion)
}

// BasisBytes returns an upper estimate of the size of an encoded Basis.
func BasisBytes(m *apportionv1.Basis) int {
	if m == nil || m.View != nil || len(m.Warnings) > 0 {
		return proto.Size(m)
	}
	// Tag and length, and the other field.
	const each, restricted = 1 + binary.MaxVarintLen32, 2
	bytes := 3*each + len(m.EngineVersion) + len(m.PolicyDigest) + len(m.SnapshotDigest) + restricted
	for _, name := range m.Dimensions {
		bytes += each + len(name)
	}
	return bytes
}

func writeAnswerBatch(w *writer, m *apportionv1.AnswerBatch) {
	messages(w, 2, m.Answers, writeAnswer)
	w.number(1, m.Id)
}

func writeAnswer(w *writer, m *apportionv1.Answer) {
	switch a := m.GetAnswer().(type) {
	case *apportionv1.Answer_Shares:
		member(w, 2, a.Shares, writeShares)
	case *apportionv1.Answer_Jobs:
		member(w, 3, a.Jobs, writeJobs)
	case *apportionv1.Answer_Enqueue:
		member(w, 4, a.Enqueue, writeEnqueue)
	case *apportionv1.Answer_Allocatable:
		member(w, 5, a.Allocatable, writeAllocatable)
	case *apportionv1.Answer_Preemptive:
		member(w, 6, a.Preemptive, writePreemptive)
	case *apportionv1.Answer_Reclaim:
		member(w, 7, a.Reclaim, writeVictims)
	case *apportionv1.Answer_Preempt:
		member(w, 8, a.Preempt, writeVictims)
	default:
		// The one field of an Answer, its tag included, is all of it.
		w.whole(m)
	}
}

// member writes a member of a oneof, which is there even if it holds nothing.
func member[M any](w *writer, field protowire.Number, m *M, write func(*writer, *M)) {
	before := w.size()
	if m != nil {
		write(w, m)
	}
	w.begin(field, w.size()-before)
}

// whole writes what the library makes of a message, without a field around it.
func (w *writer) whole(m proto.Message) {
	data, err := proto.Marshal(m)
	if err != nil {
		w.err = err
	}
	w.encoded(data)
}

func writeResource(w *writer, m *apportionv1.Resource) {
	if !w.plainResource(m) {
		w.doubles(2, m.Amount)
		w.numbers(1, m.Dimension)
	}
}

// plainResource writes a resource of which all tags, lengths and dimensions take a byte; false: it is not one.
func (w *writer) plainResource(m *apportionv1.Resource) bool {
	n := len(m.Amount)
	if n == 0 || 8*n >= 0x80 || n != len(m.Dimension) {
		return false
	}
	size := 2 + n + 2 + 8*n
	w.room(size)
	out := w.memory[w.at-size : w.at]
	for i, d := range m.Dimension {
		if d >= 0x80 {
			return false
		}
		out[2+i] = byte(d)
	}
	out[0], out[1] = resourceDimensionTag, byte(n)
	out[2+n], out[3+n] = resourceAmountTag, byte(8*n)
	for i, x := range m.Amount {
		binary.LittleEndian.PutUint64(out[4+n+8*i:], math.Float64bits(x))
	}
	w.at -= size
	return true
}

func writeReason(w *writer, m *apportionv1.Reason) {
	w.text(11, m.Text)
	w.text(10, m.Detail)
	w.number(9, uint64(m.HierarchyFault))
	w.text(8, m.Role)
	w.double(7, m.Limit)
	w.double(6, m.Need)
	w.double(5, m.Have)
	w.optional(4, m.Dimension)
	w.optional(3, m.Queue)
	w.number(2, uint64(m.Code))
	w.text(1, m.Plugin)
}

func writeVerdict(w *writer, m *apportionv1.Verdict) {
	messages(w, 2, m.Reasons, writeReason)
	w.number(1, uint64(m.Vote))
}

func writeEnqueue(w *writer, m *apportionv1.EnqueueAnswer) {
	messages(w, 1, m.Jobs, writeEnqueueVerdict)
}

func writeEnqueueVerdict(w *writer, m *apportionv1.EnqueueVerdict) {
	message(w, 3, m.Verdict, writeVerdict)
	w.text(2, m.Uid)
	w.number(1, uint64(m.Job))
}

func writeAllocatable(w *writer, m *apportionv1.AllocatableAnswer) {
	messages(w, 1, m.Tasks, writeTaskVerdict)
}

func writePreemptive(w *writer, m *apportionv1.PreemptiveAnswer) {
	messages(w, 1, m.Tasks, writeTaskVerdict)
}

func writeTaskVerdict(w *writer, m *apportionv1.TaskVerdict) {
	messages(w, 3, m.Checks, writeAccountCheck)
	message(w, 2, m.Verdict, writeVerdict)
	w.optional(1, m.Task)
}

func writeAccountCheck(w *writer, m *apportionv1.AccountCheck) {
	message(w, 2, m.Reason, writeReason)
	w.boolean(1, m.Passed)
}

func writeJobs(w *writer, m *apportionv1.JobsAnswer) { messages(w, 1, m.Jobs, writeJobStanding) }

func writeJobStanding(w *writer, m *apportionv1.JobStanding) {
	w.number(12, uint64(m.MinAvailable))
	w.number(11, uint64(m.TotalTasks))
	w.number(10, uint64(m.PendingBestEffortTasks))
	w.number(9, uint64(m.PipelinedTasks))
	w.number(8, uint64(m.ValidTasks))
	w.number(7, uint64(m.ReadyTasks))
	message(w, 6, m.Starving, writeVerdict)
	message(w, 5, m.Pipelined, writeVerdict)
	message(w, 4, m.Ready, writeVerdict)
	message(w, 3, m.Valid, writeVerdict)
	w.text(2, m.Uid)
	w.number(1, uint64(m.Job))
}

func writeVictims(w *writer, m *apportionv1.VictimsAnswer) {
	w.library(8, m.Plan)
	w.numbers(7, m.EvictionOrder)
	messages(w, 6, m.Checks, writeVictimCheck)
	messages(w, 5, m.Spared, writeSpared)
	messages(w, 4, m.ByPlugin, writePluginVictims)
	w.optional(3, m.Tier)
	messages(w, 2, m.Victims, writeVictim)
	w.boolean(1, m.Decided)
}

func writeVictim(w *writer, m *apportionv1.Victim) {
	w.text(2, m.Uid)
	w.number(1, uint64(m.Task))
}

func writePluginVictims(w *writer, m *apportionv1.PluginVictims) {
	w.numbers(4, m.Victims)
	w.number(3, uint64(m.Vote))
	w.number(2, uint64(m.Tier))
	w.text(1, m.Plugin)
}

func writeSpared(w *writer, m *apportionv1.Spared) {
	messages(w, 3, m.Reasons, writeReason)
	w.text(2, m.Uid)
	w.number(1, uint64(m.Task))
}

func writeVictimCheck(w *writer, m *apportionv1.VictimCheck) {
	message(w, 4, m.Reason, writeReason)
	w.boolean(3, m.Passed)
	w.number(2, uint64(m.Tier))
	w.number(1, uint64(m.Task))
}
