#!/usr/bin/env bash
# bench-pair.sh COMMIT ROUNDS [BENCH]: runs the benchmarks of package bench, each commit its own, in a build of another commit and in one of the
# work tree, in turns, so that a busy machine disturbs both alike. It prints for each row the median processor time of both, and the median of
# the ratios of neighbours. Rows are the same if their names are; a row that only one of the two has is listed without a ratio.
set -euo pipefail
cd "$(dirname "$0")/../.."

commit=$1 rounds=$2 bench=${3:-Cost}
work=$(mktemp -d)
trap 'git worktree remove --force "$work/tree"; rm -rf "$work"' EXIT
git worktree add --quiet --detach "$work/tree" "$commit"

# compile TREE PROGRAM: compiles a tree's benchmarks and leaves their folder, in which they run, in PROGRAM.folder.
compile() (
  cd "$1"
  files=$(git ls-files '*bench/cost_test.go')
  if [[ $(wc -l <<<"$files") != 1 || -z $files ]]; then
    echo "bench-pair.sh: $1 has not exactly one bench/cost_test.go" >&2
    exit 1
  fi
  folder=$1/$(dirname "$files")
  (cd "$folder" && go test -vet=off -c -o "$2" .)
  echo "$folder" >"$2.folder"
)
compile "$work/tree" "$work/before"
compile "$PWD" "$work/after"

for ((i = 0; i < rounds; i++)); do
  # The order alternates, because the second of two runs finds warm caches.
  builds="before after"
  if ((i % 2)); then builds="after before"; fi
  for build in $builds; do
    (cd "$(<"$work/$build.folder")" && "$work/$build" -test.run '^$' -test.bench "$bench" -test.benchtime 30x) |
      awk -v build=$build -v round=$i '/^Bench/ { for (k = 3; k < NF; k++) if ($(k + 1) == "cpu-ns/op") print build, round, $1, $k }'
  done
done | awk '
  { time[$1, $3, $2] = $4; names[$3] = 1; has[$1, $3] = 1; rounds = $2 + 1 }
  function median(values, n,   i, k, t) {
    for (i = 0; i < n; i++) for (k = i + 1; k < n; k++) if (values[k] < values[i]) { t = values[i]; values[i] = values[k]; values[k] = t }
    return n % 2 ? values[int(n / 2)] : (values[n / 2 - 1] + values[n / 2]) / 2
  }
  function milliseconds(build, name,   i, all) {
    if (!((build, name) in has)) return "-"
    for (i = 0; i < rounds; i++) all[i] = time[build, name, i]
    return sprintf("%.3f", median(all, rounds) / 1e6)
  }
  function compared(name,   i, ratio) {
    if (!(("before", name) in has && ("after", name) in has)) return "-"
    for (i = 0; i < rounds; i++) ratio[i] = time["after", name, i] / time["before", name, i]
    return sprintf("%.3f", median(ratio, rounds))
  }
  END {
    printf "%-44s %12s %12s %8s\n", "processor time", "before, ms", "after, ms", "ratio"
    for (name in names) printf "%-44s %12s %12s %8s\n", name, milliseconds("before", name), milliseconds("after", name), compared(name)
  }' | { IFS= read -r head; echo "$head"; sort; }
