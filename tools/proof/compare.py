#!/usr/bin/env python3
"""Prints 1 for each certificate that client/check/check_fair.py accepts by its own numbers, and 0 for each that it does not.

    python3 compare.py certificates.jsonl

check_fair.py derives what queues are from the snapshot. Here the certificate states it, as for client/check/certificate, and divisions are checked
by the same code. What only follows from the snapshot is checked here: that what is stated can be.
"""
import json, os, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "client", "check"))
from check_fair import Cluster, expect, faults

number = lambda p, field: int(p.get(field, 0))

class Stated(Cluster):
    """A cluster of which only the certificate is known."""
    def __init__(self, fair):
        self.fair = {name: fair.get(name, []) for name in ("divisions", "satedDivisions")}
        on_top = any(number(p, "base") for of in self.fair.values() for d in of for p in d.get("children", []))
        self.base = "FAIR_BASE_GUARANTEE" if on_top else "FAIR_BASE_NONE"

    def check_list(self, name, other):
        given = {}
        for i, d in enumerate(self.fair[name]):
            at, dim, ps = f"{name}[{i}]", d.get("dimension", 0), d.get("children", [])
            given.update({(p.get("queue"), dim): p for p in ps + ([d["root"]] if "root" in d else [])})
            if "root" in d:
                expect(at + ".root", [number(d["root"], f) for f in ("weight", "start", "ceiling", "base")] + [d["root"].get("bound")], [0] * 4 + [None])
            if not ps:
                continue
            key = d.get("queue"), dim
            # Children are known by their rank: a certificate may name one twice.
            self.kids = {d.get("queue"): list(range(len(ps)))}
            bounds = {}
            for k, p in enumerate(ps):
                lo, m, hi, w = (number(p, f) for f in ("guaranteed", "begin", "useful", "weight"))
                least = {"FAIR_CASE_GUARANTEE": lo, "FAIR_CASE_DESERVED": m}.get(d.get("rule"), 0)
                expect(f"{at}.children[{k}]: what is guaranteed, begins and is useful, and the weight", [lo <= m <= hi, least <= w], [True] * 2)
                bounds[k] = lo, m, hi, w, w
            own = number(given.get(key) or other.get(key) or {}, "share")
            ranked = dict(d, children=[dict(p, queue=k) for k, p in enumerate(ps)])
            self.divide(at, ranked, dim, bounds, own, lambda k: number(ps[k], "weight"))
        return given

    def check(self):
        given = self.check_list("divisions", {})
        sated = self.check_list("satedDivisions", given)
        for key, e in given.items():
            s, lo, share = sated.get(key, e), number(e, "guaranteed"), number(e, "share")
            for p in (e, s):
                expect(f"lines of {key}", (number(p, "guaranteeLine"), number(p, "fairLine")), (min(lo, share), min(max(lo, number(s, "share")), share)))

if __name__ == "__main__":
    for line in open(sys.argv[1]):
        faults.clear()
        Stated(json.loads(line)).check()
        print(int(not faults))
