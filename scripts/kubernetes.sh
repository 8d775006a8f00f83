#!/usr/bin/env bash
# kubernetes.sh PROGRAM…: builds programs of Kubernetes (kube-apiserver, kube-scheduler) from the module that tools/cluster pins into .bin, unless
# they are there, and installs etcd from Debian's packages where it is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v etcd >/dev/null || { apt-get update -qq && apt-get install -y -qq --no-install-recommends etcd-server; }
tools=$PWD/.bin
mkdir -p "$tools"
cd tools/cluster
# Kueue asks the API server for its version, which a build from the module does not know.
version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
for program in "$@"; do
  [[ -x $tools/$program && ! go.mod -nt $tools/$program ]] || CGO_ENABLED=0 go build -trimpath -buildvcs=false \
    -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$version" -o "$tools/$program" "k8s.io/kubernetes/cmd/$program"
done
