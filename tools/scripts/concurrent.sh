#!/usr/bin/env bash
# concurrent.sh: the packages whose tests run under the race detector: those that start goroutines, in their code or in their tests, by a go
# statement or a method Go, or with a server or a client of gRPC, HTTP or Kubernetes. Packages that only link such code would find nothing
# that its own tests do not; examples start a server and ask it from one goroutine.
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly starts='^[^/]*((^|[[:space:]])go[[:space:]]+(func\b|[A-Za-z_][A-Za-z0-9_.]*\()|\.Go\(|"(google\.golang\.org/grpc|net/http|testing/synctest|k8s\.io/client-go/.*)")'

# Those with tests, a line for each file: the package and the file.
go list -f '{{$p := .}}{{if or .TestGoFiles .XTestGoFiles}}{{range .GoFiles}}{{$p.ImportPath}} {{$p.Dir}}/{{.}}
{{end}}{{range .TestGoFiles}}{{$p.ImportPath}} {{$p.Dir}}/{{.}}
{{end}}{{range .XTestGoFiles}}{{$p.ImportPath}} {{$p.Dir}}/{{.}}
{{end}}{{end}}' work | while read -r package file; do
  [[ -z $package ]] || ! grep -qE "$starts" "$file" || echo "$package"
done | grep -v /examples/ | sort -u
