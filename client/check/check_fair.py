#!/usr/bin/env python3
"""Checks an answer of plugin `fair` against its snapshot. It shares no code with the engine and needs Python alone.

    python3 check_fair.py request.json response.json

The request is an EvaluateSharesRequest with `shares.explain`, or a SimulateRequest whose first step is such a question; both files are in the
protobuf JSON mapping. It prints each number that the rules do not make of the snapshot, and exits with 1 if there is one. Shares are not
computed but checked: they must add up, keep their bounds, and no quantum may go to a later signpost than one that was refused.
It checks the certificate alone: what queues hold and plans, `apportion verify` checks too.
"""
import json, sys
from fractions import Fraction
from math import ceil, floor, inf

HELD, LARGEST, faults = ("ALLOCATED", "BINDING", "BOUND", "RUNNING"), 1 << 60, []

def expect(path, got, want):
    if got != want:
        faults.append(f"{path} is {got}, not {want}")

class Cluster:
    """What the snapshot says: the tree, and what tasks hold, demand, occupy and release. Amounts are whole."""
    def __init__(self, snapshot, settings, dims):
        self.s, self.dims, self.queues, self.nodes = snapshot, dims, snapshot.get("queues", []), snapshot.get("nodes", [])
        self.memory, self.remembers = snapshot.get("memory"), settings.get("memory", {})
        self.base, self.reserve = settings.get("base", "FAIR_BASE_NONE"), settings.get("reserveGuarantee", False)
        stated = {q["name"]: int(q["amount"]) for q in settings.get("quanta", [])}
        self.u = [stated.get(n, {"cpu": 1, "pods": 1, "memory": 1 << 20}.get(n, 1000)) for n in dims]
        index = {q["name"]: i for i, q in enumerate(self.queues)}
        self.root, self.parent = index.get("root"), {}
        above = self.above = lambda i: self.root if self.queues[i].get("parent", "") in ("", "root") else index.get(self.queues[i]["parent"], -1)
        for i in index.values():  # A queue whose way up does not reach the root is set aside.
            way, at = set(), i
            while at not in (self.root, -1) and at not in way:
                way.add(at)
                at = above(at)
            if at == self.root and len(way) <= 256:
                self.parent[i] = None if i == self.root else above(i)
        get = lambda q, field, otherwise: otherwise if q is None else self.queues[q].get(field, otherwise)
        self.age = lambda q: int(get(q, "createTime", 0)) or inf
        self.priority, self.weight = lambda q: get(q, "priority", 0), lambda q: get(q, "weight", 1)
        self.get = get
        self.limits = lambda q, field, absent: self.budgets(q, self.row(get(q, field, None), floor, absent), field)
        self.kids, self.order = {q: [] for q in [self.root, *self.parent]}, [self.root]
        for i in sorted((i for i in self.parent if i != self.root), key=lambda i: (-self.priority(i), self.age(i), get(i, "name", "").encode())):
            self.kids[self.parent[i]].append(i)
        for q in self.order:
            self.order += self.kids[q]
        closed = {q for q in self.order if get(q, "state", "QUEUE_STATE_OPEN") not in ("QUEUE_STATE_OPEN", "QUEUE_STATE_UNSPECIFIED")}
        self.open = {q: not closed & set(self.path(q)) for q in self.order}
        self.count(index)

    def usage(self, usage):
        """Quantum-seconds by dimension; those that are not stated are missing."""
        usage = usage or {}
        return {self.dims.index(self.s["dimensions"][i]): int(x) for i, x in zip(usage.get("dimensions", []), usage.get("quantumSeconds", []))}

    def left(self, q, kind):
        """Of a budget of a kind: by dimension its amount, and what is left of it."""
        budget = self.get(q, "budget", None) if self.memory else None
        if not budget or budget.get("kind") != "BUDGET_KIND_" + kind:
            return {}
        spent = self.usage(budget.get("spent"))
        return {d: (x, max(0, x - spent.get(d, 0))) for d, x in self.usage(budget.get("amount")).items()}

    def budgets(self, q, row, field):
        if field == "capability":
            for d, (_, left) in self.left(q, "HARD").items():
                most = left // int(self.memory["epochSeconds"]) * self.u[d]
                row[d] = min(row[d], most if most <= LARGEST else inf)
        return row

    def charged(self, usage, d):
        amounts, prices = self.usage(usage), self.remembers.get("prices")
        if prices is None:
            return amounts.get(d, 0)
        price = {p["dimension"]: p.get("amount", 0) for p in prices.get("prices", [])}
        return sum(price.get(self.dims[i], 0) * x for i, x in amounts.items())

    def weigh(self, fair):
        """The weights with memory follow from the usage that is given; they are left in self.W, by dimension and queue."""
        one, inner = 1 << 16, [q for q in self.order if self.kids[q] or q == self.root]
        gain, power, width = self.remembers.get("gain", 3 * one), self.remembers.get("power", 2), range(len(self.u))
        nominal = [{self.root: self.charged(self.memory.get("offered"), d)} for d in width]
        self.W = [{self.root: self.weight(self.root)} for d in width]
        got = fair.get("weights", [])
        expect("weights", [(x.get("queue"), x.get("dimension", 0)) for x in got], [(q, d) for q in inner for d in width])
        for (q, d), x in zip(((q, d) for q in inner for d in width), got):
            ks, usage = self.kids[q], {k: sum(self.charged(self.get(k, of, None), d) for of in ("usage", "reserved")) for k in self.kids[q] if self.get(k, "usage", None) is not None}
            known = [k for k in ks if k in usage and self.weight(k)]
            V, W, every, N = sum(usage[k] for k in known), sum(map(self.weight, known)), sum(map(self.weight, ks)), nominal[d][q]
            reference, rows, soft = max(V, N * W // every) if known else 0, [], lambda k: self.left(k, "SOFT").get(d)
            for k in ks:
                w, v, of = self.weight(k), usage.get(k, V), self.weight(k) if k in usage else W
                part = one * of * reference
                first = max(1, (one + gain) * part // (part + gain * v * W)) if reference and w else one
                f = first
                for _ in range(power - 1 if reference else 0):
                    f = max(1, f * first // one)
                s = one if soft(k) is None else 1 if soft(k)[0] == 0 else max(1, min(one, 4 * one * soft(k)[1] // soft(k)[0]))
                self.W[d][k], nominal[d][k] = (max(1, w * f * s // one), N * w // every) if w else (0, 0)
                rows.append((k, w, str(usage[k]) if k in usage else None, k not in usage, f if w else 0, s if w else 0, self.W[d][k]))
            at = f"weights of {q}, dimension {d}"
            expect(at, [x.get(n) for n in ("reference", "usage", "nominal")], [str(reference), str(V), str(N)])
            expect(at + ": weights", [int(x.get(n, 0)) for n in ("weight", "weightAll")], [W, every])
            expect(at + ": children", [(c.get("queue"), int(c.get("weight", 0)), c.get("usage"), c.get("isNew", False),
                                        c.get("factor", 0), c.get("budgetFactor", 0), int(c.get("effectiveWeight", 0))) for c in x.get("children", [])], rows)

    def row(self, resource, rounded, absent=0):
        out = [absent] * len(self.dims)
        for i, x in zip((resource or {}).get("dimensions", []), (resource or {}).get("amounts", [])):
            most = inf if absent == inf else LARGEST
            out[self.dims.index(self.s["dimensions"][i])] = most if float(x) > LARGEST else rounded(float(x))
        return out

    def sum_of_nodes(self):
        """What the nodes offer, as floating-point numbers in the order of names, rounded down."""
        total = [0.0] * len(self.dims)
        for n in sorted(self.nodes, key=lambda n: n["name"].encode()):
            for i, x in zip(n.get("allocatable", {}).get("dimensions", []), n.get("allocatable", {}).get("amounts", [])):
                total[self.dims.index(self.s["dimensions"][i])] += float(x)
        return [floor(min(x, LARGEST)) for x in total]

    def path(self, q):
        return [q] if q == self.root else [q] + self.path(self.parent[q])

    def count(self, index):
        zeros = lambda keys: {k: [0] * len(self.dims) for k in keys}
        offer = {i: self.row(n.get("allocatable"), floor) for i, n in enumerate(self.nodes)}
        used = [self.row(n.get("usedByOthers"), ceil) for n in self.nodes]
        total = self.row(self.s["total"], floor) if "total" in self.s else self.sum_of_nodes()
        self.A = [t - sum(r[d] for r in used) for d, t in enumerate(total)]
        sets = {s["name"]: s.get("nodes", []) for s in self.s.get("nodeSets", [])}
        tolerant = {s["name"] for s in self.s.get("nodeSets", []) if s.get("toleratesCordon")}
        cordoned = lambda i: self.nodes[i]["unschedulable"].get("cause") == "UNSCHEDULABLE_CAUSE_CORDONED"
        takes = lambda i, of: ("unschedulable" not in self.nodes[i] or of in tolerant and cordoned(i)) and (not of or i in sets[of])
        within = lambda r, room: all(x <= room[d] for d, x in enumerate(r) if x > 0)
        fits = lambda r, of: any(within(r, offer[i]) and takes(i, of) for i in offer) or not offer and within(r, total) and not of
        add = lambda row, r, n: row.__setitem__(slice(None), [a + n * x for a, x in zip(row, r)])
        self.demand = zeros(self.order)
        for job in self.s.get("jobs", []):
            q = index[job["queue"]]
            leaf = q if not self.kids.get(q, [0]) else -1  # Jobs on other queues are set aside.
            for group in job.get("groups", []):
                for t in [dict(t, count=1) for t in group.get("tasks", [])] + group.get("counts", []):
                    detail, n, status = t.get("detail", {}), t.get("count", 0), t.get("status", "TASK_STATUS_PENDING")[12:]
                    r, of = self.row(detail.get("request", group.get("request")), ceil), detail.get("nodeSet") or group.get("nodeSet")
                    if leaf == -1:
                        add(self.A, r, -n * (status in HELD or status == "RELEASING"))
                        continue
                    counts = self.open[leaf] and fits(r, of)
                    waits = status in ("PENDING", "UNSPECIFIED") and detail.get("gate", t.get("gate")) != "TASK_GATE_OTHER"
                    held = status in HELD or status == "PIPELINED"
                    add(self.demand[leaf], r, n * (held or counts and (waits or status == "RELEASING")))
        self.A = [max(0, a) for a in self.A]
        for q in reversed(self.order[1:]):
            add(self.demand[self.parent[q]], self.demand[q], 1)

    def bounds(self, d, sated):
        """Section 2: per queue lo, m, hi, G, D and capability, in quanta."""
        b, quanta = {}, lambda x: x if x in (inf, None) else x // self.u[d]
        for q in reversed(self.order):
            c, g, t = (quanta(self.limits(q, *f)[d]) for f in (("capability", inf), ("guarantee", 0), ("deserved", None)))
            below = lambda i: sum(b[k][i] for k in self.kids[q])
            want = self.A[d] if sated and self.demand[q][d] > 0 else self.demand[q][d]
            hi = min(c, below(2) if self.kids[q] else -(-want // self.u[d]))
            G = min(c, max(g, below(3)))
            lo = min(c, max(g, below(0))) if self.reserve else min(hi, max(min(g, hi), below(0)))
            deserved = self.base == "FAIR_BASE_DESERVED"
            m = max(lo, min(below(1) if t is None else t, max(hi, lo))) if deserved else lo
            b[q] = lo, m, max(hi, lo), G, max(G, min(c, below(4) if t is None else t)) if deserved else G, c
        return b

    def divide(self, at, division, d, b, Y, weight):
        """Section 3: one division is what the rules make of the bounds and the amount; it returns the shares."""
        q, ks = division.get("queue"), self.kids[division.get("queue")]
        lo, m = sum(b[k][0] for k in ks), sum(b[k][1] for k in ks)
        case = "GUARANTEE" if lo > Y else "DESERVED" if m > Y else "WEIGHT"
        expect(at + ".amount", int(division.get("amount", 0)), Y)
        expect(at + ".rule", division.get("rule"), "FAIR_CASE_" + case)
        expect(at + ".children", [p.get("queue") for p in division.get("children", [])], ks)
        shares, rows = {}, []
        for rank, (k, p) in enumerate(zip(ks, division.get("children", []))):
            W, s, top, z = {"GUARANTEE": (b[k][3], 0, b[k][0], 0), "DESERVED": (b[k][4], b[k][0], b[k][1], 0),
                            "WEIGHT": (weight(k), b[k][1], b[k][2], 0 if self.base.endswith(("NONE", "UNSPECIFIED")) else b[k][1])}[case]
            e = shares[k] = int(p.get("share", 0))
            for name, want in zip(("guaranteed", "begin", "useful", "weight", "start", "ceiling", "base"), (*b[k][:3], W, s, top, z)):
                expect(f"{at}.children[{rank}].{name}", int(p.get(name, 0)), want)
            expect(f"{at}.children[{rank}].bound", p.get("bound"), "FAIR_BOUND_" + ("UPPER" if e == top else "LOWER" if e == s else "LEVEL"))
            if not s <= e <= (top if W else s):
                faults.append(f"{at}.children[{rank}].share {e} is not within {s} and {top if W else s}")
            rows.append((e, W, s, top, z, rank))
        expect(at + ": sum of shares", sum(shares.values()), min(Y, sum(top if W else s for _, W, s, top, _, _ in rows)))
        last = max(((Fraction(2 * (e - z) - 1, 2 * W), k) for e, W, s, top, z, k in rows if W and e > s), default=None)
        next_ = min(((Fraction(2 * (e - z) + 1, 2 * W), k) for e, W, s, top, z, k in rows if W and e < top), default=None)
        if last and next_ and last > next_:
            faults.append(f"{at}: a quantum of child {last[1]} belongs to child {next_[1]}")
        level = division.get("level")
        expect(at + ".level", level and (int(level["numerator"]), int(level["denominator"])), last and last[0].as_integer_ratio())
        return shares

    def check_shares(self, fair):
        """All divisions and lines; entitlements are left in self.lines, in raw amounts."""
        expect("quanta", [int(x) for x in fair["quanta"]], self.u)
        total = [fair["total"].get("dimensions", []), list(map(float, fair["total"].get("amounts", [])))]
        expect("total: dimensions", [len(total[0]), len(set(total[0]))], [len(total[1])] * 2)
        expect("total: dimensions that exist", max(total[0], default=0) < len(self.u), True)
        expect("total", sorted((d, x) for d, x in zip(*total) if x), [(d, x) for d, x in enumerate(self.A) if x])
        inner, share = [q for q in self.order if self.kids[q] or q == self.root], {}
        if self.memory:
            self.weigh(fair)
        names = ("satedDivisions", "divisions", "rememberedDivisions") if self.memory else ("satedDivisions", "divisions")
        expect("rememberedDivisions and weights are there", ("rememberedDivisions" in fair, "weights" in fair), (bool(self.memory),) * 2)
        for name in names:
            expect(name, [(x.get("queue"), x.get("dimension", 0)) for x in fair[name]], [(q, d) for q in inner for d in range(len(self.u))])
            for d in range(len(self.u)):
                b = self.bounds(d, name == "satedDivisions")
                share[name, d] = {self.root: min(self.A[d] // self.u[d], b[self.root][5], inf if self.kids[self.root] else b[self.root][2])}
                for i, x in ((i, x) for i, x in enumerate(fair[name]) if x.get("dimension", 0) == d):
                    by = self.weight if name != "rememberedDivisions" else lambda k: self.W[d][k]
                    share[name, d].update(self.divide(f"{name}[{i}]", x, d, b, share[name, d][x.get("queue")], by))
            share[name] = [self.bounds(d, False) for d in range(len(self.u))]
        self.lines = {q: [(min(share["divisions"][d][q][0], e), min(e, max(share["divisions"][d][q][0], share["satedDivisions", d][q])), e, share[names[-1], d][q])
                          for d, e in ((d, share["divisions", d][q]) for d in range(len(self.u)))] for q in self.order}
        for name in names:
            for i, x in enumerate(fair[name]):
                d, root = x.get("dimension", 0), [("root", x["root"])] if "root" in x else []
                expect(f"{name}[{i}]: the root's own numbers", "root" in x, name != "satedDivisions" and x.get("queue") == self.root)
                for at, p in [(f"children[{k}]", p) for k, p in enumerate(x.get("children", []))] + root:
                    want = self.lines[p.get("queue")][d]
                    expect(f"{name}[{i}].{at}.guaranteeLine", int(p.get("guaranteeLine", 0)), want[0])
                    expect(f"{name}[{i}].{at}.fairLine", int(p.get("fairLine", 0)), want[1])
                    if at == "root":
                        got = [p.get("queue"), *(int(p.get(f, 0)) for f in ("guaranteed", "begin", "useful", "share", "weight", "start", "ceiling", "base"))]
                        expect(f"{name}[{i}].root.bound", p.get("bound"), None)
                        expect(f"{name}[{i}].root", got, [self.root, *share["divisions"][d][self.root][:3], want[2 + (name == "rememberedDivisions")], 0, 0, 0, 0])

def check(request, response):
    """A sentence for each number of the certificate that is wrong. One of another form than the request asks for is wrong."""
    faults.clear()
    try:
        settings = next(p["fair"] for t in request["input"]["policy"]["tiers"] for p in t["plugins"] if "fair" in p)
        shares = response.get("answers", [response])[0]["shares"]
        fair = next(p["fair"] for p in shares["plugins"] if p["plugin"] == "fair")
        Cluster(request["input"]["snapshot"], settings, response["basis"]["dimensions"]).check_shares(fair)
    except (AttributeError, IndexError, KeyError, OverflowError, StopIteration, TypeError, ValueError, ZeroDivisionError) as e:
        faults.append(f"the response does not fit the request: {e!r}")
    return list(faults)

if __name__ == "__main__":
    wrong = check(*(json.load(open(name)) for name in sys.argv[1:3]))
    print("\n".join(wrong) or "true: every number of the certificate is what the rules make of the snapshot")
    sys.exit(bool(wrong))
