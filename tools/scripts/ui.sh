#!/usr/bin/env bash
# ui.sh install|browser|build|drift|test|pictures|measure: works on the page in ui/. install installs its packages; browser prints Chromium's path. build writes ui/dist; drift fails if ui/dist is not what ui/src makes;
# test runs the unit tests and then the views in Chromium, with bin/apportion; pictures takes those of the docs; measure measures What if on
# the standard cluster. CHROMIUM names the browser's program.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../ui"

install() {
  # What is installed already is kept if the lock file has not changed since.
  if [[ ! -e node_modules/.package-lock.json || package-lock.json -nt node_modules/.package-lock.json ]]; then
    npm ci --ignore-scripts --no-audit --no-fund --loglevel error
    touch node_modules/.package-lock.json
  fi
}

# browser finds Chromium, or installs it if that may be done; otherwise it fails.
browser() {
  local name
  for name in "${CHROMIUM:-}" chromium chromium-browser google-chrome; do
    if [[ -n $name ]] && CHROMIUM=$(command -v "$name"); then
      export CHROMIUM
      return 0
    fi
  done
  ../tools/scripts/debian.sh chromium || return 1
  CHROMIUM=$(command -v chromium) && export CHROMIUM
}

case ${1:-} in
  install)
    install
    ;;
  browser)
    browser
    echo "$CHROMIUM"
    ;;
  build)
    install
    npm run --silent generate
    npm run --silent check
    npm run --silent build
    ;;
  drift)
    install
    npm run --silent generate
    npm run --silent check
    fresh=$(mktemp -d)
    trap 'rm -rf "$fresh"' EXIT
    node build.mjs --out "$fresh/dist"
    diff --recursive dist "$fresh/dist" || { echo 'ui/dist is not what ui/src makes: run make ui' >&2; exit 1; }
    ;;
  test)
    install
    npm run --silent test
    if ! browser; then
      echo 'the tests in the browser are SKIPPED: there is no Chromium, and it could not be installed' >&2
      exit 0
    fi
    node --test --test-concurrency=1 --test-timeout=600000 "${@:2}" browser/*.test.mjs
    ;;
  pictures)
    install
    browser
    node browser/pictures.mjs
    ;;
  measure)
    install
    browser
    node browser/measure.mjs "${@:2}"
    ;;
  *)
    echo 'usage: ui.sh install|browser|build|drift|test|pictures|measure' >&2
    exit 2
    ;;
esac
