package model

// LeftOutCause is the reason why a job or a pod is not considered. The values are those of the contract's LeftOutCause.
type LeftOutCause uint8

// LeftOut is a job or a waiting pod of the cluster that its scheduler does not consider. It does not affect decisions.
type LeftOut struct {
	Cause           LeftOutCause
	Namespace, Name string
	// Queue, Job and Scheduler are the names that it refers to; the cause determines which of them is set.
	Queue, Job, Scheduler string
}

// maxLeftOut bounds the number of jobs and pods that are listed as left out.
const maxLeftOut = 100_000

// LeftOut adds a job or a pod that is not considered. The builder keeps its strings.
func (b *Builder) LeftOut(l LeftOut) {
	switch n := len(b.m.LeftOut); {
	case n > maxLeftOut:
	case n == maxLeftOut:
		b.faults.Add("left_out", "more than %d jobs and pods are left out", maxLeftOut)
		fallthrough
	default:
		b.m.LeftOut = append(b.m.LeftOut, l)
	}
}
