// Package kubescheduler is a plugin of Kubernetes' scheduler that lets Apportion decide for the pods of queues: which may enter, which
// comes next, on which nodes they run, and which pods make room for them.
//
// A loop follows the cluster in a client.Mirror. When something has changed, it opens a session on the State and asks what package cycle
// says: who is admitted, who is first, and a plan for each gang or pod. The scheduler carries out a plan. PreEnqueue lets a pod through
// when it has a place in a plan, PreFilter leaves the planned node, PostFilter evicts the victims of the plan and nominates the node, and
// Permit waits until the whole gang has its nodes. All other plugins of the scheduler keep their say: if one refuses the planned node, the
// plan is withdrawn, and the next one leaves out the node for a while.
//
// Pods without a queue pass all of this.
package kubescheduler
