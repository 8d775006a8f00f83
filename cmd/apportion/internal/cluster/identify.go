package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/apportion/apportion/ledger"
)

// Identify says which cluster the ledger is about. It returns an error if it is about another one.
func (m *Memory) Identify(cluster string) error {
	var err error
	m.File.Change(func(l *ledger.Ledger) { err = l.Identify(cluster) })
	if errors.Is(err, ledger.ErrCluster) {
		return fmt.Errorf("%w: apportion usage adopt says that it is about this one", err)
	}
	m.identified = m.identified || err == nil
	return err
}

// identify makes the ledger one of the followed cluster, by the uid of the namespace kube-system, which a cluster keeps as long as it
// exists. It returns an error if the ledger is about another cluster: its usage must not count in this one. A cluster whose namespace may
// not be read is not told apart.
func (f *Follower) identify(ctx context.Context) error {
	m := f.options.Memory
	if m == nil || m.identified {
		return nil
	}
	const patience = 10 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var namespace struct {
		Metadata struct {
			UID string `json:"uid"`
		} `json:"metadata"`
	}
	result := f.client.Get().AbsPath(core+"/namespaces/kube-system").SetHeader("Accept", "application/json").Do(ctx)
	data, err := result.Raw()
	if err != nil {
		err = result.Error() // What the API server says, decoded.
	} else {
		err = json.Unmarshal(data, &namespace)
	}
	uid := namespace.Metadata.UID
	switch {
	case apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsUnauthorized(err) || err == nil && uid == "":
		f.options.Logger.WarnContext(ctx, "the namespace kube-system cannot be read, so a ledger of another cluster would not be noticed",
			"setting", "ledger.cluster")
		m.identified = true
		return nil
	case err != nil:
		return fmt.Errorf("the cluster of the ledger is not known yet: %w", err)
	}
	return m.Identify(uid)
}
