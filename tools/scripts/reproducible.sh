#!/usr/bin/env bash
# Releases for this platform twice, here and from a copy of the sources in another directory with an empty build cache, and fails if the two
# releases differ in a byte. The second build compiles everything: allow a few minutes.
set -euo pipefail
cd "$(dirname "$0")/../.."

elsewhere=$(mktemp -d)
trap 'rm -rf "$elsewhere"' EXIT
other=$elsewhere/quite/another/place
mkdir -p "$other"
# What is in the tree, committed or not: a change is tried before it is committed.
git ls-files -z --cached --others --exclude-standard |
  while IFS= read -r -d '' file; do [[ ! -f $file ]] || printf '%s\0' "$file"; done |
  tar --null --files-from=- --create | tar --extract --directory "$other"

version=${VERSION:-$(git describe --tags --match 'v[0-9]*' --always --dirty 2>/dev/null || echo unknown)}
system=$(go env GOOS) arch=$(go env GOARCH)
export VERSION=$version SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-0}
# A copy has no repository to ask.
revision=$(git rev-parse HEAD 2>/dev/null || echo unknown)
export REVISION=${REVISION:-$revision}
# The tool, which writes files and compiles the program, is compiled once and used in both places.
export RELEASE=$elsewhere/release
(cd tools/release && GOWORK=off CGO_ENABLED=0 go build -trimpath -buildvcs=false -o "$RELEASE" .)
tools/scripts/release.sh "$system/$arch"
GOCACHE=$elsewhere/cache "$other/tools/scripts/release.sh" "$system/$arch"

if ! diff --recursive --brief dist "$other/dist"; then
  echo "two releases of the same sources differ" >&2
  exit 1
fi
said=$("dist/binary/${system}_$arch/apportion" version | head -n 1)
if [[ $said != "apportion $version" ]]; then
  echo "the binary says \"$said\", not \"apportion $version\"" >&2
  exit 1
fi
echo "equal, and stamped $version"
