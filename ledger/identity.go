package ledger

import (
	"errors"
	"fmt"
)

// ErrCluster says that a ledger is about another cluster.
var ErrCluster = errors.New("the ledger is about another cluster")

// Cluster returns the identity of the cluster that the ledger is about, empty if it is not known.
func (l *Ledger) Cluster() string { return l.cluster }

// Identify says which cluster the ledger is about. A ledger that does not know takes it; an empty identity changes nothing. It returns an
// ErrCluster if the ledger is about another one.
func (l *Ledger) Identify(cluster string) error {
	if cluster == "" || cluster == l.cluster {
		return nil
	}
	if l.cluster != "" {
		return fmt.Errorf("%w: %q, not %q", ErrCluster, l.cluster, cluster)
	}
	l.Adopt(cluster)
	return nil
}

// Adopt makes the ledger one of a cluster, whatever it was about before. An empty identity changes nothing.
func (l *Ledger) Adopt(cluster string) {
	if cluster != "" && cluster != l.cluster {
		l.cluster, l.dirty.head = cluster, true
	}
}
