// Package reference holds our answers against recorded answers of Volcano: it reads case files of the form that
// testdata/reference/README.md describes, asks the questions of each case in the recorded order, brings the answers into the recorded form,
// and compares the two leaf by leaf.
//
// One answer is one leaf of a case's `expect`: a number, a truth value, a name (of a queue in an order, of a task among the victims), a
// null, or one dimension of a resource. A leaf that only we have is one more answer, and a different one. Numbers agree within a relative
// 1e-9, or an absolute 1e-9 where one of them is 0; everything else, the presence of a dimension included, agrees exactly. Every answer is
// computed along several ways (in the process, and through the service); it is counted once, and equal only if it is equal along all of
// them.
//
// Four things are equal though they are not written alike:
//   - No victims are null in the recording and an empty list here: Volcano's code does not tell a nil slice from an empty one, and neither
//     do its callers.
//   - The number of a comparison is compared by its sign, as all its callers use it.
//   - Why a job is not valid and why a node does not fit are compared by kind; Volcano's English words are not.
//   - A task on a node that no manifest declares keeps the name in Volcano and has no node here, where nodes are referred to by position.
//
// Rules that look at the case alone say which answers are not compared; see Rule.
package reference
