// Package chart holds the chart of deploy/chart, and the manifests beside it, to what Kubernetes and this server accept. It is a module of
// its own because Helm's engine and Kubernetes' types are many.
package chart
