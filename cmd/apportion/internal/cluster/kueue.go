package cluster

import (
	"context"
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/apportion/apportion/adapter/objects"
)

// kueueGroup is the API group of Kueue.
const kueueGroup = "kueue.x-k8s.io"

// allVersions are those of Kueue's kinds, the newest first.
var allVersions = kueueResources["cohorts"].Versions

// systems say whose kinds a cluster has.
type systems struct {
	volcano bool
	// kueue are the lists of Kueue, each in one version; empty: the cluster has none.
	kueue map[string]objects.Resource
}

// discover asks the API server which API groups it has. If it does not say, or has neither system, Volcano's are assumed, and reading them
// says what is wrong.
func (r *reader) discover(ctx context.Context) systems {
	found := systems{}
	data, err := r.client.Get().AbsPath("/apis").SetHeader("Accept", "application/json").Do(ctx).Raw()
	var list metav1.APIGroupList
	if err != nil || json.Unmarshal(data, &list) != nil {
		return systems{volcano: true}
	}
	for _, g := range list.Groups {
		switch g.Name {
		case volcanoGroup:
			found.volcano = true
		case kueueGroup:
			var served []string
			for _, version := range g.Versions {
				served = append(served, version.Version)
			}
			found.kueue = r.served(ctx, served)
		}
	}
	found.volcano = found.volcano || len(found.kueue) == 0
	return found
}

// served returns the lists of Kueue in the newest version in which each is served. A kind that no version has is left out: Cohort is newer
// than the others.
func (r *reader) served(ctx context.Context, versions []string) map[string]objects.Resource {
	found := map[string]objects.Resource{"namespaces": kueueResources["namespaces"]}
	for _, version := range allVersions {
		if !slices.Contains(versions, version) {
			continue
		}
		path := "/apis/" + kueueGroup + "/" + version
		data, err := r.client.Get().AbsPath(path).SetHeader("Accept", "application/json").Do(ctx).Raw()
		var list metav1.APIResourceList
		if err != nil || json.Unmarshal(data, &list) != nil {
			continue
		}
		for _, served := range list.APIResources {
			one, known := kueueResources[served.Name]
			if _, newer := found[served.Name]; !known || newer || !slices.Contains(one.Versions, version) {
				continue
			}
			one.Versions = []string{version}
			found[served.Name] = one
		}
	}
	if len(found) == 1 {
		return nil
	}
	return found
}
