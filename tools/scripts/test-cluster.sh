#!/usr/bin/env bash
# test-cluster.sh: runs the tests against a real API server with etcd, Kubernetes' scheduler and Kueue's manager, whose definitions of kinds they
# use. TESTFLAGS selects tests, PACKAGES their packages.
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly tools=$PWD/.bin

tools/scripts/schedulers.sh kube-apiserver kube-scheduler kueue
# shellcheck disable=SC2086 # TESTFLAGS and PACKAGES may hold several words.
KUBE_APISERVER=$tools/kube-apiserver KUBE_SCHEDULER=$tools/kube-scheduler KUEUE=$tools/kueue KUEUE_CRDS=$tools/kueue-definitions \
  go test -tags cluster -count=1 -timeout 60m -v ${TESTFLAGS:--run RealAPIServer} ${PACKAGES:-./cmd/apportion/internal/cluster ./adapter/kueue/admission}
