#!/usr/bin/env bash
# fuzz.sh TIME: runs every fuzz target for TIME (10s, 500x), one after the other.
set -euo pipefail
cd "$(dirname "$0")/../.."

time=${1:-10s}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cache=$(go env GOCACHE)/fuzz
built=
count=0
while read -r package target; do
  [[ -n $target ]] || continue
  echo "-- $package $target"
  # The targets of a package are compiled once.
  [[ $package == "$built" ]] || go test -c -vet=off -fuzz . -o "$work/fuzz.test" "$package"
  built=$package
  if ! (cd "$(go list -f '{{.Dir}}' "$package")" && "$work/fuzz.test" -test.run '^$' -test.fuzz "^$target\$" -test.fuzzminimizetime 1x \
    -test.fuzztime "$time" -test.fuzzcachedir "$cache/$package") 2>&1 | tee "$work/log"; then
    # Before Go 1.27 the end of the time can count as a failure: https://go.dev/issue/75804. A true one has an input, a panic or a reason of its own.
    [[ $(grep -A2 '^--- FAIL' "$work/log" | tail -n +2) == $'    context deadline exceeded\nFAIL' ]] || exit 1
    echo "the time ended while an input was tried"
  fi
  count=$((count + 1))
done <<<"$(tools/scripts/test-functions.sh Fuzz)"
echo "$count fuzz targets, $time each"
