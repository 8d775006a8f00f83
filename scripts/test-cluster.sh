#!/usr/bin/env bash
# test-cluster.sh: runs the tests against a real API server with etcd, Kubernetes' scheduler and Kueue's manager. The first two programs are built
# once from the module that tools/cluster pins, Kueue's from its own module, whose definitions of kinds the tests use; etcd is installed from
# Debian's packages where it is missing. TESTFLAGS selects tests, PACKAGES their packages.
set -euo pipefail
cd "$(dirname "$0")/.."

# Kueue asks the API server for its version, which a build from the module does not know.
readonly kueue=v0.19.2 kubernetes=v1.35.3

if ! command -v etcd >/dev/null; then
  apt-get update -qq && apt-get install -y -qq --no-install-recommends etcd-server
fi
tools=$PWD/.bin
mkdir -p "$tools"
for program in kube-apiserver kube-scheduler; do
  if [[ ! -x $tools/$program || tools/cluster/go.mod -nt $tools/$program ]]; then
    (cd tools/cluster && CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$kubernetes" \
      -o "$tools/$program" "k8s.io/kubernetes/cmd/$program")
  fi
done
if [[ ! -x $tools/kueue-$kueue ]]; then
  CGO_ENABLED=0 GOBIN=$tools/installed go install -trimpath -ldflags '-s -w' "sigs.k8s.io/kueue/cmd/kueue@$kueue"
  mv "$tools/installed/kueue" "$tools/kueue-$kueue" && rmdir "$tools/installed"
fi
definitions=$(go mod download -json "sigs.k8s.io/kueue@$kueue" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')/config/components/crd/bases
# shellcheck disable=SC2086 # TESTFLAGS and PACKAGES may hold several words.
KUBE_APISERVER=$tools/kube-apiserver KUBE_SCHEDULER=$tools/kube-scheduler KUEUE=$tools/kueue-$kueue KUEUE_CRDS=$definitions \
  go test -tags cluster -count=1 -timeout 60m -v ${TESTFLAGS:--run RealAPIServer} ${PACKAGES:-./cmd/apportion/internal/cluster ./adapter/kueue/admission}
