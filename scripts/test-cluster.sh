#!/usr/bin/env bash
# test-cluster.sh: runs the tests against a real API server with etcd and Kubernetes' scheduler. Both programs are built once from the module
# that tools/cluster pins; etcd is installed from Debian's packages where it is missing. TESTFLAGS selects tests.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v etcd >/dev/null; then
  apt-get update -qq && apt-get install -y -qq --no-install-recommends etcd-server
fi
tools=$PWD/.bin
mkdir -p "$tools"
for program in kube-apiserver kube-scheduler; do
  if [[ ! -x $tools/$program || tools/cluster/go.mod -nt $tools/$program ]]; then
    (cd tools/cluster && CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '-s -w' -o "$tools/$program" "k8s.io/kubernetes/cmd/$program")
  fi
done
# shellcheck disable=SC2086 # TESTFLAGS may hold several flags.
KUBE_APISERVER=$tools/kube-apiserver KUBE_SCHEDULER=$tools/kube-scheduler \
  go test -tags cluster -count=1 -timeout 60m -v ${TESTFLAGS:--run RealAPIServer} ./cmd/apportion/internal/cluster
