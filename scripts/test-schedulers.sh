#!/usr/bin/env bash
# test-schedulers.sh: builds Kubernetes' scheduler with the plugin of adapter/kubescheduler (three minutes of processor time the first time) and tests
# it against a real API server and etcd, which scripts/test-cluster.sh builds and installs. TESTFLAGS selects tests; the flags -nodes and -pods set
# the size of the measurement: TESTFLAGS='-run Measured -args -nodes 5000 -pods 10000'.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v etcd >/dev/null; then
  apt-get update -qq && apt-get install -y -qq --no-install-recommends etcd-server
fi
tools=$PWD/.bin
mkdir -p "$tools"
if [[ ! -x $tools/kube-apiserver || tools/cluster/go.mod -nt $tools/kube-apiserver ]]; then
  # As in scripts/test-cluster.sh, which shares the program: Kueue asks for its version.
  (cd tools/cluster && CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '-s -w -X k8s.io/component-base/version.gitVersion=v1.35.3' \
    -o "$tools/kube-apiserver" k8s.io/kubernetes/cmd/kube-apiserver)
fi
(cd adapter/kubescheduler/cmd && CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '-s -w' -o "$tools/apportion-kube-scheduler" ./apportion-kube-scheduler)
CGO_ENABLED=0 go build -buildvcs=false -o "$tools/apportion" ./cmd/apportion
# shellcheck disable=SC2086 # TESTFLAGS may hold several flags.
cd adapter/kubescheduler && KUBE_APISERVER=$tools/kube-apiserver PLUGIN_KUBE_SCHEDULER=$tools/apportion-kube-scheduler APPORTION=$tools/apportion \
  go test -tags cluster -count=1 -timeout 60m -v . ${TESTFLAGS:-}
