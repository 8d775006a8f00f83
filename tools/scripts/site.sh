#!/usr/bin/env bash
# site.sh build [FOLDER]|test|measure: build writes the site into FOLDER (default: site), as files that any web server serves: the home page, the
# documents, the page with the engine and the reader as programs of WebAssembly, and samples. It needs Go, and Node.js with npm. test plays the
# conformance vectors in the engine of site, and the pages in Chromium, with bin/apportion. measure measures what is loaded and how long
# pictures and questions take.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

if [[ ${1:-} == measure ]]; then
  browser=$(tools/scripts/ui.sh browser)
  cd ui
  CHROMIUM=$browser exec node site/measure.mjs "${@:2}"
fi
if [[ ${1:-} == test ]]; then
  cd ui
  node --test site/vectors.test.mjs
  if ! browser=$(../tools/scripts/ui.sh browser); then
    echo 'the tests in the browser are SKIPPED: there is no Chromium, and it could not be installed' >&2
    exit 0
  fi
  CHROMIUM=$browser node --test --test-concurrency=1 --test-timeout=600000 "${@:2}" site/site.test.mjs site/documents.test.mjs
  exit 0
fi
[[ ${1:-} == build ]] || { echo 'usage: site.sh build [FOLDER]|test|measure' >&2; exit 2; }
out=${2:-site}
tools/scripts/ui.sh install
rm -rf "$out" && mkdir -p "$out" && out=$(realpath "$out")
for program in engine=cmd/offline/wasm/engine reader=cmd/offline/wasm/reader rehearse=cmd/apportion/internal/rehearsal/browser/wasm; do
  name=${program%%=*}
  GOOS=js GOARCH=wasm go build -trimpath -buildvcs=false -ldflags='-s -w' -o "$out/$name.wasm" "./${program#*=}"
  gzip -9 --no-name "$out/$name.wasm"
done
chmod 644 "$out"/*.gz
links=$(mktemp)
trap 'rm -f "$links"' EXIT
go run ./cmd/offline/site "$out" "$links"
(cd ui && npm run --silent generate && npm run --silent check && node site.mjs "$out" "$links")
(cd "$out" && find . -type f | sort | xargs ls -l | awk '{ size += $5 } END { printf "%d files, %.1f MB\n", NR, size / 1e6 }')
