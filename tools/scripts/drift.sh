#!/usr/bin/env bash
# Fails if gen/ and docs/api are not exactly what proto/ generates. It generates into another directory and compares, so
# that it does not touch the tree, and accepts correct changes that are not committed yet.
set -euo pipefail
cd "$(dirname "$0")/../.."

fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
tools/scripts/generate.sh "$fresh"
for folder in gen docs/api; do
  if ! diff --recursive --unified --new-file "$folder" "$fresh/$folder"; then
    echo "$folder is stale: run 'make generate' and commit the result" >&2
    exit 1
  fi
done

# A checkout shows what is committed; a working tree may hold files that were not added.
if untracked=$(git ls-files --others -- gen docs/api 2>/dev/null) && [[ -n $untracked ]]; then
  printf 'generated but not added to git:\n%s\n' "$untracked" >&2
  exit 1
fi
