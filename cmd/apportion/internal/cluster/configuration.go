package cluster

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/apportion/apportion/adapter/volcano"
)

// configurationOf returns the ConfigMap of Volcano's scheduler as the API server has it, nil if there is none.
func configurationOf(ctx context.Context, client *rest.RESTClient) ([]byte, error) {
	path := core + "/namespaces/" + volcano.SystemNamespace + "/configmaps/" + volcano.ConfigMapName
	result := client.Get().AbsPath(path).SetHeader("Accept", "application/json").Do(ctx)
	data, err := result.Raw()
	if err != nil {
		err = result.Error() // What the API server says, decoded.
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return data, err
}

// Configuration returns the ConfigMap of Volcano's scheduler in the followed cluster, nil if there is none.
func (f *Follower) Configuration(ctx context.Context) ([]byte, error) {
	const patience = 10 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	data, err := configurationOf(ctx, f.client)
	if err != nil {
		return nil, failure("configmaps", err)
	}
	return data, nil
}
