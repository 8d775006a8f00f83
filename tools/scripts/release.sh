#!/usr/bin/env bash
# release.sh [PLATFORM,…]: makes archives, bills of materials, checksums and the container image in dist/, and checks them. Equal commits
# make equal bytes. VERSION, REVISION and SOURCE_DATE_EPOCH take precedence over git. PROFILE is the compiler's profile; empty, there
# is none. RELEASE is the program of tools/release; without it, it is compiled. SIGNING_KEY is a private key of minisign: all files are signed with it.
set -euo pipefail
cd "$(dirname "$0")/../.."

version=${VERSION:-$(git describe --tags --match 'v[0-9]*' --always --dirty 2>/dev/null || echo unknown)}
revision=${REVISION:-$(git rev-parse HEAD 2>/dev/null || echo unknown)}
epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
profile=${PROFILE-cmd/apportion/release.pgo}
platforms=${1:-linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64}

release=${RELEASE:-}
if [[ -z $release ]]; then
  tool=$(mktemp -d)
  trap 'rm -rf "$tool"' EXIT
  release=$tool/release
  (cd tools/release && GOWORK=off CGO_ENABLED=0 go build -trimpath -buildvcs=false -o "$release" .)
fi
with=(-root . -profile "$profile" -out dist -version "$version" -revision "$revision" -epoch "$epoch" -platforms "$platforms")
"$release" make "${with[@]}"
"$release" check "${with[@]}"
if [[ -n ${SIGNING_KEY:-} ]]; then
  "$release" sign "${with[@]}" -key "$SIGNING_KEY"
fi
