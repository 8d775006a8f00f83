#!/usr/bin/env bash
# test-cluster.sh: runs the tests against a real API server with etcd, Kubernetes' scheduler and Kueue's manager, which is built once from Kueue's
# module; the tests use the definitions of kinds in it. TESTFLAGS selects tests, PACKAGES their packages.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly kueue=v0.19.2 tools=$PWD/.bin

scripts/kubernetes.sh kube-apiserver kube-scheduler
if [[ ! -x $tools/kueue-$kueue ]]; then
  CGO_ENABLED=0 GOBIN=$tools/installed go install -trimpath -ldflags '-s -w' "sigs.k8s.io/kueue/cmd/kueue@$kueue"
  mv "$tools/installed/kueue" "$tools/kueue-$kueue" && rmdir "$tools/installed"
fi
definitions=$(go mod download -json "sigs.k8s.io/kueue@$kueue" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')/config/components/crd/bases
# shellcheck disable=SC2086 # TESTFLAGS and PACKAGES may hold several words.
KUBE_APISERVER=$tools/kube-apiserver KUBE_SCHEDULER=$tools/kube-scheduler KUEUE=$tools/kueue-$kueue KUEUE_CRDS=$definitions \
  go test -tags cluster -count=1 -timeout 60m -v ${TESTFLAGS:--run RealAPIServer} ${PACKAGES:-./cmd/apportion/internal/cluster ./adapter/kueue/admission}
