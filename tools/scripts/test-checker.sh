#!/usr/bin/env bash
# Lets the checkers in Python look at answers of plugin fair: true ones, which they must find true, and changed ones, about which they must
# say what the checker in Go says. APPORTION names the program, else it is built.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

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
  python3 checker/check_answer.py "$work/request.json" "$work/response.json"
done

# The checkers in Go and in Python find the same mutants of recorded answers, but for fields that the one in Python lists as not checked.
go test ./checker -run TestWriteASampleOfMutants -mutant-sample "$work/mutants.jsonl" >/dev/null
python3 - "$work/mutants.jsonl" <<'PYTHON'
import json, re, sys
sys.path.insert(0, "checker")
from check_answer import check, entries, unchecked

camel = lambda path: re.sub(r"_(.)", lambda m: m[1].upper(), entries(path))
skips = lambda path: any(path == f or path.startswith((f + ".", f + "[")) for f in unchecked)
found = listed = same = 0
for line in map(json.loads, open(sys.argv[1])):
    if "request" in line:
        request = line["request"]
        wrong = check(request, line["response"])
        assert not wrong, wrong[:5]
        continue
    refused, paths = bool(check(request, line["response"])), line.get("paths") or [line["path"]]
    skipped = any(skips(camel(path)) for path in paths)
    assert refused == line["refused"] or skipped and not refused, (paths[:3], line["kind"], line["refused"], check(request, line["response"])[:5])
    found, listed, same = found + refused, listed + (not refused and skipped), same + (not refused and not skipped)
print(f"{found} changed answers were found, {listed} were changed where nothing is checked, {same} mean the same")
PYTHON

# The page's checker finds the same, of what it checks.
if [[ -d ui/node_modules ]]; then
  (cd ui && MUTANTS="$work/mutants.jsonl" node test.mjs >"$work/page.log") || { cat "$work/page.log"; exit 1; }
  echo 'the checker of the page finds the same'
else
  echo 'the checker of the page is not compared: make ui installs what it needs' >&2
fi
