// Package admission is a controller of Kueue's AdmissionChecks that lets Apportion decide which Workloads may start. Kueue reserves quota
// for a Workload; its check becomes Ready when a policy admits it, and says in a sentence why not until then.
//
// A loop follows Kueue's objects. After each change it puts them, as a policy other than Kueue's sees them (package asfair), into a
// client.Mirror, and package round asks who is admitted and who must leave. Decisions are written into status.admissionChecks, the field in
// which Kueue waits for them: Ready admits; Retry, together with the condition Evicted, evicts a Workload that must leave, or takes back
// the quota of one that waits; Rejected deactivates it. Nothing else is kept: after a restart the loop goes on from what the objects say.
package admission
