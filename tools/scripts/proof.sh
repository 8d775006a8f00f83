#!/usr/bin/env bash
# Checks the proofs in tools/proof/ with Coq, prints what each theorem rests on, and compares the checker that is proved with those in Go and in
# Python on recorded and on changed certificates (MUTANTS=100000). Coq and OCaml are installed where they are missing and apt-get can.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if ! { command -v coqc && command -v ocamlopt; } >/dev/null && ! tools/scripts/debian.sh coq ocaml-nox; then
  echo 'the proofs are SKIPPED: there is no Coq, and it could not be installed' >&2
  exit 0
fi

# The proofs, in the order of _CoqProject, which lists all files.
cp tools/proof/*.v tools/proof/main.ml "$work"
for file in $(sed 1d tools/proof/_CoqProject); do
  (cd "$work" && coqc -q -R . Proof "$file")
done

# Every theorem of Theorems.v, and whether it rests on anything that is not proved.
mapfile -t theorems < <(sed -n 's/^Theorem \([a-z0-9_]*\).*/\1/p' tools/proof/Theorems.v)
{
  echo 'From Proof Require Import Theorems.'
  printf 'Print Assumptions %s.\n' "${theorems[@]}"
} >"$work/Assumptions.v"
(cd "$work" && coqc -q -R . Proof Assumptions.v) >"$work/assumptions"
if ((${#theorems[@]} == 0)) || [[ $(sort -u "$work/assumptions") != 'Closed under the global context' ]] ||
  (($(wc -l <"$work/assumptions") != ${#theorems[@]})); then
  cat "$work/assumptions"
  echo 'a theorem rests on something that is not proved' >&2
  exit 1
fi
printf '%-16s closed under the global context\n' "${theorems[@]}"

# The checker as a program, and what it and those in Go and Python say of the same certificates.
(cd "$work" && coqc -q -R . Proof Extract.v && ocamlopt -o check checker.mli checker.ml main.ml)
go run ./internal/test/proof -mutants "${MUTANTS:-100000}" "$work"
"$work/check" <"$work/numbers" >"$work/proved"
python3 tools/proof/compare.py "$work/certificates.jsonl" >"$work/python"
for other in go python; do
  if ! cmp "$work/proved" "$work/$other"; then
    echo "the checker that is proved and the one in $other differ; the first certificate that they judge differently:" >&2
    paste -d ' ' "$work/proved" "$work/$other" "$work/certificates.jsonl" | awk '$1 != $2 { print; exit }' >&2
    exit 1
  fi
done
echo "the proved checker and those in Go and Python say the same of $(wc -l <"$work/proved") certificates"
