package wire

import "strings"

// ClusterOf returns the cluster that an encoded Snapshot names, reading no deeper than its top level; "" if the bytes are no Snapshot, of
// which the caller that compiles them receives.
func ClusterOf(data []byte) string {
	cluster := ""
	var f field
	s := scanner{rest: data}
	for s.next(&f) {
		if f.number == 2 && f.kind == delimited {
			cluster = s.text(&f)
		}
	}
	if s.bad {
		return ""
	}
	return strings.Clone(cluster)
}
