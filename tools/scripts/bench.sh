#!/usr/bin/env bash
# bench.sh [FLAG...]: runs benchmarks of the packages that have any, with the given flags of go test, so that benchstat can read what is
# printed, and ends with one line of the main figures (medians over -count).
set -euo pipefail
cd "$(dirname "$0")/../.."

listed=$(tools/scripts/test-functions.sh Benchmark | cut -d ' ' -f 1 | sort -u)
mapfile -t packages <<<"$listed"
if [[ -z $listed ]]; then
  echo "no benchmarks"
  exit 0
fi
# One package after the other: neighbours would disturb what is measured.
go test -p 1 -run '^$' -benchmem "$@" "${packages[@]}" | awk '
  BEGIN {
    n = split("open_proportion_ms BenchmarkOpen/proportion 1e6," \
      "open_capacity_ms BenchmarkOpen/capacity 1e6," \
      "open_hierarchical_ms BenchmarkOpen/capacity-hierarchical 1e6," \
      "open_default_ms BenchmarkOpen/default 1e6," \
      "call_proportion_ms BenchmarkCall/proportion 1e6," \
      "decode_100k_ms BenchmarkDecode/tasks=100000 1e6," \
      "enqueue_us BenchmarkEnqueueable1000/proportion 1e6," \
      "allocatable_us BenchmarkAllocatable1000/proportion 1e6," \
      "what_if_us BenchmarkWhatIf/proportion 1e3," \
      "what_if_hierarchical_us BenchmarkWhatIf/capacity-hierarchical 1e3," \
      "reclaim_100_us BenchmarkReclaim100/proportion 1e3," \
      "reclaim_100_capacity_us BenchmarkReclaim100/capacity 1e3," \
      "reclaim_100_hierarchical_us BenchmarkReclaim100/capacity-hierarchical 1e3," \
      "deserved_10000x8_ms BenchmarkDeserved/queues=10000 1e6", figures, ",")
  }
  { print; fflush() }
  $1 == "pkg:" { package = $2 }
  # Only the benchmarks of package bench have these names in all versions.
  $4 == "ns/op" && package ~ /\/bench$/ {
    name = $1
    sub(/-[0-9]+$/, "", name)
    times[name, ++count[name]] = $3
  }
  function median(name,    i, k, t) {
    for (i = 1; i <= count[name]; i++)
      for (k = i + 1; k <= count[name]; k++)
        if (times[name, k] < times[name, i]) { t = times[name, i]; times[name, i] = times[name, k]; times[name, k] = t }
    return times[name, int((count[name] + 1) / 2)]
  }
  END {
    line = "bench:"
    for (i = 1; i <= n; i++) {
      split(figures[i], f, " ")
      if (count[f[2]]) line = line sprintf(" %s=%.4g", f[1], median(f[2]) / f[3])
    }
    print line
  }'
