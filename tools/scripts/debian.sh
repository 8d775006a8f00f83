#!/usr/bin/env bash
# debian.sh PACKAGE…: installs packages of Debian by apt-get, as root or by sudo without a password, and fails where that may not be done.
# Stages of .ci/run that run side by side wait for each other here: apt-get itself does not wait.
set -euo pipefail

if ! command -v apt-get >/dev/null; then
  echo "debian.sh: there is no apt-get to install $*" >&2
  exit 1
fi
sudo=()
((EUID == 0)) || sudo=(sudo -n)
exec 8<"$0"
flock 8
"${sudo[@]}" apt-get update -qq -o Acquire::Retries=3
"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq -o Acquire::Retries=3 --no-install-recommends "$@" >/dev/null
