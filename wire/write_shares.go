package wire

import (
	"slices"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

func writeShares(w *writer, m *apportionv1.SharesAnswer) {
	messages(w, 2, m.Standings, writeQueueStanding)
	messages(w, 1, m.Plugins, writePluginShares)
}

func writePluginShares(w *writer, m *apportionv1.PluginShares) {
	for _, others := range slices.Backward(m.Others) {
		w.library(10, others)
	}
	w.library(9, m.Fair)
	w.library(8, m.Capacity)
	w.library(7, m.Proportion)
	messages(w, 6, m.Tree, writeTreeNode)
	messages(w, 5, m.Jobs, writeJobShare)
	w.encoded(m.ProtoReflect().GetUnknown())
	messages(w, 4, m.Queues, writeQueueShare)
	messages(w, 3, m.HierarchyReasons, writeReason)
	if m.HierarchyReady != nil {
		ready := uint32(0)
		if *m.HierarchyReady {
			ready = 1
		}
		w.optional(2, &ready)
	}
	w.text(1, m.Plugin)
}

func writeQueueShare(w *writer, m *apportionv1.QueueShare) {
	w.numbers(17, m.Children)
	w.numbers(16, m.Ancestors)
	w.boolean(15, m.Overused)
	w.optional(14, m.Dominant)
	w.double(13, m.Share)
	message(w, 12, m.RealCapability, writeResource)
	message(w, 11, m.Capability, writeResource)
	message(w, 10, m.Elastic, writeResource)
	message(w, 9, m.Inqueue, writeResource)
	message(w, 8, m.Request, writeResource)
	message(w, 7, m.Allocated, writeResource)
	message(w, 6, m.Deserved, writeResource)
	message(w, 5, m.Guarantee, writeResource)
	w.number(4, uint64(m.Weight))
	w.boolean(3, m.Participating)
	w.text(2, m.Name)
	w.number(1, uint64(m.Queue))
}

func writeQueueStanding(w *writer, m *apportionv1.QueueStanding) {
	messages(w, 5, m.Reasons, writeReason)
	w.optional(4, m.Rank)
	w.boolean(3, m.Overused)
	w.text(2, m.Name)
	w.number(1, uint64(m.Queue))
}

func writeJobShare(w *writer, m *apportionv1.JobShare) {
	message(w, 5, m.Allocated, writeResource)
	w.optional(4, m.Dominant)
	w.double(3, m.Share)
	w.text(2, m.Uid)
	w.number(1, uint64(m.Job))
}

func writeTreeNode(w *writer, m *apportionv1.TreeNode) {
	w.optional(9, m.Dominant)
	w.optional(8, m.Job)
	message(w, 7, m.Allocated, writeResource)
	message(w, 6, m.Request, writeResource)
	w.boolean(5, m.Saturated)
	w.double(4, m.Share)
	w.double(3, m.Weight)
	w.text(2, m.Name)
	w.optional(1, m.Parent)
}
