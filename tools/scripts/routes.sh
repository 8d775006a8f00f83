#!/usr/bin/env bash
# routes.sh [-v]: how many files of this project somebody has to open who follows a command or a call: those that it enters beyond those that
# the program enters as it starts, counted with coverage. -v lists the small ones among them by package, which one thought may join.
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly module=github.com/apportion/apportion cluster=examples/clusters/research small=120
verbose=${1:-}
dir=$(mktemp -d)
server=
finish() {
  [[ -z $server ]] || kill "$server" 2>/dev/null || true
  rm -rf "$dir"
}
trap finish EXIT

# A copy of what is here, whose program ends where main would begin if it is told so: what it entered until then is its start.
mkdir "$dir/tree"
git ls-files -z --cached --others --exclude-standard | tar --create --null --ignore-failed-read --files-from - | tar --extract -C "$dir/tree"
cat >"$dir/tree/cmd/apportion/zz_start.go" <<'go'
package main

import "os"

func init() {
	if os.Getenv("ROUTES_START") != "" {
		os.Exit(0)
	}
}
go
(cd "$dir/tree" && go build -buildvcs=false -cover -coverpkg="$module/..." -o "$dir/apportion" ./cmd/apportion)

# covered NAME COMMAND...: runs a command, whose answer may be no, and keeps the list of the files that it enters.
covered() {
  local name=$1 code=0
  shift
  mkdir "$dir/$name.cover"
  GOCOVERDIR="$dir/$name.cover" "$@" >/dev/null 2>"$dir/$name.err" || code=$?
  if ((code != 0 && code != 2)); then
    cat "$dir/$name.err" >&2
    return 1
  fi
  entered "$name"
}

# entered NAME: lists the files with a block that ran.
entered() {
  go tool covdata textfmt -i "$dir/$1.cover" -o "$dir/$1.text"
  sed -n "s|^$module/\(.*\):.* [1-9][0-9]*\$|\1|p" "$dir/$1.text" | sort -u >"$dir/$1"
}

# served NAME COMMAND...: the files that a server enters which answers a command, or none.
served() {
  local name=$1 address=
  shift
  mkdir "$dir/$name.cover" "$dir/$name.asked"
  : >"$dir/$name.err"
  GOCOVERDIR="$dir/$name.cover" "$dir/apportion" serve --listen 127.0.0.1:0 --drain-delay 0s 2>"$dir/$name.err" &
  server=$!
  until address=$(sed -n 's/.*msg=serving .*address=\([^ ]*\).*/\1/p' "$dir/$name.err") && [[ -n $address ]]; do
    kill -0 "$server"
    sleep 0.1
  done
  [[ $# == 0 ]] || GOCOVERDIR="$dir/$name.asked" "$dir/apportion" "$@" --server "$address" >/dev/null 2>&1 || (($? == 2))
  kill "$server"
  wait "$server" || true
  server=
  entered "$name"
}

# route NAME FROM GOAL: what NAME enters beyond FROM.
route() {
  comm -23 "$dir/$1" "$dir/$2" >"$dir/files"
  printf '%-16s %4d files, goal %d\n' "$1" "$(wc -l <"$dir/files")" "$3"
  cat "$dir/files" >>"$dir/all"
}

ROUTES_START=1 covered start "$dir/apportion" version
covered version "$dir/apportion" version
covered shares "$dir/apportion" shares -f "$cluster"
covered explain "$dir/apportion" explain language/pretrain-7b -f "$cluster"
covered whatif "$dir/apportion" whatif --job examples/jobs/track.yaml -f "$cluster"
served serve
served EvaluateShares shares -f "$cluster"
served Explain explain language/pretrain-7b -f "$cluster"

printf '%-16s %4d files, before main\n' start "$(wc -l <"$dir/start")"
route version start 40
route shares start 120
route explain start 170
route whatif start 170
route EvaluateShares serve 85
route Explain serve 115

[[ $verbose == -v ]] || exit 0
printf '\nfiles below %d lines that these routes enter, of all, by package\n' "$small"
sort -u "$dir/all" | while read -r file; do
  echo "$(dirname "$file") $(wc -l <"$file") $(basename "$file")"
done | awk -v small="$small" '{ all[$1]++; if ($2 < small) { n[$1]++; names[$1] = names[$1] " " $3 ":" $2 } }
  END { for (p in n) printf "%3d of %3d %s%s\n", n[p], all[p], p, names[p] }' | sort -rn
