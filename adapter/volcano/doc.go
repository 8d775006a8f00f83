// Package volcano reads the objects of a cluster as kubectl prints them, and volcano-scheduler.conf. It returns the Snapshot and the Policy
// that decide as Volcano would.
//
// Rules that belong to Kubernetes' and Volcano's way of writing things live here and nowhere else: units and their rounding, resource names
// that Volcano drops, defaults, labels and annotations. Tests compare the results with those of Volcano for the same objects
// (testdata/reference).
//
// Input that Volcano or Kubernetes would refuse is an *Error that names every place; input that they accept but leave out, or that has
// no effect, is a warning.
package volcano
