#!/usr/bin/env bash
# concurrent.sh: the packages with tests in which a data race is possible: all but those of the engine, which starts no goroutines
# (scripts/purity.sh), whose tests start none either.
set -euo pipefail
cd "$(dirname "$0")/.."

go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}}{{end}}' ./... | while read -r package directory; do
  [[ -n $package ]] || continue
  if [[ $package == */engine || $package == */engine/* ]] &&
    ! grep -qE '(^|[[:space:]])go[[:space:]]+(func\b|[A-Za-z_][A-Za-z0-9_.]*\()|\.Go\(|Parallel\(|synctest|internal/test/|/client"|/service"' "$directory"/*_test.go; then
    continue
  fi
  echo "$package"
done
