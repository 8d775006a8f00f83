//go:build tools

// Package cluster pins the API server and the scheduler that the tests against a real cluster start.
package cluster

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
)
