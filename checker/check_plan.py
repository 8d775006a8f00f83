#!/usr/bin/env python3
"""Checks claims of plugin `fair`, beside the shares that they rest on. It shares no code with the engine.

    python3 check_plan.py request.json response.json

The request is a SimulateRequest whose first step asks for shares with `explain`. See check_fair.py.
"""
import json, sys
from fractions import Fraction
from math import inf

from check_fair import check as check_shares, expect, faults, turns


def check_claims(self, queues):
    """Sections 4 and 6: what each leaf claims and leaves aside, and whether it wants."""
    width, leaves = range(len(self.u)), [q for q in self.order if not self.kids[q] and q is not None]
    entitled = lambda q, r, plus, line=3: all(self.held[q][d] + x + plus[d] <= self.lines[q][d][line] * self.u[d] for d, x in enumerate(r) if x > 0)
    limited = lambda q, r, plus: any(self.held[a][d] + x + plus[d] > self.limits(a, "capability", inf)[d]
                                     for a in self.path(q) for d, x in enumerate(r) if x > 0)
    blocks = {q: [] for q in self.order}
    for j in self.in_order([j for j in self.jobs if j["leaf"] != -1]):
        k, ts = max(0, j["least"] - j["held"]), sorted(j["blocks"], key=lambda t: t["key"])
        blocks[j["leaf"]] += [(k, ([ts[:k]] if k else []) + [[t] for t in ts[k:]])] if k <= len(ts) else []
    ask = lambda block: [sum(t["r"][d] for t in block) for d in width]
    wants = {q: any(any(ask(b)) and entitled(q, ask(b), [0] * len(self.u)) for _, j in blocks[q] for b in j) for q in self.order}
    for q in reversed(self.order):
        wants[q] |= any(wants[k] for k in self.kids[q])
    offered = [d for d in width if self.A[d] >= self.u[d]]
    over = lambda q, d: max(1, self.W[d][q] if self.memory else self.weight(q))
    load = lambda q: max([Fraction(self.held[q][d], self.A[d] // self.u[d] * self.u[d] * over(q, d)) for d in offered] or [0])
    ease = lambda q: -min([Fraction(self.W[d][q], self.weight(q)) if self.weight(q) else 0 for d in offered] or [1]) if self.memory else 0
    place = {q: i for i, q in enumerate(self.order)}
    turn = lambda q: (-self.priority(q), not wants[q], self.weight(q) == 0, load(q), ease(q), self.age(q), place[q])
    walk = lambda q: [q] if not self.kids[q] else [x for k in sorted(self.kids[q], key=turn) for x in walk(k)]
    claimed, by_name = {q: [0] * len(self.u) for q in self.order}, sorted(range(len(self.nodes)), key=lambda i: self.nodes[i]["name"].encode())
    def claim(q, block):
        r, room = ask(block), {i: list(f) for i, f in self.free.items()}
        if any(x > room[None][d] for d, x in enumerate(r) if x > 0) or not entitled(q, r, claimed[q]) or limited(q, r, claimed[q]):
            return False
        return place_in(q, r, block, room)
    def place_in(q, r, block, room):
        if not first_fit(block, room):
            return False
        self.free, claimed[q] = room, [a + x for a, x in zip(claimed[q], r)]
        return True
    def first_fit(block, room):
        for t in block:
            fit = [i for i in by_name if self.takes(i, t) and not self.reserved(i) and all(x <= room[i][d] for d, x in enumerate(t["r"]) if x > 0)]
            if self.nodes and not fit:
                return False
            for i in [None] + fit[:1]:
                room[i] = [a - x for a, x in zip(room[i], t["r"])]
        return True
    saved = {}
    def save(q, block):
        """Claims a block that is next by memory, can never be had by taking, and has no room yet."""
        r, lacks = ask(block), lambda room: any(x > room[d] for d, x in enumerate(r) if x > 0)
        if (not self.memory or self.no_saving or q in saved or not entitled(q, r, claimed[q]) or entitled(q, r, claimed[q], 2)
                or limited(q, r, claimed[q]) or not lacks(self.free[None]) or lacks(self.A)
                or not first_fit(block, {None: list(self.A), **{i: list(x) for i, x in self.empty.items()}})):
            return False
        saved[q], claimed[q] = r, [a + x for a, x in zip(claimed[q], r)]
        return True
    for q in walk(self.root):
        for k, job in blocks[q] if self.open[q] else []:
            for i, b in enumerate(job):
                if any(ask(b)) and not claim(q, b) and not save(q, b) and i == 0 and k > 0:
                    break
    withheld = {}
    for q in reversed(self.order):
        below = [sum(withheld[k][d] for k in self.kids[q]) for d in width] if self.kids[q] else claimed[q]
        lack = [self.bounds(d, False)[q][0] * self.u[d] - self.held[q][d] for d in width] if self.reserve else below
        withheld[q] = [max(a, b) for a, b in zip(below, lack)]
    aside = lambda q: [sum(withheld[k][d] for a in self.path(q)[:-1] for k in self.kids[self.parent[a]] if k != a) for d in width]
    expect("queues", [x.get("queue", 0) for x in queues], sorted(leaves))
    for n, x in enumerate(queues):
        q = x.get("queue", 0)
        expect(f"queues[{n}]: room is saved", "saved" in x, q in saved)
        for name, want in (("claimed", claimed[q]), ("aside", aside(q)), *((("saved", saved[q]),) if q in saved and "saved" in x else ())):
            got = [x[name].get("dimension", []), list(map(float, x[name].get("amount", [])))]
            expect(f"queues[{n}].{name}: dimensions", len(got[0]), len(got[1]))
            expect(f"queues[{n}].{name}: dimensions, once", len(got[0]), len(set(got[0])))
            expect(f"queues[{n}].{name}: dimensions that exist", max(got[0], default=0) < len(self.u), True)
            expect(f"queues[{n}].{name}", sorted((d, v) for d, v in zip(*got) if v), [(d, v) for d, v in enumerate(want) if v])
        expect(f"queues[{n}].wants", x.get("wants", False), wants[q])
    return blocks, walk(self.root), {q: aside(q) for q in leaves}


def check(request, response):
    """A sentence for each number that is wrong."""
    cluster, fair, _ = check_shares(request, response)
    if not turns(request):
        check_claims(cluster, fair.get("queues", []))
    return list(faults)


if __name__ == "__main__":
    wrong = check(*(json.load(open(name)) for name in sys.argv[1:3]))
    print("\n".join(wrong) or "true: every number of the certificate and the claims is what the rules make of the snapshot")
    sys.exit(bool(wrong))
