#!/usr/bin/env python3
"""Looks for circles of evictions in small clusters with the solver Z3: for a state that comes back after some steps, in each of which a task
that waits evicts one that runs, as the rules permit. It finds one under Kueue's fair sharing and one under reclaim of Volcano's capacity, and
shows that there is none under fair within its bounds. `make model` runs it.

    python3 model.py [kueue|volcano|fair]...

Clusters have two resources, 6 units of each, and tasks that ask for 0 to 6 of each. In each state one task waits and all others run. A trace
is played again, step by step, by code that does not use the solver.
"""
import sys
from itertools import product

from z3 import And, If, Int, Not, Or, Solver, Sum, sat, unsat

TOTAL, DIMS = 6, range(2)
most = lambda xs: xs[0] if len(xs) == 1 else If(xs[0] >= most(xs[1:]), xs[0], most(xs[1:]))

class Cluster:
    """Requests of tasks and amounts of queues, numbers or unknowns; `of` is the queue of each task."""
    def __init__(self, of, queues, lines, make):
        self.of, self.queues = of, range(queues)
        self.request = [[make(f"request_{t}_{d}", TOTAL) for d in DIMS] for t in range(len(of))]
        self.line = [[[make(f"line_{i}_{q}_{d}", TOTAL) for d in DIMS] for q in self.queues] for i in range(lines)]

    def held(self, q, d, gone):
        return sum([r[d] for t, r in enumerate(self.request) if self.of[t] == q and t not in gone], 0)

    def fits(self, gone):
        return [sum([r[d] for t, r in enumerate(self.request) if t not in gone], 0) <= TOTAL for d in DIMS]

class Numbers:
    """The operations that rules use, on numbers in place of the solver's terms."""
    both, either, no = staticmethod(lambda xs: all(xs)), staticmethod(lambda xs: any(xs)), staticmethod(lambda x: not x)
    top, pos = staticmethod(max), staticmethod(lambda x: max(x, 0))

class Terms:
    both, either, no = staticmethod(lambda xs: And(*xs)), staticmethod(lambda xs: Or(*xs)), staticmethod(Not)
    top, pos = staticmethod(most), staticmethod(lambda x: If(x > 0, x, 0))

def room(c, o, waits, victim):
    """The task does not fit beside all others, and fits without the victim."""
    return [o.no(o.both(c.fits([]))), o.both(c.fits([victim]))]

def kueue(c, o, waits, victim):
    """Fair sharing with both strategies in their order; queues take from others only (reclaimWithinCohort Any), and lend all. line[0] is
    nominal quota. The share is the greatest part, of what all queues lend, that is used above nominal quota; all resources have one total."""
    share = lambda q, gone: o.top([o.pos(c.held(q, d, gone) - c.line[0][q][d]) for d in DIMS])
    over = lambda q, d: c.held(q, d, []) > c.line[0][q][d]
    short = [o.no(x) for x in c.fits([])]
    candidate = lambda v: o.either([o.both([short[d], over(c.of[v], d), c.request[v][d] > 0]) for d in DIMS])
    mine, others = c.of[waits], [v for v in range(len(c.of)) if c.of[v] != c.of[waits]]
    final = lambda v: share(mine, []) <= share(c.of[v], [v])
    initial = lambda v: share(mine, []) < share(c.of[v], [])
    # The queue with the greatest share comes first. By the first strategy the victim passes and no other candidate is asked before it does;
    # by the second no candidate passes the first.
    first = [o.either([o.no(candidate(u)), o.both([share(c.of[u], []) <= share(c.of[victim], []), o.either([c.of[u] != c.of[victim], o.no(final(u))])])])
             for u in others if u != victim]
    return [candidate(victim), o.either([o.both([final(victim), *first]), o.both(
        [initial(victim), o.no(final(victim))] + [o.either([o.no(candidate(u)), o.both([o.no(final(u)), share(c.of[u], []) < share(c.of[victim], [])])])
                                                  for u in others if u != victim])])]

def volcano(c, o, waits, victim):
    """Reclaim of capacity. line[0] is deserved: the claimant stays within it in at least one resource that it asks for, and the victim's queue
    exceeds it in a resource that the victim asks for and of which something is deserved. They share a resource."""
    mine, its, asks = c.of[waits], c.of[victim], lambda t, d: c.request[t][d] > 0
    return [o.either([o.both([asks(waits, d), c.held(mine, d, []) <= c.line[0][mine][d]]) for d in DIMS]),
            o.either([o.both([asks(victim, d), c.line[0][its][d] > 0, c.held(its, d, []) > c.line[0][its][d]]) for d in DIMS]),
            o.either([o.both([asks(victim, d), asks(waits, d)]) for d in DIMS])]

def fair(c, o, waits, victim):
    """The three lines of each queue, nested, and a plan of one victim that is calm. The lines are any numbers, so this has more plans than
    docs/fair.md permits."""
    lack = lambda i, q, gone: sum([o.pos(c.line[i][q][d] - c.held(q, d, gone)) for d in DIMS], 0)
    mine, its = c.of[waits], c.of[victim]
    fall = [lack(i, mine, [waits]) - lack(i, mine, []) for i in range(3)]
    rise = [lack(i, its, [victim]) - lack(i, its, []) for i in range(3)]
    less = lambda i: o.either([rise[i] < fall[i], o.both([rise[i] == fall[i], less(i + 1)])]) if i < 3 else o.both([1 < 0])
    return [less(0)]

RULES = {"kueue": (kueue, 1), "volcano": (volcano, 1), "fair": (fair, 3)}

def circles(tasks, steps):
    """Who waits in each state: the task that waits evicts the next one, which is of another queue, and the first comes back."""
    return [w for w in product(range(tasks), repeat=steps) if w[0] == min(w) and all(w[i] != w[(i + 1) % steps] for i in range(steps))]

def search(name, of, queues, steps):
    """The first circle of this many steps, as numbers; None if the solver proves that there is none."""
    rule, lines = RULES[name]
    for waiting in circles(len(of), steps):
        moves = [(waiting[k], waiting[(k + 1) % steps]) for k in range(steps)]
        if any(of[a] == of[b] for a, b in moves):
            continue
        solver = Solver()
        def make(label, top):
            x = Int(label)
            solver.add(x >= 0, x <= top)
            return x
        c = Cluster(of, queues, lines, make)
        for i, d in product(range(lines), DIMS):
            if lines == 1:
                solver.add(Sum([c.line[i][q][d] for q in c.queues]) == TOTAL)
            elif i:
                solver.add(*[c.line[i - 1][q][d] <= c.line[i][q][d] for q in c.queues])
        for t in range(len(of)):
            solver.add(Or(*[r > 0 for r in c.request[t]]))
        for waits, victim in moves:
            solver.add(*room(c, Terms, waits, victim), *rule(c, Terms, waits, victim))
        answer = solver.check()
        if answer == sat:
            model, take = solver.model(), lambda x: solver.model().eval(x, model_completion=True).as_long()
            known = Cluster(of, queues, lines, lambda *_: 0)
            known.request = [[take(x) for x in r] for r in c.request]
            known.line = [[[take(x) for x in row] for row in rows] for rows in c.line]
            return known, moves
        assert answer == unsat, answer
    return None

def play(name, c, moves):
    """Prints a circle, and checks each step of it with numbers."""
    for q in c.queues:
        tasks = ", ".join(f"task {t} of {c.request[t]}" for t in range(len(c.of)) if c.of[t] == q) or "no tasks"
        print(f"  queue {'abcd'[q]}: {'nominal' if name == 'kueue' else 'deserved'} {c.line[0][q]}, {tasks}")
    for waits, victim in moves:
        assert all(room(c, Numbers, waits, victim) + RULES[name][0](c, Numbers, waits, victim))
        running = [t for t in range(len(c.of)) if t != waits]
        print(f"  tasks {running} run; task {waits} of queue {'abcd'[c.of[waits]]} evicts task {victim} of queue {'abcd'[c.of[victim]]}")
    print(f"  tasks {[t for t in range(len(c.of)) if t != moves[0][0]]} run again")

def main(names):
    shapes = [((0, 1), 2), ((0, 1), 3), ((0, 0, 1), 3), ((0, 0, 1, 1), 3), ((0, 1, 2), 3), ((0, 0, 1, 2), 3)]
    for name in names:
        found = next(((f, s) for s in (2, 3, 4) for of, n in shapes if (f := search(name, of, n, s))), None)
        if found:
            print(f"{name}: a circle of {found[1]} steps, in units of two resources of which there are {TOTAL} each")
            play(name, *found[0])
        else:
            print(f"{name}: no circle of up to 4 steps in clusters of up to 4 tasks in 3 queues")
        assert bool(found) == (name != "fair")

if __name__ == "__main__":
    main(sys.argv[1:] or list(RULES))
