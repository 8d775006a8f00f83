#!/usr/bin/env bash
# bench-pgo.sh PROFILE ROUNDS: runs the benchmarks of whole calls, built without and with a profile, in turns, so that a busy machine
# disturbs both alike, and prints the least time of each and their ratio.
set -euo pipefail
cd "$(dirname "$0")/../.."

profile=$1 rounds=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go test -c -pgo=off -o "$work/without" ./tools/bench
go test -c -pgo="$PWD/$profile" -o "$work/with" ./tools/bench
cd tools/bench
for ((i = 0; i < rounds; i++)); do
  for build in without with; do
    "$work/$build" -test.run '^$' -test.bench 'Decode/tasks=100000|Call/' -test.benchtime 0.3s | awk -v build=$build '/^Bench/ { print build, $1, $3 }'
  done
done | awk '
  { key = $1 " " $2; if (!(key in least) || $3 < least[key]) least[key] = $3; names[$2] = 1 }
  END {
    line = "bench-pgo:"
    for (name in names) {
      ratio = least["with " name] / least["without " name]
      printf "%-36s %8.2f ms without, %8.2f ms with\n", name, least["without " name] / 1e6, least["with " name] / 1e6
      label = tolower(name); sub(/^benchmark/, "", label); sub(/-[0-9]+$/, "", label); gsub(/[^a-z0-9]+/, "_", label)
      line = line " " label "_ratio=" sprintf("%.2f", ratio)
    }
    print line
  }'
