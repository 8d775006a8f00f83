#!/usr/bin/env bash
# test-schedulers.sh: builds Kubernetes' scheduler with the plugin of adapter/kubescheduler (three minutes of processor time the first time) and tests
# it against a real API server with etcd. TESTFLAGS selects tests; the flags -nodes and -pods set the size of the measurement:
# TESTFLAGS='-run Measured -args -nodes 5000 -pods 10000'.
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly tools=$PWD/.bin

tools/scripts/schedulers.sh kube-apiserver apportion-kube-scheduler
CGO_ENABLED=0 go build -buildvcs=false -o "$tools/apportion" ./cmd/apportion
# shellcheck disable=SC2086 # TESTFLAGS may hold several flags.
cd adapter/kubescheduler && KUBE_APISERVER=$tools/kube-apiserver PLUGIN_KUBE_SCHEDULER=$tools/apportion-kube-scheduler APPORTION=$tools/apportion \
  go test -tags cluster -count=1 -timeout 60m -v . ${TESTFLAGS:-}
