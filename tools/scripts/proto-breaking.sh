#!/usr/bin/env bash
# Compares proto/ with the newest release that this commit descends from.
# The release is unpacked from its tag, so a detached checkout or a worktree serves as well as a branch.
set -euo pipefail
cd "$(dirname "$0")/../.."

tag=$(git -c versionsort.suffix=- tag --list 'v[0-9]*' --merged HEAD --sort=-v:refname | head -n 1)
if [[ -z $tag ]]; then
  echo "no release yet: nothing to compare proto/ with"
  exit 0
fi
if ! git cat-file -e "$tag:buf.yaml" 2>/dev/null; then
  echo "release $tag has no contract: nothing to compare proto/ with"
  exit 0
fi

released=$(mktemp -d)
trap 'rm -rf "$released"' EXIT
git archive "$tag" | tar -x -C "$released"

echo "buf breaking against $tag"
buf breaking --against "$released"
