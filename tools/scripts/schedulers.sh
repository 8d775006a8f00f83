#!/usr/bin/env bash
# schedulers.sh [PROGRAM…]: builds into .bin what tests against real schedulers run (default: all four), and installs etcd from Debian's packages
# where it is missing: kube-apiserver, kube-scheduler, apportion-kube-scheduler (with the plugin) and kueue (its manager). One module,
# adapter/kubescheduler/cmd, pins the version of the first three, so that they share what they compile. Beside Kueue's manager lie the definitions
# of its kinds, kueue-definitions. With nothing compiled all take half an hour of processor time.
set -euo pipefail
cd "$(dirname "$0")/../.."

command -v etcd >/dev/null || tools/scripts/debian.sh etcd-server
readonly kueue=v0.19.2 tools=$PWD/.bin
mkdir -p "$tools"
export CGO_ENABLED=0
(($#)) || set -- kube-apiserver kube-scheduler apportion-kube-scheduler kueue

# version MODULE: the version that the module of this folder pins.
version() { go list -m -f '{{.Version}}' "$1"; }

for program in "$@"; do
  case $program in
    kueue)
      GOBIN=$tools go install -trimpath -ldflags '-s -w' "sigs.k8s.io/kueue/cmd/kueue@$kueue"
      module=$(go mod download -json "sigs.k8s.io/kueue@$kueue" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
      ln -sfn "$module/config/components/crd/bases" "$tools/kueue-definitions"
      ;;
    *)
      package=k8s.io/kubernetes/cmd/$program
      [[ $program != apportion-kube-scheduler ]] || package=./$program
      # Kueue asks the API server for its version, which a build from the module does not know.
      (cd adapter/kubescheduler/cmd && go build -trimpath -buildvcs=false \
        -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$(version k8s.io/kubernetes)" -o "$tools/$program" "$package")
      ;;
  esac
done
