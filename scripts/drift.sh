#!/usr/bin/env bash
# Fails if gen/ is not exactly what proto/ generates. It generates elsewhere and compares, so it neither
# touches the tree nor takes a change that is right but not committed yet for a fault.
set -euo pipefail
cd "$(dirname "$0")/.."

fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
buf generate --output "$fresh"

if ! diff --recursive --unified --new-file gen "$fresh/gen"; then
  echo "gen/ is stale: run 'make generate' and commit the result" >&2
  exit 1
fi

# A checkout shows what is committed; a working tree may hold files that nobody added.
if untracked=$(git ls-files --others -- gen 2>/dev/null) && [[ -n $untracked ]]; then
  printf 'generated but not added to git:\n%s\n' "$untracked" >&2
  exit 1
fi
