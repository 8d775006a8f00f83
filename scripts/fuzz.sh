#!/usr/bin/env bash
# fuzz.sh TIME: runs every fuzz target of this module for TIME (10s, 500x), one after the other.
set -euo pipefail
cd "$(dirname "$0")/.."

time=${1:-10s}
targets=$(scripts/test-functions.sh Fuzz)
count=0
while read -r package target; do
  [[ -n $target ]] || continue
  echo "-- $package $target"
  go test -run '^$' -fuzz "^$target\$" -fuzzminimizetime 1x -fuzztime "$time" "$package"
  count=$((count + 1))
done <<<"$targets"
echo "$count fuzz targets, $time each"
