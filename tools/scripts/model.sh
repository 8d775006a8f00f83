#!/usr/bin/env bash
# Looks for circles of evictions with the solver Z3 (tools/proof/model.py), which pip installs into bin/model the first time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

z3=z3-solver==5.4.1.0
if [[ $(cat bin/model/installed 2>/dev/null) != "$z3" ]]; then
  rm -rf bin/model
  python3 -m venv bin/model
  bin/model/bin/pip install --quiet --disable-pip-version-check "$z3"
  echo "$z3" >bin/model/installed
fi
bin/model/bin/python tools/proof/model.py "$@"
