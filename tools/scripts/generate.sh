#!/usr/bin/env bash
# generate.sh [FOLDER]: writes what proto/ generates, gen/ and docs/api, into the repository or into FOLDER. The stubs of gRPC are left out
# of builds for a browser, which has no connection for them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

out=${1:-.}
buf generate --output "$out"
for stub in "$out"/gen/apportion/v1*/*_grpc.pb.go; do
  awk '/^package / && !done { print "//go:build !js\n"; done = 1 } { print }' "$stub" >"$stub.next"
  mv "$stub.next" "$stub"
done
