#!/usr/bin/env bash
# test-functions.sh PREFIX: one line "package function" for each test function of this project whose name
# starts with PREFIX (Benchmark, Fuzz).
set -euo pipefail
cd "$(dirname "$0")/../.."

prefix=$1
files='{{$p := .}}{{range .TestGoFiles}}{{$p.ImportPath}} {{$p.Dir}}/{{.}}{{"\n"}}{{end}}'
files+='{{range .XTestGoFiles}}{{$p.ImportPath}} {{$p.Dir}}/{{.}}{{"\n"}}{{end}}'

go list -f "$files" work | while read -r package file; do
  if [[ -n $package ]]; then
    sed -n -E "s|^func (${prefix}[A-Z0-9_][A-Za-z0-9_]*)\(.*|$package \1|p" "$file"
  fi
done
