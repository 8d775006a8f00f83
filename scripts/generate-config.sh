#!/usr/bin/env bash
# generate-config.sh ROOT: writes what is made of package config below ROOT: the help table first, since the rest is made with it.
set -euo pipefail
root=$(mkdir -p "$1" && cd "$1" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
mkdir -p "$root/config" "$root/docs"

go run ./config/internal/help >"$fresh/help.go"
cp "$fresh/help.go" "$root/config/help.go"

# Elsewhere the programs are built with the fresh table in the place of the old one.
printf '{"Replace": {"%s": "%s"}}\n' "$PWD/config/help.go" "$fresh/help.go" >"$fresh/overlay.json"
go run -overlay "$fresh/overlay.json" ./config/internal/reference schema >"$fresh/schema.json"
go run -overlay "$fresh/overlay.json" ./config/internal/reference page >"$fresh/page.md"
cp "$fresh/schema.json" "$root/docs/configuration.schema.json"
cp "$fresh/page.md" "$root/docs/configuration.md"
