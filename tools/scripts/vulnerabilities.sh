#!/usr/bin/env bash
# Looks for known vulnerabilities in what the code calls, with govulncheck. A finding fails. If the database cannot be
# reached, the check is skipped with a message: a machine without a network cannot know. GOVULNDB names another database, such as
# file:///srv/vulndb, which must be there. First a made-up finding shows that findings are found.
set -euo pipefail
cd "$(dirname "$0")/../.."

said=$(mktemp)
trap 'rm -f "$said"' EXIT

verdict=0
govulncheck -db "file://$PWD/tools/govulncheck/testdata/db" ./internal/quantity >"$said" 2>&1 || verdict=$?
if ((verdict != 3)); then
  cat "$said"
  echo "a made-up vulnerability was not found" >&2
  exit 1
fi

verdict=0
govulncheck ${GOVULNDB:+-db "$GOVULNDB"} "$@" >"$said" 2>&1 || verdict=$?
case $verdict in
  0) cat "$said" ;;
  3)
    cat "$said"
    echo "vulnerabilities were found" >&2
    exit 1
    ;;
  *)
    if [[ -z ${GOVULNDB:-} ]] && grep -q '^govulncheck: fetching vulnerabilities: ' "$said"; then
      echo "SKIPPED: the database of vulnerabilities (https://vuln.go.dev) cannot be reached from here:"
      tail -n 1 "$said"
      echo "Nothing is known about vulnerabilities; run this where it can be reached."
    else
      cat "$said"
      echo "govulncheck did not work" >&2
      exit 1
    fi
    ;;
esac
