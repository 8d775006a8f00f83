# !/usr/bin/env bash Shows several replicas behind a real proxy and behind a client that balances by itself; flags go to `bench/replicas
# balance`. HAProxy comes from the distribution: if it is missing, apt-get installs it where permitted.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v haproxy >/dev/null; then
  if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
    echo "haproxy is needed (Debian: apt-get install haproxy)" >&2
    exit 1
  fi
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends haproxy >/dev/null
fi
make --no-print-directory build
exec go run ./bench/replicas balance "$@"
