#!/usr/bin/env bash
# concurrent.sh: the packages in whose tests a data race is possible, because they or the code that they run start goroutines: by a go
# statement, a method Go or Parallel, or with a server, a client or a process.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly starts='(^|[[:space:]])go[[:space:]]+(func\b|[A-Za-z_][A-Za-z0-9_.]*\()|\.Go\(|Parallel\(|"(google\.golang\.org/grpc|net/http|os/exec|testing/synctest|k8s\.io/client-go/.*)"'

# starting LABEL FIELD…: LABEL and the package, for each package with such a file among those of a field of go list.
starting() {
  local label=$1 field files=
  shift
  for field; do files+="{{range .$field}}{{\$p.ImportPath}} {{\$p.Dir}}/{{.}}{{\"\\n\"}}{{end}}"; done
  go list -f "{{\$p := .}}$files" ./... | while read -r package file; do
    [[ -z $package ]] || ! grep -qE "$starts" "$file" || echo "$label $package"
  done
}

{
  starting code GoFiles CgoFiles
  starting test TestGoFiles XTestGoFiles
  # What the tests of a package are linked with.
  go list -test -f '{{.ImportPath}} {{join .Deps " "}}' ./... | grep '^[^ ]*\.test '
} | awk '
  $1 == "code" || $1 == "test" { starts[$1, $2]; next }
  {
    sub(/\.test$/, "", $1)
    found = ("test", $1) in starts
    for (i = 1; i <= NF; i++) found = found || ("code", $i) in starts
    if (found) print $1
  }'
