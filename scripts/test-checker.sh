#!/usr/bin/env bash
# Lets the checkers in Python look at answers of plugin fair: true ones, which they must find true, and one in which each share in turn is
# changed by one, which they must find. APPORTION names the program, else it is built.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
apportion=${APPORTION:-$work/apportion}
[[ -n ${APPORTION:-} ]] || go build -o "$apportion" ./cmd/apportion

cat >"$work/deserved.yaml" <<'YAML'
tiers: [{plugins: [{fair: {base: FAIR_BASE_DESERVED, reserveGuarantee: true}}]}]
YAML
for policy in fair "$work/deserved.yaml"; do
  "$apportion" verify -f examples/clusters/research --policy "$policy" --keep "$work"
  python3 checker/check_fair.py "$work/request.json" "$work/response.json"
  python3 checker/check_plan.py "$work/request.json" "$work/response.json"
done

python3 - "$work" <<'PYTHON'
import json, sys
sys.path.insert(0, "checker")
from check_fair import check
request, response = (json.load(open(f"{sys.argv[1]}/{name}.json")) for name in ("request", "response"))
divisions = response["answers"][0]["shares"]["plugins"][0]["fair"]["divisions"]
portions = [p for division in divisions for p in division.get("children", []) if "share" in p]
for p in portions:
    p["share"] = str(int(p["share"]) + 1)
    assert check(request, response)[2], f"not found: {p}"
    p["share"] = str(int(p["share"]) - 1)
assert not check(request, response)[2]
print(f"{len(portions)} changed shares were found")
PYTHON
