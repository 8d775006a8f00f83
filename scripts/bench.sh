#!/usr/bin/env bash
# bench.sh [FLAG...]: runs benchmarks of the packages that have any, with the given flags of go test.
set -euo pipefail
cd "$(dirname "$0")/.."

listed=$(scripts/test-functions.sh Benchmark | cut -d ' ' -f 1 | sort -u)
mapfile -t packages <<<"$listed"
if [[ -z $listed ]]; then
  echo "no benchmarks"
  exit 0
fi
# One package after the other: neighbours would disturb what is measured.
exec go test -p 1 -run '^$' -benchmem "$@" "${packages[@]}"
