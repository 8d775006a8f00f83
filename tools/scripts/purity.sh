#!/usr/bin/env bash
# What the linters cannot say about engine/: no goroutine, channel or select, no product that an architecture
# may fuse by request, no directive that reaches behind the compiler. Tests may do as they like.
set -euo pipefail
cd "$(dirname "$0")/../.."

[[ -d engine ]] || exit 0

found=0
forbid() {
  local pattern=$1 reason=$2
  if grep -rnE --include='*.go' --exclude='*_test.go' "$pattern" engine; then
    echo "  ^ $reason" >&2
    found=1
  fi
}

forbid '^[[:space:]]*go[[:space:]]+(func\b|[A-Za-z_][A-Za-z0-9_.]*\()' 'the engine starts no goroutine'
forbid '^[[:space:]]*select[[:space:]]*\{' 'the engine waits for nothing'
forbid '\bmake\(chan\b|\bchan[[:space:]]+[A-Za-z]' 'the engine has no channels'
forbid '\bmath\.FMA\(' 'a fused product rounds differently from a product and a sum'
forbid '^//go:(linkname|noescape|nosplit)' 'the engine stays portable Go'

exit "$found"
