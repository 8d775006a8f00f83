package wire

import "strings"

// ClusterOf returns the cluster's name in an encoded Snapshot, reading only its top level; "" if the bytes are not a Snapshot, which is
// reported when they are compiled.
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
