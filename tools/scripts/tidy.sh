#!/usr/bin/env bash
# tidy.sh [-diff] MODULE…: tidies go.mod and go.sum of modules in these folders; with -diff it changes nothing, and fails if one is not tidy. The
# modules of this project require each other in the version of the coming release, which no registry has yet, and `go mod tidy` knows no
# workspace: a copy of each go.mod is tidied in which they stand as they lie here.
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly root=$PWD project=github.com/apportion/apportion
diff=
[[ ${1:-} != -diff ]] || { diff=1; shift; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export GOWORK=off
# What a module may stand on: those that users get.
replace=() drop=()
for folder in "" /adapter /adapter/kubescheduler; do
  module=$project$folder
  replace+=("-replace=$module=$root$folder") drop+=("-dropreplace=$module")
done

stale=
for folder in "$@"; do
  cp "$folder"/go.{mod,sum} "$work"
  (cd "$folder" && go mod edit "${replace[@]}" "$work/go.mod" && go mod tidy -modfile="$work/go.mod" && go mod edit "${drop[@]}" "$work/go.mod")
  for file in go.mod go.sum; do
    if [[ -z $diff ]]; then
      cmp -s "$folder/$file" "$work/$file" || cp "$work/$file" "$folder/$file"
    else
      diff --unified "$folder/$file" "$work/$file" || stale=1
    fi
  done
done
[[ -z $stale ]] || { echo "a go.mod or go.sum is not tidy: run 'make tidy'" >&2; exit 1; }
