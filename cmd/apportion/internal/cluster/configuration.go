package cluster

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/adapter/volcano/schedulerconf"
)

// configurationOf returns the ConfigMap of Volcano's scheduler as the API server has it, and the scheduler's Deployment, whose image says
// the release; none of them if there is no ConfigMap. That there is no such Deployment, or that it may not be read, is no fault. Where the
// ConfigMap may not be read the error is that of the API server.
func configurationOf(ctx context.Context, client *rest.RESTClient) (objects [][]byte, err error) {
	const namespace = "/namespaces/" + schedulerconf.SystemNamespace
	for _, path := range [][2]string{
		{"configmaps", core + namespace + "/configmaps/" + schedulerconf.ConfigMapName},
		{"deployments", "/apis/apps/v1" + namespace + "/deployments/" + schedulerconf.DeploymentName},
	} {
		result := client.Get().AbsPath(path[1]).SetHeader("Accept", "application/json").Do(ctx)
		data, err := result.Raw()
		if err != nil {
			err = result.Error() // What the API server says, decoded.
		}
		switch {
		case apierrors.IsNotFound(err), apierrors.IsForbidden(err) && len(objects) > 0:
			return objects, nil
		case apierrors.IsForbidden(err):
			return nil, err
		case err != nil:
			return nil, failure(path[0], err)
		}
		objects = append(objects, data)
	}
	return objects, nil
}

// Configuration returns the ConfigMap of Volcano's scheduler in the followed cluster, and the scheduler's Deployment if it can be read.
// There is none of them without the ConfigMap.
func (f *Follower) Configuration(ctx context.Context) ([]objects.Source, error) {
	const patience = 10 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	objects, err := configurationOf(ctx, f.client)
	if apierrors.IsForbidden(err) {
		err = failure("configmaps", err)
	}
	if err != nil {
		return nil, err
	}
	return sourcesOf("the followed cluster", objects), nil
}

// sourcesOf returns objects as sources of one name.
func sourcesOf(name string, read [][]byte) (sources []objects.Source) {
	for _, data := range read {
		sources = append(sources, objects.Source{Name: name, Data: data})
	}
	return sources
}
