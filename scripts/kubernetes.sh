#!/usr/bin/env bash
# kubernetes.sh PROGRAM…: builds programs of Kubernetes (kube-apiserver, kube-scheduler) and the scheduler with the plugin
# (apportion-kube-scheduler) into .bin, and installs etcd from Debian's packages where it is missing. One module pins the versions of all,
# adapter/kubescheduler/cmd, so that they share what they compile.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v etcd >/dev/null || scripts/debian.sh etcd-server
tools=$PWD/.bin
mkdir -p "$tools"
cd adapter/kubescheduler/cmd
# Kueue asks the API server for its version, which a build from the module does not know.
version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
for program in "$@"; do
  package=k8s.io/kubernetes/cmd/$program
  [[ $program != apportion-kube-scheduler ]] || package=./$program
  CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$version" \
    -o "$tools/$program" "$package"
done
