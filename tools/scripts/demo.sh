#!/usr/bin/env bash
# Shows Apportion on a sample cluster: builds the binary, serves on a free loopback port, asks over gRPC who deserves what and why a job
# waits, and stops the server, whatever happens.
set -eu -o pipefail
cd "$(dirname "$0")/../.."

cluster=examples/clusters/research
apportion=bin/apportion
log=$(mktemp)
server=

finish() {
  code=$?
  if [ -n "$server" ]; then
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
  fi
  if [ "$code" -ne 0 ]; then
    echo "the demo failed" >&2
    sed 's/^/the server said: /' "$log" >&2
  fi
  rm -f "$log"
}
trap finish EXIT
trap 'exit 130' INT TERM

say() { printf '\n\n=== %s\n' "$*"; }

# run shows a command as a reader would type it, and its answer. Exit code 2 is the answer no.
run() {
  printf '\n$ apportion %s\n' "$*"
  local code=0
  "$apportion" "$@" --server "$address" 2>/dev/null || code=$?
  if [ "$code" -ne 0 ] && [ "$code" -ne 2 ]; then
    "$apportion" "$@" --server "$address" >/dev/null
  fi
}

# counted runs a command, shows how many of the lines that match PATTERN it has printed, every fifth second, and passes on its other lines.
counted() { # counted PATTERN WHAT COMMAND...
  local pattern=$1 what=$2 began=$SECONDS
  shift 2
  { "$@" 2>&1 || echo "failed: $*"; } | {
    local line code=0 count=0 shown=$SECONDS
    while IFS= read -r line; do
      case $line in
        failed:\ *) code=1 ;;
        *) if [[ $line =~ $pattern ]]; then count=$((count + 1)); else printf '%s\n' "$line"; fi ;;
      esac
      if ((SECONDS - shown >= 5)); then
        shown=$SECONDS
        printf '  %d %s after %d s\n' "$count" "$what" "$((SECONDS - began))"
      fi
    done
    printf '  %d %s in %d s\n' "$count" "$what" "$((SECONDS - began))"
    return "$code"
  }
}

say "Downloading Go modules that are not on this machine yet (the first time about 300 MB)"
counted '^go: downloading ' 'modules downloaded' go list -deps -f '{{with .Error}}{{.}}{{end}}' ./cmd/apportion

say "Building bin/apportion (the first time about 770 packages, a minute and a quarter on two processors)"
counted '^[a-z0-9./_-]+$' 'packages compiled' env GOFLAGS="${GOFLAGS:-} -v" make --no-print-directory build

say "Serving on a free port of this machine"
"$apportion" serve --listen 127.0.0.1:0 --drain-delay 0s 2>"$log" &
server=$!
address=
for _ in $(seq 200); do
  address=$(sed -n 's/.*msg=serving .*address=\([^ ]*\).*/\1/p' "$log" | head -n 1)
  [ -n "$address" ] && break
  kill -0 "$server" 2>/dev/null || exit 1
  sleep 0.05
done
"$apportion" health --wait --timeout 10s --server "$address"

input=(-f "$cluster" --policy "$cluster/volcano-scheduler.conf")

say "Three teams share 80 GPUs. Who deserves what, and who has it?"
run shares "${input[@]}" --resource gpu

say "The language team's pretraining is pending. Why?"
run explain language/pretrain-7b "${input[@]}" --resource gpu

say "What if vision submitted one more job?"
run whatif --job examples/jobs/track.yaml "${input[@]}" --resource gpu

say "That was all over gRPC, from $address; the server stops now."
