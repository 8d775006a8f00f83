#!/usr/bin/env bash
# bench-pair.sh COMMIT ROUNDS [BENCH]: runs the benchmarks of bench/cost_test.go in a build of another commit and in one of the work tree, in
# turns, so that a busy machine disturbs both alike, and prints the median processor time of each, and the median of the ratios of neighbours.
set -euo pipefail
cd "$(dirname "$0")/.."

commit=$1 rounds=$2 bench=${3:-Cost}
work=$(mktemp -d)
trap 'git worktree remove --force "$work/tree"; rm -rf "$work"' EXIT
git worktree add --quiet --detach "$work/tree" "$commit"
cp bench/cost_test.go "$work/tree/bench/"
(cd "$work/tree" && go test -c -o "$work/before" ./bench)
go test -c -o "$work/after" ./bench
cd bench
for ((i = 0; i < rounds; i++)); do
  # The order alternates, because the second of two runs finds warm caches.
  builds="before after"
  if ((i % 2)); then builds="after before"; fi
  for build in $builds; do
    "$work/$build" -test.run '^$' -test.bench "$bench" -test.benchtime 30x |
      awk -v build=$build -v round=$i '/^Bench/ { for (k = 3; k < NF; k++) if ($(k + 1) == "cpu-ns/op") print build, round, $1, $k }'
  done
done | awk '
  { time[$1, $3, $2] = $4; names[$3] = 1; rounds = $2 + 1 }
  function median(values, n,   i, k, t) {
    for (i = 0; i < n; i++) for (k = i + 1; k < n; k++) if (values[k] < values[i]) { t = values[i]; values[i] = values[k]; values[k] = t }
    return n % 2 ? values[int(n / 2)] : (values[n / 2 - 1] + values[n / 2]) / 2
  }
  END {
    printf "%-44s %12s %12s %8s\n", "processor time", "before, ms", "after, ms", "ratio"
    for (name in names) {
      for (i = 0; i < rounds; i++) {
        before[i] = time["before", name, i]; after[i] = time["after", name, i]; ratio[i] = after[i] / before[i]
      }
      printf "%-44s %12.3f %12.3f %8.3f\n", name, median(before, rounds) / 1e6, median(after, rounds) / 1e6, median(ratio, rounds)
    }
  }' | sort
