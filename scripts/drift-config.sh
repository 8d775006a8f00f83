#!/usr/bin/env bash
# Fails if what is made of package config is not exactly what it makes. It generates elsewhere and compares.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
scripts/generate-config.sh "$fresh"

stale=0
for file in config/help.go docs/configuration.schema.json docs/configuration.md; do
  diff --unified "$file" "$fresh/$file" || stale=1
done
if ((stale)); then
  echo "the configuration's documents are stale: run 'make generate-config' and commit the result" >&2
  exit 1
fi
