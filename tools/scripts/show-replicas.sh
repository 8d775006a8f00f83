#!/usr/bin/env bash
# Shows several replicas behind a real proxy and behind a client that balances by itself; flags go to `tools/bench/load balance`. HAProxy comes
# from the distribution: if it is missing, it is installed where permitted.
set -euo pipefail
cd "$(dirname "$0")/../.."

command -v haproxy >/dev/null || tools/scripts/debian.sh haproxy
make --no-print-directory build
exec go run ./tools/bench/load balance "$@"
