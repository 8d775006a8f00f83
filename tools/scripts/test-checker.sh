#!/usr/bin/env bash
# Lets the checkers of certificates in Go, in Python and of the page look at answers of plugin fair: true ones, which they must find true, and
# changed ones, about which they must say the same. APPORTION names the program, else it is built.
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
  python3 client/check/check_fair.py "$work/request.json" "$work/response.json"
done

# The checkers in Go and in Python find the same mutants of certificates.
go test ./client/check -run TestWriteASampleOfMutants -mutant-sample "$work/mutants.jsonl" >/dev/null
python3 - "$work/mutants.jsonl" <<'PYTHON'
import json, re, sys
sys.path.insert(0, "client/check")
from check_fair import check

of_certificates = re.compile(r"answers\[0\]\.shares\.plugins\[0\]\.fair\.(divisions|sated_divisions|remembered_divisions|weights|quanta|total)\b")
refused = passed = 0
for line in map(json.loads, open(sys.argv[1])):
    if "request" in line:
        request = line["request"]
        wrong = check(request, line["response"])
        assert not wrong, wrong[:5]
        continue
    paths = line.get("paths") or [line["path"]]
    if all(map(of_certificates.match, paths)):
        wrong = check(request, line["response"])
        assert bool(wrong) == line["refused"], (paths[:3], line["kind"], line["refused"], wrong[:5])
        refused, passed = refused + bool(wrong), passed + (not wrong)
assert refused > 500, refused
print(f"{refused} changed certificates were found, {passed} mean the same")
PYTHON

# The page's checker finds the same, of what it checks.
if [[ -d ui/node_modules ]]; then
  (cd ui && MUTANTS="$work/mutants.jsonl" node test.mjs >"$work/page.log") || { cat "$work/page.log"; exit 1; }
  echo 'the checker of the page finds the same'
else
  echo 'the checker of the page is not compared: make ui installs what it needs' >&2
fi
