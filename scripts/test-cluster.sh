#!/usr/bin/env bash
# test-cluster.sh: runs the tests against a real API server with etcd. The API server is built once from the module that tools/cluster pins;
# etcd is installed from Debian's packages where it is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v etcd >/dev/null; then
  apt-get update -qq && apt-get install -y -qq --no-install-recommends etcd-server
fi
tools=$PWD/.bin
server=$tools/kube-apiserver
if [[ ! -x $server || tools/cluster/go.mod -nt $server ]]; then
  mkdir -p "$tools"
  (cd tools/cluster && CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '-s -w' -o "$server" k8s.io/kubernetes/cmd/kube-apiserver)
fi
KUBE_APISERVER=$server go test -tags cluster -count=1 -timeout 30m -v -run RealAPIServer ./cmd/apportion/internal/cluster
