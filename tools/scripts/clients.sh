#!/usr/bin/env bash
# clients.sh generate|test [LANGUAGE…]: generates and builds the example clients (default: all five). test also starts the server, plays
# the batch platform's scenario and the conformance vectors with each of them, and compares what they print with examples/batch; where there is
# an example `explain`, it asks about every cause in testdata/pending.
# APPORTION names a server's program, else it is built. Each ecosystem's own client fetches what it needs; everything stays in folders below examples/ that git ignores.
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly examples=$PWD/examples causes=$PWD/testdata/pending vectors=$PWD/testdata/conformance scenario=$PWD/examples/batch/scenario.json

die() { echo "clients.sh: $*" >&2; exit 1; }

# Each language: build_L fetches, generates and builds; run_L PROGRAM ARGUMENT… runs batch or conformance; first_L runs the first calls
# of the README, which lie at the place that first[L] names.
declare -rA first=([python]=first.py [typescript]=first.ts [java]=First.java [rust]=src/bin/first.rs [cpp]=first.cc)

build_python() (
  cd "$examples/python"
  [[ -x .venv/bin/python ]] || python3 -m venv .venv
  .venv/bin/pip install --quiet --requirement requirements.txt
  rm -rf gen
  mkdir gen
  .venv/bin/python -m grpc_tools.protoc -I ../../proto -I ../../tools/third_party \
    --python_out gen --pyi_out gen --grpc_python_out gen ../../proto/apportion/v1*/*.proto
)
run_python() {
  PYTHONPATH=$examples/python/gen "$examples/python/.venv/bin/python" "$examples/python/$1.py" "${@:2}"
}

first_python() { PYTHONPATH=$examples/python/gen "$examples/python/.venv/bin/python" "$examples/python/first.py"; }

build_typescript() (
  cd "$examples/typescript"
  npm ci --ignore-scripts --no-audit --no-fund --loglevel error
  npm run --silent generate
  npm run --silent build
)
run_typescript() { node "$examples/typescript/dist/$1.js" "${@:2}"; }

first_typescript() (
  cd "$examples/typescript"
  npm run --silent build
  node dist/first.js
)

build_java() (
  cd "$examples/java"
  # Maven switches colours off where none were.
  mvn --batch-mode --no-transfer-progress --quiet -Dstyle.color=never compile | sed $'s/\e\\[0*m//g'
)
run_java() {
  java -cp "$examples/java/target/classes:$examples/java/target/lib/*" "dev.apportion.example.${1^}" "${@:2}"
}

first_java() { java -cp "$examples/java/target/classes:$examples/java/target/lib/*" "$examples/java/First.java"; }

build_rust() (
  cd "$examples/rust"
  cargo build --quiet
)
run_rust() { "$examples/rust/target/debug/$1" "${@:2}"; }

first_rust() (
  cd "$examples/rust"
  cargo run --quiet --bin first
)

build_cpp() (
  packages=(cmake g++ libgrpc++-dev libprotobuf-dev make pkg-config protobuf-compiler protobuf-compiler-grpc)
  if ! dpkg --status "${packages[@]}" >/dev/null 2>&1; then
    tools/scripts/debian.sh "${packages[@]}" || die "cpp needs gRPC and protobuf for C++ and CMake; see examples/cpp/README.md"
  fi
  cd "$examples/cpp"
  cmake -S . -B build >/dev/null
  cmake --build build --parallel "$(nproc)" >/dev/null
)
first_cpp() (
  build_cpp
  "$examples/cpp/build/first"
)
run_cpp() { "$examples/cpp/build/$1" "${@:2}"; }

# serve: starts a server on a free port; sets server to its process, and address. serve newer: one as a later version might be.
serve() {
  local log command=("$APPORTION" serve --listen 127.0.0.1:0 --drain-delay 0s --policies "fair=$vectors/fair.json")
  [[ ${1:-} != newer ]] || command=("$NEWER" -serve-newer 127.0.0.1:0 "$vectors")
  log=$(mktemp "$work/log.XXXXXX")
  "${command[@]}" 2>"$log" &
  server=$!
  disown "$server"
  servers+=("$server")
  for ((i = 0; i < 100; i++)); do
    address=$(sed -n 's/.* address=\(127\.0\.0\.1:[0-9]*\).*/\1/p' "$log" | head -n 1)
    [[ -z $address ]] || return 0
    kill -0 "$server" 2>/dev/null || break
    sleep 0.1
  done
  cat "$log" >&2
  die "the server did not start"
}

# Seconds for one cycle: more than any machine needs.
readonly enough=60

# answer_first LANGUAGE: the program of the README must print what its comments say.
answer_first() {
  local said program=$examples/$1/${first[$1]}
  [[ ! -e $program ]] || die "${program#"$PWD/"} is there already"
  mkdir -p "$(dirname "$program")"
  strays+=("$program" "$examples/typescript/dist/first.js")
  awk '/^```/ { code = !code; next } code' "$examples/$1/README.md" | sed "s/localhost:7171/$address/" >"$program"
  said=$("first_$1" | sed 's/\.0$//')
  diff <(printf '%s\n' 'research 4000' 'serving 12000' 'evict research-'{0,1} 'place serving-'{0,1}' on n1') - <<<"$said"
  rm "$program"
}

# answer_smallest LANGUAGE: the smallest request of docs/contract.md, where it is there in the language, says why its job waits.
answer_smallest() {
  local said program=$examples/$1/${first[$1]} block
  block=$(awk -v fence='```'"$1" '$0 == fence { code = 1; next } /^```/ { code = 0 } code' docs/contract.md)
  [[ -n $block ]] || return 0
  strays+=("$program" "$examples/typescript/dist/first.js")
  sed "s/localhost:7171/$address/" <<<"$block" >"$program"
  said=$("first_$1")
  [[ $said == 'train train can never run'* ]] || die "$1: the smallest request said: $said"
  rm "$program"
}

# play LANGUAGE: the scenario, the vectors, the scenario on a later version that is busy and sends sessions away, and on a server that
# keeps silent.
play() {
  local said
  serve
  said=$("run_$1" batch "$address" "$scenario" "$enough")
  diff "$examples/batch/expected.txt" - <<<"$said"
  said=$("run_$1" batch "$address" "$examples/batch/memory.json" "$enough")
  diff "$examples/batch/expected-memory.txt" - <<<"$said"
  "run_$1" conformance "$address" "$vectors"
  answer_first "$1"
  answer_smallest "$1"
  # Where an example sends changes, its answers are those about whole snapshots, and it sends two states of three as a change.
  if [[ -e $examples/$1/mirror.py ]]; then
    said=$("run_$1" mirror "$address" | grep -c '(change, ')
    ((said == 2)) || die "$1: $said of 2 states were sent as a change"
  fi
  kill "$server"
  serve newer
  said=$("run_$1" batch "$address" "$scenario" "$enough")
  diff "$examples/batch/expected.txt" - <<<"$said"
  kill "$server"
  serve
  kill -STOP "$server"
  said=$("run_$1" batch "$address" "$scenario" 0.3)
  diff "$examples/batch/expected-late.txt" - <<<"$said"
}

# explain LANGUAGE: of every cause in testdata/pending, the sentences that the example is answered must be those that the command prints.
explain() {
  local folder job moment preset sentence said count=0 flags policy
  serve
  # A cause without a configuration is asked about under a policy that may evict, as by the test of the command.
  "$APPORTION" convert --policy proportion -o json >"$work/default.json"
  for folder in "$causes"/*/; do
    job=$(sed -n 's/^job: //p' "$folder/expect.txt")
    moment=$(sed -n 's/^as-of: //p' "$folder/expect.txt")
    preset=$(sed -n 's/^policy: //p' "$folder/expect.txt")
    sentence=$(sed '1,/^$/d' "$folder/expect.txt" | xargs -d '\n' echo)
    flags=(-f "$folder/dump.yaml")
    [[ -z $moment ]] || flags+=(--as-of "$moment")
    policy=$work/default.json
    if [[ -n $preset ]]; then
      policy=$work/policy.json
      "$APPORTION" convert --policy "$preset" -o json >"$policy"
    elif [[ -e $folder/volcano-scheduler.conf ]]; then
      policy=$work/policy.json
      "$APPORTION" convert --policy "$folder/volcano-scheduler.conf" >"$policy" 2>/dev/null
    fi
    "$APPORTION" convert "${flags[@]}" >"$work/snapshot.json" 2>/dev/null
    said=$("run_$1" explain "$address" "$work/snapshot.json" "$policy" "$job" | tail -n 1)
    diff <(echo "$sentence") - <<<"$said" || die "$1: ${folder#"$PWD/"}: another sentence"
    count=$((count + 1))
  done
  kill "$server"
  echo "$1: $count causes of pending explained"
}

# short LANGUAGE: if an example is too long to read at once, a helper is missing beside the stubs.
short() {
  local lines file
  file=$(find "$examples/$1" -iname 'batch.*' -not -path '*/dist/*' -not -path '*/target/*' -not -path '*/build/*' -not -path '*/node_modules/*')
  lines=$(wc -l <"$file")
  ((lines < 150)) || die "${file#"$PWD/"} has $lines lines, and should have less than 150"
}

# one LANGUAGE: builds it, and runs it if asked to.
one() {
  local started=$SECONDS built
  declare -F "build_$1" >/dev/null || die "no language $1"
  short "$1"
  "build_$1"
  built=$((SECONDS - started))
  if [[ $mode == generate ]]; then
    echo "$1: built in $built s"
    return
  fi
  started=$SECONDS
  play "$1"
  ! compgen -G "$examples/$1/explain.*" >/dev/null || explain "$1"
  echo "$1: built in $built s, played in $((SECONDS - started)) s"
}

servers=()
strays=()
cleanup() {
  for server in "${servers[@]}"; do kill -KILL "$server" 2>/dev/null || true; done
  rm -rf "$work" "${strays[@]}"
}

mode=${1:-}
[[ $mode == generate || $mode == test ]] || die "say generate or test, then languages"
shift
work=$(mktemp -d)
trap cleanup EXIT
if [[ $mode == test && -z ${APPORTION:-} ]]; then
  export APPORTION=$work/apportion
  CGO_ENABLED=0 go build -o "$APPORTION" ./cmd/apportion
fi
if [[ $mode == test && -z ${NEWER:-} ]]; then
  export NEWER=$work/newer
  CGO_ENABLED=0 go build -o "$NEWER" ./internal/test/conformance
fi
if (($# == 1)); then
  one "$1"
  exit
fi
(($# > 0)) || set -- python typescript java rust cpp
# Each runs in a process of its own, so that a fault in one ends only that one.
failures=()
for language; do
  printf '\n-- %s\n' "$language"
  "$0" "$mode" "$language" || failures+=("$language")
done
printf '\nclients: %d passed, %d failed\n' "$(($# - ${#failures[@]}))" "${#failures[@]}"
((${#failures[@]} == 0)) || die "failed: ${failures[*]}"
