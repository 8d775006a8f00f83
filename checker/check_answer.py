#!/usr/bin/env python3
"""Checks the answers of plugin `fair` to shares, order (of queues), allocatable, preemptive, enqueue and reclaim. It shares no code with the
engine.

    python3 check_answer.py request.json response.json

See check_fair.py: the first step asks for shares with `explain`. Each answer is formed anew and compared, field by field. A plan is searched
again if its candidates are named, and else with its victims as the only candidates. It prints each field that is wrong, and each that it
does not check, and exits with 1 if a field is wrong.
"""
import json, re, sys
from fractions import Fraction
from math import inf

from check_fair import HELD, check as check_shares, expect, faults, turns
from check_plan import check_claims

EVICTORS = {"proportion": "proportion", "capacity": "capacity", "hierarchicalDrf": "drf", "gang": "gang", "conformance": "conformance",
            "cooldown": "cdp", "fair": "fair"}
FAULT, CODE, LINES = "HIERARCHY_FAULT_", "REASON_CODE_", ("GUARANTEE", "FAIR_SHARE", "ENTITLEMENT")
GUARDS = ("gang", "conformance", "cdp")  # Plugins that protect candidates, and permit all others.
GIVEN = "the votes of other plugins are taken as they are given"
UNORDERED = "it depends on the order of candidates, which the request does not give"
unchecked, width = {}, 0


def message(**fields):
    """A message in the JSON mapping: what is 0, empty or None is left out. A name with _ at its end is of a field that may be 0."""
    camel = lambda name: "".join(w if i == 0 else w.title() for i, w in enumerate(name.strip("_").split("_")))
    return {camel(k): v for k, v in fields.items() if v is not None and (v or k.endswith("_") or isinstance(v, dict))}


def entries(path):
    """A path with [*] for each entry of a list, but answers and plugins have positions."""
    return re.sub(r"(answers|plugins)?\[\d+\]", lambda m: m[0] if m[1] else "[*]", path)


def omit(path, why):
    """Notes a field that is not checked."""
    unchecked.setdefault(entries(path), why)


def plain(x):
    """A scalar, with numbers as numbers, whether they are written as texts or not."""
    if isinstance(x, str) and (x in ("Infinity", "-Infinity", "NaN") or x.lstrip("-").isdigit()):
        return float(x) if x.endswith(("y", "N")) else int(x)
    return x


def compare(path, got, want, but={}):
    """Notes each field that is not as it must be. Amounts of 0 may be left out."""
    if isinstance(want, dict) and isinstance(got, dict):
        if want.keys() | got.keys() <= {"dimension", "amount"} and (isinstance(want.get("dimension"), list) or isinstance(got.get("dimension"), list)):
            return expect(path, amounts(got), amounts(want))
        if want.get("code") == CODE + "NOT_CALM":  # Its numbers are sums over the dimensions of one quotient each.
            got = dict(got, **{k: want[k] for k in ("have", "limit") if type(got.get(k)) in (int, float) and k in want
                               and abs(got[k] - want[k]) <= 2 * width * 2**-53 * abs(want[k])})
        for key in sorted(want.keys() | got.keys() | but.keys() & {"spared", "evictionOrder"}):
            if key in but:
                omit(f"{path}.{key}", but[key])
            else:
                compare(f"{path}.{key}", got.get(key), want.get(key), but)
    elif isinstance(want, list) and isinstance(got, list) and len(want) == len(got):
        for i, (g, w) in enumerate(zip(got, want)):
            compare(f"{path}[{i}]", g, w, but)
    else:
        g, w = plain(got), plain(want)
        if not (type(g) in (int, float) and type(w) in (int, float) and g == w):
            expect(path, (type(g) is bool, g), (type(w) is bool, w))


def amounts(resource):
    d, a = resource.get("dimension", []), [plain(x) for x in resource.get("amount", [])]
    return sorted((k, float(x)) for k, x in zip(d, a) if x) if len(d) == len(a) == len(set(d)) and max(d, default=0) < width else "no resource"


class Answers:
    """What fair answers about a cluster whose shares were checked."""
    def __init__(self, cluster, request):
        self.c, self.policy, self.admitted = cluster, request["input"]["policy"], set()
        self.texts = {"text": "a sentence made of the numbers beside it"} if request["input"].get("texts") else {}
        c = cluster
        self.width, self.names = range(len(c.u)), [q["name"] for q in c.queues]
        self.index = {name: i for i, name in enumerate(self.names)}
        rank = lambda d: {"cpu": 0, "memory": 1}.get(c.dims[d], 2)
        self.by_name = sorted(self.width, key=lambda d: (rank(d), c.dims[d].encode()))
        self.capability = {q: c.limits(q, "capability", inf) for q in c.order}
        self.leaves = {q for q in c.order if not c.kids[q] and q is not None}
        self.kinds = [k for t in self.policy["tiers"] for p in t["plugins"] for k in p if k != "disabled"]
        self.whole = not any(p.get("disabled") for t in self.policy["tiers"] for p in t["plugins"])
        self.alone = lambda *kinds: self.whole and not set(kinds) & set(self.kinds)

    def resource(self, row):
        return {"dimension": list(self.width), "amount": ["Infinity" if x == inf else x for x in row]}

    def because(self, code, q=None, d=None, have=0, need=0, limit=0, fault=None):
        return message(plugin="fair", code=CODE + code, queue_=q, dimension_=d, have=have, need=need, limit=limit, hierarchy_fault=fault)

    def refused(self, q):
        """Why a queue serves no jobs."""
        fault = self.c.fault(q) or ("JOB_ON_INNER_QUEUE" if self.c.kids[q] else None)
        return fault and self.because("HIERARCHY_REFUSED", q, fault=FAULT + fault)

    # shares

    def account(self, q):
        c, held = self.c, self.c.held[q]
        whole = lambda d: c.A[d] // c.u[d] * c.u[d]
        part = lambda d: Fraction(held[d], whole(d)) if c.A[d] >= c.u[d] else Fraction(0)
        most = max(map(part, self.width))
        at = next((d for d in self.by_name if part(d) == most), None) if most else None
        # Of both amounts as doubles, which differs from the exact one beyond 2^53.
        share = 0.0 if at is None else float(held[at]) / float(whole(at))
        guaranteed = [c.bounds(d, False)[q][3] * c.u[d] for d in self.width]
        real = [min([c.A[d]] + [self.capability[a][d] for a in c.path(q)]) for d in self.width]
        return message(
            queue=q, participating=True, weight=c.weight(q), guarantee=self.resource(guaranteed),
            deserved=self.resource([c.lines[q][d][2] * c.u[d] for d in self.width]), allocated=self.resource(held),
            request=self.resource(c.demand[q]), inqueue=self.resource(self.inqueue(q)), capability=self.resource(self.capability[q]),
            real_capability=self.resource(real),
            with_memory=self.resource([c.lines[q][d][3] * c.u[d] for d in self.width]) if c.memory else None, share=share, dominant_=at,
            overused=self.overused(q) is not None, ancestors=[a for a in reversed(c.path(q)[1:]) if a is not None], children=c.kids[q])

    def shares(self, path, step, got):
        at = [p for p in self.kinds if p in ("proportion", "capacity", "drf", "hierarchicalDrf", "fair")]
        plugins, asked = got.get("plugins", []), step.get("queues")
        chosen = range(len(self.names)) if asked is None else asked.get("index", []) + [self.index[n] for n in asked.get("name", [])]
        name = (lambda q: None) if step.get("omitNames") else (lambda q: self.names[q])
        expect(path + ".plugins", len(plugins), len(at))
        for i, (kind, p) in enumerate(zip(at, plugins)):
            if kind != "fair":
                omit(f"{path}.plugins[{i}]", "only fair is checked here")
                continue
            faulty = {q: f for q in range(len(self.names)) if (f := self.c.fault(q))}
            faulty |= {q: "JOB_ON_INNER_QUEUE" for q in (j["queue"] for j in self.c.jobs) if q not in faulty and self.c.kids[q]}
            order = sorted(faulty, key=lambda q: (self.c.fault(q) is None, self.names[q].encode()))
            reasons = [r for r in p.get("hierarchyReasons", [])]
            expect(f"{path}.plugins[{i}].hierarchyReasons", sorted(r.get("queue", -1) for r in reasons), sorted(order))
            for k, r in enumerate(reasons):
                compare(f"{path}.plugins[{i}].hierarchyReasons[{k}]", r, self.because("HIERARCHY_REFUSED", r.get("queue"), fault=FAULT + faulty.get(r.get("queue"), "")))
            queues = []
            for q in chosen:
                share = message(queue=q, **{}) if self.c.fault(q) else self.account(q)
                queues.append(message(**{"queue": q, "name": name(q)}) | share)
            want = message(plugin="fair", hierarchy_ready_=not faulty, queues=queues)
            want |= {k: p[k] for k in ("hierarchyReasons", "fair") if k in p}
            compare(f"{path}.plugins[{i}]", p, want, {"queues": "only some fields were asked for"} if step.get("fields") else {})
            expect(f"{path}.plugins[{i}]: derivation", "fair" in p, "explain" in step)
        ranks = {q: i for i, q in enumerate(self.in_order({j["queue"] for j in self.c.jobs}))}
        standings = []
        for q in chosen:
            reason = self.overused(q)
            standings.append(message(queue=q, name=name(q), overused=reason is not None, rank_=ranks.get(q), reasons=[reason] if reason else None))
        only = self.alone("proportion", "capacity", "hierarchicalDrf")
        compare(f"{path}.standings", got.get("standings", []), standings, self.texts if only else dict.fromkeys(("rank", "reasons", "overused"), "other plugins take part"))
        expect(path, sorted(got.keys() - {"plugins", "standings"}), [])

    # order

    def in_order(self, queues):
        serving, c = {q: i for i, q in enumerate(self.serving)}, self.c
        return sorted(queues, key=lambda q: (q not in serving, serving.get(q, 0), int(c.queues[q].get("createTime", 0)), self.names[q].encode()))

    def order(self, path, step, got):
        if "queues" not in step or "claimant" in str(step.keys()).lower() or not self.alone("proportion", "capacity", "hierarchicalDrf"):
            return False
        asked = step["queues"].get("index", []) + [self.index[n] for n in step["queues"].get("name", [])]
        queues = asked or sorted({j["queue"] for j in self.c.jobs}, key=lambda q: self.names[q].encode())
        ranked, ties, serves = self.in_order(queues), [], self.leaves
        for i, q in enumerate(ranked):
            if i and q not in serves and ranked[i - 1] not in serves:
                ties[-1] += 1
            else:
                ties.append(1)
        pairs = [message(left=l, right=r, compare=0 if not {l, r} & serves else -1 if ranked.index(l) < ranked.index(r) else 1,
                         less=ranked.index(l) < ranked.index(r)) for i, l in enumerate(queues) for r in queues[i + 1:]]
        compare(path, got, message(sorted=ranked, ties=ties, pairs=pairs if step.get("pairs") else None))
        return True

    # verdicts

    def permit(self, q, ask):
        c = self.c
        for a in c.path(q):
            for d in self.width:
                if ask[d] > 0 and c.held[a][d] + ask[d] > self.capability[a][d]:
                    return False, self.because("ABOVE_LIMIT", a, d, c.held[a][d], ask[d], self.capability[a][d])
        beyond = self.unentitled(q, ask, (3,))
        if beyond is None:
            return True, self.because("ENTITLED", q)
        for d in self.width:
            if ask[d] > 0 and ask[d] > self.free[d] - self.aside[q][d]:
                return False, self.because("NOT_IDLE", q, d, self.aside[q][d], ask[d], self.free[d])
        return True, self.above("BORROWED", q, beyond, ask, (3,))

    def line(self, q, d, lines):
        return min(self.c.lines[q][d][i] for i in lines) * self.c.u[d]

    def unentitled(self, q, ask, lines=(2, 3)):
        """The first dimension in which a queue may not hold that much more under some lines; taking needs 2 and 3."""
        return next((d for d in self.by_name if ask[d] > 0 and self.c.held[q][d] + ask[d] > self.line(q, d, lines)), None)

    def above(self, code, q, d, ask, lines=(2, 3)):
        return self.because(code, q, d, self.c.held[q][d], ask[d], self.line(q, d, lines))

    def allocatable(self, q, ask, simulation=False):
        if refusal := self.refused(q):
            return False, refusal
        if not self.c.open[q] and not simulation:
            return False, self.because("QUEUE_NOT_OPEN", q)
        return self.permit(q, ask)

    def preemptive(self, q, ask):
        refusal = self.refused(q) or (None if self.c.open[q] else self.because("QUEUE_NOT_OPEN", q))
        if not refusal:
            d = self.unentitled(q, ask)
            if d is None:
                return True, None
            refusal = self.above("NOT_ENTITLED", q, d, ask)
        return False, refusal

    def overused(self, q):
        against = None
        for _, job in self.blocks.get(q, []):
            for block in job:
                permitted, reason = self.permit(q, self.sum(block))
                if permitted:
                    return None
                against = against or reason
        return against

    def sum(self, tasks):
        return [sum(t["r"][d] for t in tasks) for d in self.width]

    def verdict(self, permitted, reason):
        return message(vote="VOTE_PERMIT" if permitted else "VOTE_REJECT", reasons=[reason] if reason else None)

    def tasks(self, selection):
        numbers = {t["name"]: i for i, t in enumerate(self.c.tasks) if t["name"]}
        return [dict(self.c.tasks[i], number=i) for i in selection.get("index", []) + [numbers[u] for u in selection.get("uid", [])]]

    def task_verdicts(self, path, step, got, decide):
        if not self.alone("proportion", "capacity"):
            return False
        tasks, want = self.tasks(step.get("tasks", {})), []
        for block in [tasks] if step.get("jointly") else [[t] for t in tasks]:
            q = block[0]["queue"]
            permitted, reason = decide(q, self.sum(block))
            checks = [message(passed=permitted, reason=reason or self.because("ENTITLED", q))] if step.get("explain") else None
            want.append(message(task_=None if step.get("jointly") else block[0]["number"], verdict=self.verdict(permitted, reason), checks=checks))
        compare(path, got, message(tasks=want), self.texts)
        return True

    # admission

    def minimum(self, j):
        return j["minimum"]

    def lack(self, i):
        """What an admitted job lacks of its minimum."""
        j = self.c.jobs[i]
        if j["leaf"] == -1 or not (j["phase"] == "JOB_PHASE_INQUEUE" or i in self.admitted) or j["minimum"] is None or j["tasks"] and not j["fitting"]:
            return None
        return [max(0, x - h) for x, h in zip(j["minimum"], j["row"])]

    def inqueue(self, q, but=None):
        rows = [row for i, j in enumerate(self.c.jobs) if i != but and j["leaf"] != -1 and q in self.c.path(j["leaf"]) and (row := self.lack(i))]
        return [sum(row[d] for row in rows) for d in self.width]

    def enters(self, i):
        c, j = self.c, self.c.jobs[i]
        q, can = j["queue"], j["fitting"] + j["counted"]
        need = min(j["tasks"] + j["counted"], max(1, j["least"]))
        if refusal := self.refused(q):
            return False, refusal
        if not c.open[q]:
            return False, self.because("QUEUE_NOT_OPEN", q)
        if j["tasks"] and can < need:
            return False, self.because("NEVER_FITS", q, have=can, limit=need)
        for d, x in enumerate(j["minimum"] or []):
            if x > c.A[d]:
                return False, self.because("ABOVE_TOTAL", q, d, need=x, limit=c.A[d])
        for a in c.path(q) if j["minimum"] is not None else []:
            entered = self.inqueue(a, i)
            for d, x in enumerate(j["minimum"]):
                have = c.held[a][d] + entered[d]
                if x > 0 and have + x > self.capability[a][d]:
                    return False, self.because("ABOVE_LIMIT", a, d, have, x, self.capability[a][d])
        return True, None

    def enqueue(self, path, step, got):
        if step.get("mode", "ENQUEUE_MODE_VOTES") not in ("ENQUEUE_MODE_VOTES", "ENQUEUE_MODE_UNSPECIFIED") or not self.alone("proportion", "capacity", "overcommit"):
            return False
        named = {j["key"][2].decode(): i for i, j in enumerate(self.c.jobs)}
        asked = step.get("jobs")
        jobs = range(len(self.c.jobs)) if asked is None else asked.get("index", []) + [named[u] for u in asked.get("uid", [])]
        compare(path, got, message(jobs=[message(job=i, uid=None if step.get("omitNames") else self.c.jobs[i]["key"][2].decode(),
                                                 verdict=self.verdict(*self.enters(i))) for i in jobs]), self.texts)
        return True

    # victims

    def ineligible(self, t, mine):
        """Why the reclaim action does not consider a task for a claimant of a queue."""
        spared = (("NOT_RUNNING", t["status"] != "RUNNING"), ("NOT_PREEMPTABLE", not t["preemptable"]),
                  ("BEST_EFFORT_VICTIM", not any(x > 0 for x in t["r"])), ("SAME_QUEUE", t["queue"] == mine),
                  ("QUEUE_NOT_RECLAIMABLE", not self.c.queues[t["queue"]].get("reclaimable", True)))
        return next((code for code, holds in spared if holds), None)

    def reclaim(self, path, step, got):
        tiers = [(EVICTORS[k], i) for i, t in enumerate(self.policy["tiers"]) for p in t["plugins"] for k in p if k in EVICTORS]
        at = [name for name, _ in tiers].index("fair")
        if not self.whole or tiers[0][1] != tiers[at][1]:
            return False
        claim, ordered = self.tasks(step["claimant"]), "candidates" in step
        name = (lambda t: None) if step.get("omitNames") else (lambda t: t["name"])
        named, candidates, left = self.tasks(step["candidates"] if ordered else {"index": list(range(len(self.c.tasks)))}), [], []
        for t in named:
            twice = any(t["number"] == other["number"] for other in candidates) or any(t["number"] == s.get("task", 0) for s in left)
            code = "NOT_A_CANDIDATE" if twice else self.ineligible(t, claim[0]["queue"]) if step.get("eligibleOnly") or not ordered else None
            if code is None:
                candidates.append(t)
            elif ordered:
                reason = message(code=CODE + code, queue_=None if twice else t["queue"])
                left.append(message(task=t["number"], uid=name(t), reasons=[reason]))
        votes, released, why, unsure = [], list(candidates), {}, False
        for (plugin, tier), given in zip(tiers, got.get("byPlugin", []) + [{}] * len(tiers)):
            vote = message(plugin=plugin, tier=tier, vote="VOTE_ABSTAIN")
            if plugin != "fair" and given:
                because = {}
                if plugin in GUARDS:
                    vote |= message(vote="VOTE_PERMIT", victims=self.permits(plugin, self.arranged(candidates, given.get("victims", []), ordered), because))
                    if not ordered:
                        omit(f"{path}.byPlugin[0].victims", UNORDERED)
                else:
                    omit(f"{path}.byPlugin[0]", GIVEN)
                    vote |= {k: given[k] for k in ("vote", "victims") if k in given}
                    expect(f"{path}.byPlugin: victims that are no candidates", set(given.get("victims", [])) - {t["number"] for t in candidates}, set())
                if tier == tiers[at][1] and vote["vote"] != "VOTE_ABSTAIN":
                    unsure = unsure or plugin not in GUARDS
                    for t in candidates:
                        if t["number"] not in vote.get("victims", []):
                            why.setdefault(t["number"], because.get(t["number"]))
                    released = [t for t in released if t["number"] in vote.get("victims", [])]
            votes.append(vote)
        room = {"CLAIM_ROOM_NODE": 0, "CLAIM_ROOM_ANY_NODES": "any"}.get(step.get("room"))
        if room == 0:
            node = step["node"]
            room = node["index"][0] if node.get("index") else next(i for i, n in enumerate(self.c.nodes) if n["name"] == node["name"][0])
        plan, refusal = got.get("plan", {}), self.no_plan(claim)
        if refusal:
            found = {"refusal": refusal, "victims": [], "why": {}}
        elif ordered:
            found = self.find(claim, released, room)
        else:
            found = self.promised(path, claim, released, room, plan, got)
        victims = [message(task=t["number"], uid=name(t)) for t in found["victims"]]
        votes[at] |= message(vote="VOTE_REJECT" if found["refusal"] else "VOTE_PERMIT", victims=[t["number"] for t in found["victims"]])
        spared = list(left)
        taken, free = {t["number"] for t in found["victims"]}, {t["number"] for t in released}
        if not ordered:
            candidates = self.arranged(candidates, [s.get("task", 0) for s in got.get("spared", [])], ordered)
        for t in candidates:
            given = got.get("spared", [])[len(spared)] if len(spared) < len(got.get("spared", [])) else {}
            if t["number"] in taken or t["number"] in free and t["number"] not in found["why"]:
                continue
            if t["number"] in free:
                reasons = [found["why"][t["number"]]]
            elif why.get(t["number"]):
                reasons = [why[t["number"]]]
            else:
                reasons = [r for r in given.get("reasons", []) if r.get("plugin") != "fair"]
                omit(f"{path}.spared[0].reasons", "the reasons of other plugins are taken as they are given")
            spared.append(message(task=t["number"], uid=name(t), reasons=reasons))
        expect(path + ".evictionOrder", sorted(got.get("evictionOrder", [])), sorted(taken))
        want = message(decided=True, victims=victims, tier_=tiers[at][1], by_plugin=votes, spared=spared, plan=self.plan(found))
        but = {"evictionOrder": "the victims are checked; only the engine can order jobs", "checks": "the checks of single candidates are not repeated here"}
        if not ordered:
            but["spared"] = "their order is that of the answer" if refusal else UNORDERED
        promise = (("the plan keeps what it promises, but whether it is the first, and not another, is not checked: " if plan.get("made") else
                    "whether there is a plan is not checked: ") + UNORDERED) if not ordered and not refusal else ""
        for field in ("plan", "victims", "spared", "evictionOrder", f"byPlugin[{at}].victims", f"byPlugin[{at}].vote") if promise or unsure else ():
            omit(f"{path}.{field}", promise or "it follows from the votes of other plugins, which are taken as they are given")
        compare(path, got, want, but | self.texts)
        return True

    def arranged(self, candidates, first, ordered):
        """The candidates in their order or, if it is not known, those first that are named."""
        place = {n: i for i, n in reversed(list(enumerate(first)))}
        return candidates if ordered else sorted(candidates, key=lambda t: place.get(t["number"], inf))

    def permits(self, plugin, candidates, why):
        """The candidates that a plugin does not protect; why gets the reasons of the others."""
        ready, permitted = {i: j["ready"] for i, j in enumerate(self.c.jobs)}, []
        for t in candidates:
            if reason := self.protects(plugin, t, ready[t["job"]]):
                why[t["number"]] = reason
            else:
                ready[t["job"]] -= 1
                permitted.append(t["number"])
        return permitted

    def protects(self, plugin, t, ready):
        """Why a plugin protects a candidate. ready counts those of its job's tasks that are ready, without those permitted before."""
        job, detail = self.c.jobs[t["job"]], t["detail"]
        reason = lambda code, have=0, limit=0: message(plugin=plugin, code=CODE + code, have=have, limit=limit)
        if plugin == "gang":
            return reason("GANG_MINIMUM", ready, job["least"]) if ready <= job["least"] else None
        if plugin == "conformance":
            if detail.get("priorityClass") in ("system-cluster-critical", "system-node-critical"):
                return reason("SYSTEM_CRITICAL")
            return reason("SYSTEM_NAMESPACE") if job["namespace"] == "kube-system" else None
        if t["status"] not in ("RUNNING", "RELEASING") or not {"scheduleTime", "cooldown"} <= detail.keys():
            return None
        now, then, least = int(self.c.s.get("asOf", 0)), int(detail["scheduleTime"]), int(detail["cooldown"])
        since = float(now - then) if -2**63 <= now - then < 2**63 else float(now) - float(then)
        return reason("COOLDOWN", since, float(least)) if now - then < least else None

    def no_plan(self, claim):
        """Why a claimant may not have a plan."""
        q, need = claim[0]["queue"], self.sum(claim)
        refusal = self.refused(q) or (None if self.c.open[q] else self.because("QUEUE_NOT_OPEN", q))
        refusal = refusal or (None if any(x > 0 for x in need) else self.because("BEST_EFFORT_CLAIMANT", q))
        d = None if refusal else self.unentitled(q, need)
        return refusal or (None if d is None else self.above("NOT_ENTITLED", q, d, need))

    def promised(self, path, claim, released, room, plan, got):
        """What is said of candidates whose order is not known, as far as it can be true."""
        if not plan.get("made"):
            found = self.find(claim, [], room)
            if not found["refusal"]:
                return found
            r, q, need = plan.get("refusal", {}), claim[0]["leaf"], self.sum(claim)
            d, a = r.get("dimension", -1), r.get("queue")
            refusal = self.because("NO_PLAN", q)
            if r.get("code") == CODE + "ABOVE_LIMIT" and d in self.width and a in self.c.path(q) and need[d] > 0:
                have = int(min(max(plain(r.get("have", 0)), 0), self.c.held[a][d]))
                if have + need[d] > self.capability[a][d]:
                    refusal = self.because("ABOVE_LIMIT", a, d, have, need[d], self.capability[a][d])
            return {"refusal": refusal, "victims": [], "why": {}}
        line = next((i for i, name in enumerate(LINES) if plan.get("line") == "FAIR_LINE_" + name), 0)
        victims = [t for v in got.get("victims", []) for t in released if t["number"] == v.get("task", 0)]
        if self.unentitled(claim[0]["leaf"], self.sum(claim), (line,)) is not None:
            return {"refusal": self.because("NOT_ENTITLED", claim[0]["leaf"]), "victims": [], "why": {}}
        return Search(self, claim, victims, room, line).attempt()

    def plan(self, found):
        if found["refusal"]:
            return {"refusal": found["refusal"]}
        fractions = lambda list_: [{"numerator": str(f.numerator), "denominator": str(f.denominator)} for f in list_]
        return message(made=True, line="FAIR_LINE_" + LINES[found["line"]], fall=fractions(found["fall"]), rise=fractions(found["rise"]), node=found["nodes"])

    def find(self, claim, candidates, room):
        best = None
        for line in (2, 1, 0):
            if self.unentitled(claim[0]["leaf"], self.sum(claim), (line,)) is None:
                found = Search(self, claim, candidates, room, line).attempt()
                best = found if best is None or not found["refusal"] else best
                if not found["refusal"]:
                    break
        return best


class Search:
    """One search for a plan under a line: candidates in order, all or nothing, and what is not needed is put back."""
    def __init__(self, answers, claim, candidates, room, line):
        self.a, self.c, self.claim, self.candidates, self.room, self.line = answers, answers.c, claim, candidates, room, line
        self.q, self.need, self.taken, self.why, self.nodes = claim[0]["leaf"], answers.sum(claim), [], {}, []
        zeros = lambda keys: {k: [0] * len(self.c.u) for k in keys}
        self.gone, self.freed, self.placed = zeros(self.c.order), zeros(self.c.future), zeros(self.c.future)
        held = self.c.held[self.q]
        self.fall = [self.lack(self.q, held, i) - self.lack(self.q, [h + x for h, x in zip(held, self.need)], i) for i in range(3)]
        self.rise = [Fraction(0)] * 3
        for v in candidates:
            if code := self.spares(v):
                self.why[v["number"]] = answers.because(code, v["queue"])

    def lack(self, q, held, line):
        return sum((Fraction(max(0, self.c.lines[q][d][line] * u - held[d]), self.c.A[d] // u * u) for d, u in enumerate(self.c.u) if self.c.A[d] >= u), Fraction(0))

    def spares(self, v):
        tests = (("HIERARCHY_REFUSED", v["leaf"] == -1), ("NOT_RUNNING", v["status"] != "RUNNING"), ("NOT_PREEMPTABLE", not v["preemptable"]),
                 ("BEST_EFFORT_VICTIM", not any(x > 0 for x in v["r"])),
                 ("QUEUE_NOT_RECLAIMABLE", v["leaf"] != -1 and not self.c.queues[v["leaf"]].get("reclaimable", True)), ("SAME_QUEUE", v["leaf"] == self.q))
        return next((code for code, holds in tests if holds), None)

    def held(self, q):
        return [h - g for h, g in zip(self.c.held[q], self.gone[q])]

    def attempt(self):
        refusal, code = self.limits(), "NOT_NEEDED"
        if not refusal and not self.make_room():
            refusal = self.a.because("NO_PLAN", self.q)
        if refusal:
            code, self.taken = "NO_PLAN", []
        else:
            self.fill_back()
        for v in self.candidates:
            if v not in self.taken:
                self.why.setdefault(v["number"], self.a.because(code, v["queue"]))
        return {"refusal": refusal, "line": self.line, "victims": self.taken, "nodes": self.nodes, "fall": self.fall, "rise": self.rise, "why": self.why}

    def over(self, a, d):
        return self.need[d] > 0 and self.held(a)[d] + self.need[d] > self.a.capability[a][d]

    def limits(self):
        for a in self.c.path(self.q):
            for d in self.a.width:
                for v in self.candidates:
                    if self.over(a, d) and (v["leaf"] == -1 or a in self.c.path(v["leaf"])):
                        self.consider(v, [d])
        for a in self.c.path(self.q):
            for d in self.a.width:
                if self.over(a, d):
                    return self.a.because("ABOVE_LIMIT", a, d, self.held(a)[d], self.need[d], self.a.capability[a][d])

    def make_room(self):
        if self.room is None or not self.c.nodes:
            return self.clear(None, self.need)
        if self.room != "any":
            for t in self.claim:
                if not self.c.may_use(self.room, t):
                    return False
                self.nodes.append(self.room)
            made = self.clear(self.room, self.need)
            self.place(self.room, self.need)
            return made
        for t in self.claim:
            n = self.house(t)
            if n is None:
                return False
            self.nodes.append(n)
            self.place(n, t["r"])
        return True

    def house(self, t):
        nodes = [n for n in sorted(range(len(self.c.nodes)), key=lambda n: self.c.nodes[n]["name"].encode()) if self.c.may_use(n, t)]
        for n in nodes:
            if not self.short(n, t["r"]):
                return n
        for n in nodes:
            before = len(self.taken)
            if self.clear(n, t["r"]):
                return n
            while len(self.taken) > before:
                v = self.taken.pop()
                self.evict(v, -1)
                self.why.pop(v["number"], None)

    def place(self, n, request):
        for at in (n, None):
            self.placed[at] = [p + x for p, x in zip(self.placed[at], request)]

    def remains(self, n, d):
        return self.c.future[n][d] + self.freed[n][d] - self.placed[n][d]

    def short(self, n, request):
        return [d for d, x in enumerate(request) if x > 0 and min(self.remains(None, d), self.remains(n, d)) < x]

    def clear(self, n, request):
        short = self.short(n, request)
        for v in self.candidates:
            if not short:
                break
            if (n is None or v["node"] in (None, n)) and self.consider(v, short):
                short = self.short(n, request)
        return not short

    def consider(self, v, short):
        if v in self.taken or self.spares(v):
            return False
        shared = [d for d in short if v["r"][d] > 0]
        within = self.above(v, shared)
        after = self.after(v)
        if not shared:
            reason = self.a.because("NO_SHARED_DIMENSION", v["leaf"])
        elif within:
            reason = within
        elif after >= self.fall:
            at = next((i for i in range(3) if after[i] != self.fall[i]), 2)
            reason = self.a.because("NOT_CALM", v["leaf"], shared[0], float(after[at]), v["r"][shared[0]], float(self.fall[at]))
        else:
            self.evict(v, 1)
            self.taken.append(v)
            self.why.pop(v["number"], None)
            return True
        self.why[v["number"]] = reason
        return False

    def above(self, v, shared):
        """None if a candidate's queue, and all above it that are not the claimant's, hold more than the line; else the first that does not."""
        mine, first = self.c.path(self.q), None
        for d in shared:
            for a in self.c.path(v["leaf"]):
                if a in mine:
                    return None
                line, remembers = self.c.lines[a][d][self.line] * self.c.u[d], self.c.memory and self.line > 0
                if remembers:
                    line = max(line, self.c.lines[a][d][3] * self.c.u[d])
                if self.held(a)[d] <= line + (v["r"][d] if remembers else 0):  # With memory: without the task too.
                    first = first or self.a.because("WITHIN_ENTITLEMENT", a, d, self.held(a)[d], v["r"][d], line)
                    break
        return first

    def after(self, v):
        now = self.held(v["leaf"])
        then = [h - x for h, x in zip(now, v["r"])]
        return [r + self.lack(v["leaf"], then, i) - self.lack(v["leaf"], now, i) for i, r in enumerate(self.rise)]

    def evict(self, v, times):
        if times > 0:
            self.rise = self.after(v)
        for table, keys in ((self.gone, self.c.path(v["leaf"])), (self.freed, {None, v["node"]})):
            for k in keys:
                table[k] = [g + times * x for g, x in zip(table[k], v["r"])]
        if times < 0:
            self.rise = [2 * r - a for r, a in zip(self.rise, self.after(v))]

    def fill_back(self):
        for v in reversed(list(self.taken)):
            self.evict(v, -1)
            if self.lacks(v["node"]):
                self.evict(v, 1)
                continue
            self.taken.remove(v)
            self.why[v["number"]] = self.a.because("NOT_NEEDED", v["leaf"])

    def lacks(self, node):
        for d, x in enumerate(self.need):
            if x > 0 and (self.remains(None, d) < (0 if self.nodes else x) or any(self.over(a, d) for a in self.c.path(self.q)) or
                          node is not None and self.placed[node][d] > 0 and self.remains(node, d) < 0):
                return True
        return False


# The steps that change the state, and those that leave the answers here as they are.
CHANGES = {"setStatus", "allocate", "deallocate", "addJob", "removeJob", "rollback", "change"}
BESIDE = {"mark", "enqueue"}


def check(request, response):
    """A sentence for each field that is wrong; what is not checked is left in unchecked. A response of another form is wrong."""
    unchecked.clear()
    faults.clear()
    try:
        if turns(request):
            omit("answers", "the rules of turns are not repeated here")
            return []
        return answers_of(request, response)
    except (AttributeError, IndexError, KeyError, OverflowError, StopIteration, TypeError, ValueError, ZeroDivisionError) as e:
        return list(faults) + [f"the response does not fit the request: {e!r}"]


def answers_of(request, response):
    steps, answers = request.get("steps", [{"shares": request.get("shares")}]), response.get("answers", [response])
    global width
    for field in ("engineVersion", "policyDigest", "restricted", "snapshotDigest", "view", "warnings"):
        omit("basis." + field, "it does not follow from the request")
    for n, answer in enumerate(answers):
        if "error" in answer:
            omit(f"answers[{n}]", "it is an error, which says nothing that could be checked")
    if answers and "error" in answers[0]:
        for n in range(1, len(answers)):
            omit(f"answers[{n}]", "it rests on the shares of the first answer, which is an error")
        expect("answers", len(answers), len(steps))
        return list(faults)
    cluster, fair, _ = check_shares(request, response)
    width = len(cluster.u)
    a = Answers(cluster, request)
    a.free = list(cluster.free[None])
    a.blocks, a.serving, a.aside = check_claims(cluster, fair.get("queues", []))
    expect("answers", len(answers), len(steps))
    asked = {"shares": lambda *x: a.shares(*x) or True, "order": a.order, "enqueue": a.enqueue, "reclaim": a.reclaim,
             "allocatable": lambda path, s, got: a.task_verdicts(path, s, got, lambda q, r: a.allocatable(q, r, s.get("mode") == "ACCOUNTING_MODE_SIMULATION")),
             "preemptive": lambda path, s, got: a.task_verdicts(path, s, got, a.preemptive)}
    for n, (step, answer) in enumerate(zip(steps, answers)):
        changed = "error" not in answer and next(iter(step)) in CHANGES | BESIDE
        expect(f"answers[{n}].changed", answer.get("changed", False), changed)
    for n, (step, answer) in enumerate(zip(steps, answers)):
        kind = next(iter(step))
        answer = {field: value for field, value in answer.items() if field != "changed"}
        if kind in CHANGES:
            for k in range(n, len(answers)):
                omit(f"answers[{k}]", "the state has changed since the request")
            break
        path = f"answers[{n}].{kind}"
        if list(answer) == ["error"]:
            continue
        if list(answer) != [kind]:
            expect(path, list(answer), [kind])
        elif kind not in asked or not asked[kind](path, step[kind], answer[kind]):
            omit(path, "other plugins decide it, or it is not repeated here")
    return list(faults)


if __name__ == "__main__":
    wrong = check(*(json.load(open(name)) for name in sys.argv[1:3]))
    errors = sum(why.startswith("it is an error") for why in unchecked.values())
    print("\n".join(wrong) or "true: every field that is not listed below follows from the request")
    print("\n".join(f"not checked: {field}: {why}" for field, why in sorted(unchecked.items())))
    if errors:
        print(f"not checked: {errors} answers are errors")
    sys.exit(bool(wrong or errors))
