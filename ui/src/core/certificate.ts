// Checks the shares of plugin `fair` against the snapshot, with code of its own: shares are not computed, but must be what the rules of
// docs/fair.md make of the snapshot. So must be the account of each queue. Package checker does the same in Go, and checks plans too. Amounts are
// whole numbers; Infinity stands for no limit.
import { numberOf } from "./amount.ts";
import type { FairDerivationJson, FairDivisionJson, FairJson, MemoryDivisionJson, PluginSharesJson, QueueShareJson, ResourceJson, SnapshotJson } from "./contract.ts";
import { award, type Awarded } from "./award.ts";
import { compared, Memory } from "./memory.ts";
import { ranked } from "./rank.ts";

type Queue = number | undefined;
// Bounds of a queue in quanta: least, begin, most, guarantee, deserved, limit.
type Bounds = readonly [lo: number, m: number, hi: number, guarantee: number, deserved: number, limit: number];

// The lists of divisions: of the fair shares, by weight, and by weight with memory.
const lists = ["satedDivisions", "divisions", "rememberedDivisions"] as const;
type List = (typeof lists)[number];

const key = (d: number, q: Queue): string => `${d} ${q ?? "root"}`;

const whole = (x: number): bigint => (Number.isFinite(x) ? BigInt(x) : 2n ** 63n);

const held = new Set(["ALLOCATED", "BINDING", "BOUND", "RUNNING", "PIPELINED"]);
const largest = 50;

export interface Checked {
  // Sentences about numbers that are wrong, at most 50.
  readonly faults: readonly string[];
  readonly wrong: number;
  // How many numbers were compared.
  readonly compared: number;
}

// unchecked are the parts of the answer that are not checked here.
export const unchecked = [
  "what queues claim and leave aside", "what admitted jobs still lack", "which queues are overused", "their order and dominant resources",
  "for which gang room is kept",
] as const;

export function check(snapshot: SnapshotJson, settings: FairJson, dimensions: readonly string[], shares: PluginSharesJson): Checked {
  return new Check(snapshot, settings, dimensions).shares(shares);
}

class Check {
  readonly #faults: string[] = [];
  #wrong = 0;
  #compared = 0;
  readonly #quanta: number[];
  readonly #queues: NonNullable<SnapshotJson["queues"]>;
  readonly #root: Queue;
  readonly #parent = new Map<number, Queue>();
  readonly #children = new Map<Queue, number[]>();
  readonly #order: Queue[];
  readonly #demand = new Map<Queue, number[]>();
  readonly #held = new Map<Queue, number[]>();
  #total: number[] = [];
  // Undefined: the snapshot has no memory.
  readonly #memory: Memory | undefined;

  constructor(
    readonly snapshot: SnapshotJson,
    readonly settings: FairJson,
    readonly dimensions: readonly string[],
  ) {
    const stated = new Map((settings.quanta ?? []).map((q) => [q.name ?? "", Number(q.amount ?? 0)]));
    const usual: Record<string, number> = { cpu: 1, pods: 1, memory: 2 ** 20 };
    this.#quanta = dimensions.map((name) => stated.get(name) ?? (Object.hasOwn(usual, name) ? (usual[name] ?? 1000) : 1000));
    this.#queues = snapshot.queues ?? [];
    this.#memory = snapshot.memory === undefined ? undefined : new Memory(snapshot, settings, dimensions);
    const index = new Map(this.#queues.map((q, i) => [q.name ?? "", i]));
    this.#root = index.get("root");
    this.#order = [this.#root];
    this.#tree(index);
    this.#count(index);
  }

  // expect notes a number that is not what it must be.
  #expect(path: string, got: unknown, want: unknown): void {
    this.#compared++;
    if (!Object.is(got, want)) {
      this.#fault(`${path} is ${String(got)}, not ${String(want)}`);
    }
  }

  #fault(text: string): void {
    this.#wrong++;
    if (this.#faults.length < largest) {
      this.#faults.push(text);
    }
  }

  #row(resource: ResourceJson | undefined, rounded: (x: number) => number, absent = 0): number[] {
    const out = this.dimensions.map(() => absent);
    resource?.dimensions?.forEach((d, i) => {
      const amount = numberOf(resource.amounts?.[i]);
      const at = this.dimensions.indexOf(this.snapshot.dimensions?.[d] ?? this.dimensions[d] ?? "");
      if (at >= 0) {
        out[at] = Number.isFinite(amount) ? rounded(amount) : amount;
      }
    });
    return out;
  }

  // #tree sets queues aside whose way up does not reach the root, and puts siblings in rank.
  #tree(index: ReadonlyMap<string, number>): void {
    const above = (i: number): Queue | null => {
      const name = this.#queues[i]?.parent ?? "";
      return name === "" || name === "root" ? this.#root : (index.get(name) ?? null);
    };
    for (const i of index.values()) {
      const way = new Set<Queue>();
      let at: Queue | null = i;
      while (at !== this.#root && at !== null && at !== undefined && !way.has(at)) {
        way.add(at);
        at = above(at);
      }
      if (at === this.#root) {
        this.#parent.set(i, i === this.#root ? undefined : (above(i) ?? undefined));
      }
    }
    for (const q of [this.#root, ...this.#parent.keys()]) {
      this.#children.set(q, []);
    }
    for (const i of ranked(this.#queues, [...this.#parent.keys()].filter((i) => i !== this.#root))) {
      this.#children.get(this.#parent.get(i))?.push(i);
    }
    for (const q of this.#order) {
      this.#order.push(...this.#kids(q));
    }
  }

  readonly #kids = (q: Queue): readonly number[] => this.#children.get(q) ?? [];

  #path(q: Queue): Queue[] {
    const way: Queue[] = [q];
    for (let at = q; at !== this.#root && at !== undefined; way.push(at)) {
      at = this.#parent.get(at);
    }
    return way;
  }

  // #offered is the sum of what the nodes offer in the order of their names, rounded down.
  #offered(): number[] {
    const nodes = [...(this.snapshot.nodes ?? [])].sort((l, r) => ((l.name ?? "") < (r.name ?? "") ? -1 : 1));
    const rows = nodes.map((n) => this.#row(n.allocatable, (x) => x));
    return this.dimensions.map((_, d) => Math.floor(rows.reduce((sum, row) => sum + (row[d] ?? 0), 0)));
  }

  // #count adds up what there is, and what queues have a use for.
  #count(index: ReadonlyMap<string, number>): void {
    const s = this.snapshot;
    const zeros = (): number[] => this.dimensions.map(() => 0);
    const offer = (s.nodes ?? []).map((n) => this.#row(n.allocatable, Math.floor));
    const total = s.total !== undefined ? this.#row(s.total, Math.floor) : this.#offered();
    for (const node of s.nodes ?? []) {
      this.#row(node.usedByOthers, Math.ceil).forEach((x, d) => { total[d] = (total[d] ?? 0) - x; });
    }
    const whole = s.total !== undefined ? this.#row(s.total, Math.floor) : zeros();
    const sets = new Map((s.nodeSets ?? []).map((set) => [set.name ?? "", new Set(set.nodes ?? [])]));
    const tolerant = new Set((s.nodeSets ?? []).filter((set) => set.toleratesCordon ?? false).map((set) => set.name ?? ""));
    const closed = (i: number, set: string): boolean => {
      const why = s.nodes?.[i]?.unschedulable;
      return why !== undefined && !(tolerant.has(set) && why.cause === "UNSCHEDULABLE_CAUSE_CORDONED");
    };
    const open = new Map<Queue, boolean>(this.#order.map((q) => [q, this.#path(q).every((a) => {
      const state = a === undefined ? undefined : this.#queues[a]?.state;
      return state === undefined || state === "QUEUE_STATE_OPEN" || state === "QUEUE_STATE_UNSPECIFIED";
    })]));
    this.#order.forEach((q) => { this.#demand.set(q, zeros()); this.#held.set(q, zeros()); });
    const within = (r: readonly number[], room: readonly number[]): boolean => r.every((x, d) => x <= 0 || x <= (room[d] ?? 0));
    const fits = (r: readonly number[], set: string): boolean => offer.length === 0 ? within(r, whole) :
      offer.some((room, i) => within(r, room) && !closed(i, set) && (set === "" || (sets.get(set)?.has(i) ?? false)));
    const known = new Map<string, boolean>();
    for (const job of s.jobs ?? []) {
      const q = index.get(job.queue ?? "");
      const leaf = q !== undefined && this.#children.has(q) && this.#kids(q).length === 0 ? q : null;
      for (const group of job.groups ?? []) {
        const tasks = [...(group.tasks ?? []).map((t) => ({ t, n: 1, gate: t.detail?.gate })), ...(group.counts ?? []).map((t) => ({ t, n: t.count ?? 0, gate: t.gate }))];
        for (const { t, n, gate } of tasks) {
          const detail = "detail" in t ? t.detail : undefined;
          const r = this.#row(detail?.request ?? group.request, Math.ceil);
          const status = (t.status ?? "TASK_STATUS_PENDING").slice("TASK_STATUS_".length);
          const released = status === "RELEASING";
          if (leaf === null) {
            if ((held.has(status) && status !== "PIPELINED") || released) {
              r.forEach((x, d) => { total[d] = (total[d] ?? 0) - n * x; });
            }
            continue;
          }
          const set = detail?.nodeSet || group.nodeSet || "";
          const key = `${set} ${r.join(" ")}`;
          const room = known.get(key) ?? fits(r, set);
          known.set(key, room);
          const counts = (open.get(leaf) ?? false) && room;
          const waits = counts && (status === "PENDING" || status === "UNSPECIFIED") && gate !== "TASK_GATE_OTHER";
          if (held.has(status)) {
            const row = this.#held.get(leaf) ?? [];
            r.forEach((x, d) => { row[d] = (row[d] ?? 0) + n * x; });
          }
          if (held.has(status) || waits || (counts && released)) {
            const demand = this.#demand.get(leaf) ?? [];
            r.forEach((x, d) => { demand[d] = (demand[d] ?? 0) + n * x; });
          }
        }
      }
    }
    this.#total = total.map((x) => Math.max(0, x));
    for (const q of this.#order.slice(1).reverse()) {
      for (const rows of [this.#demand, this.#held]) {
        const above = rows.get(q === undefined ? undefined : this.#parent.get(q));
        rows.get(q)?.forEach((x, d) => { if (above !== undefined) { above[d] = (above[d] ?? 0) + x; } });
      }
    }
  }

  // #capability is that of a queue, lowered by its hard budget.
  #capability(q: Queue): number[] {
    const queue = q === undefined ? undefined : this.#queues[q];
    return this.#row(queue?.capability, Math.floor, Infinity).map((x, d) => Math.min(x, this.#memory?.most(queue, d, this.#quanta[d] ?? 1) ?? Infinity));
  }

  // #bounds are those of all queues in one dimension. In the second division queues that want any want the whole cluster.
  #bounds(d: number, sated: boolean): Map<Queue, Bounds> {
    const b = new Map<Queue, Bounds>();
    const u = this.#quanta[d] ?? 1;
    const quanta = (x: number): number => (Number.isFinite(x) ? Math.floor(x / u) : x);
    const byDeserved = this.settings.base === "FAIR_BASE_DESERVED";
    for (const q of [...this.#order].reverse()) {
      const queue = q === undefined ? undefined : this.#queues[q];
      const c = quanta(this.#capability(q)[d] ?? Infinity);
      const g = quanta(this.#row(queue?.guarantee, Math.floor)[d] ?? 0);
      const written = this.#row(queue?.deserved, Math.floor, NaN)[d] ?? NaN;
      const t = Number.isNaN(written) ? undefined : quanta(written);
      const below = (i: 0 | 1 | 2 | 3 | 4): number => this.#kids(q).reduce((sum, k) => sum + (b.get(k)?.[i] ?? 0), 0);
      const demand = this.#demand.get(q)?.[d] ?? 0;
      const want = sated && demand > 0 ? (this.#total[d] ?? 0) : demand;
      const hi = Math.min(c, this.#kids(q).length > 0 ? below(2) : Math.ceil(want / u));
      const guarantee = Math.min(c, Math.max(g, below(3)));
      const lo = this.settings.reserveGuarantee === true ? Math.min(c, Math.max(g, below(0))) : Math.min(hi, Math.max(Math.min(g, hi), below(0)));
      const m = byDeserved ? Math.max(lo, Math.min(t ?? below(1), Math.max(hi, lo))) : lo;
      const deserved = byDeserved ? Math.max(guarantee, Math.min(c, t ?? below(4))) : guarantee;
      b.set(q, [lo, m, Math.max(hi, lo), guarantee, deserved, c]);
    }
    return b;
  }

  // #divide checks one division: it must be what the rules make of the bounds and the amount.
  #divide(at: string, x: FairDivisionJson, b: ReadonlyMap<Queue, Bounds>, amount: number, weight: (k: number) => bigint): Map<Queue, number> {
    const kids = this.#kids(x.queue);
    const sum = (i: 0 | 1): number => kids.reduce((s, k) => s + (b.get(k)?.[i] ?? 0), 0);
    const by = sum(0) > amount ? "GUARANTEE" : sum(1) > amount ? "DESERVED" : "WEIGHT";
    this.#expect(`${at}.amount`, Number(x.amount ?? 0), amount);
    this.#expect(`${at}.rule`, x.rule, `FAIR_CASE_${by}`);
    this.#expect(`${at}.children`, (x.children ?? []).map((p) => String(p.queue)).join(), kids.join());
    const shares = new Map<Queue, number>();
    const rows: Awarded[] = [];
    const onTop = this.settings.base !== undefined && !/(NONE|UNSPECIFIED)$/.test(this.settings.base);
    kids.forEach((k, i) => {
      const p = x.children?.[i] ?? {};
      const [lo, m, hi, g, t] = b.get(k) ?? [0, 0, 0, 0, 0, 0];
      const [s, top, z] = by === "GUARANTEE" ? [0, lo, 0] : by === "DESERVED" ? [lo, m, 0] : [m, hi, onTop ? m : 0];
      const w = by === "WEIGHT" ? weight(k) : whole(by === "GUARANTEE" ? g : t);
      const e = Number(p.share ?? 0);
      shares.set(k, e);
      const path = `${at}.children[${i}]`;
      const pairs = [[p.guaranteed, lo], [p.begin, m], [p.useful, hi], [p.start, s], [p.ceiling, top], [p.base, z]] as const;
      const names = ["guaranteed", "begin", "useful", "start", "ceiling", "base"];
      pairs.forEach(([got, want], n) => this.#expect(`${path}.${names[n] ?? ""}`, Number(got ?? 0), want));
      this.#expect(`${path}.weight`, BigInt(p.weight ?? 0), w);
      this.#expect(`${path}.bound`, p.bound, `FAIR_BOUND_${e === top ? "UPPER" : e === s ? "LOWER" : "LEVEL"}`);
      const most = w > 0n ? top : s;
      if (e < s || e > most) {
        this.#fault(`${path}.share ${e} is not within ${s} and ${most}`);
      }
      rows.push({ e, w, s, top, z });
    });
    this.#expect(`${at}: sum of shares`, [...shares.values()].reduce((a, c) => a + c, 0), Math.min(amount, rows.reduce((a, r) => a + (r.w > 0n ? r.top : r.s), 0)));
    const { misplaced, level } = award(rows);
    this.#compared++;
    if (misplaced !== undefined) {
      this.#fault(`${at}: ${misplaced}`);
    }
    this.#expect(`${at}.level`, x.level === undefined ? "" : `${x.level.numerator ?? "0"}/${x.level.denominator ?? "1"}`, level);
    return shares;
  }

  shares(plugin: PluginSharesJson): Checked {
    const fair: FairDerivationJson = plugin.fair ?? {};
    this.#expect("quanta", (fair.quanta ?? []).map(Number).join(), this.#quanta.join());
    this.#amounts("total", fair.total, this.#total);
    const inner = this.#order.filter((q) => this.#kids(q).length > 0 || q === this.#root);
    const effective = this.#weights(fair.weights ?? [], inner);
    const given = { satedDivisions: fair.satedDivisions ?? [], divisions: fair.divisions ?? [], rememberedDivisions: fair.rememberedDivisions ?? [] };
    const all = { satedDivisions: new Map<string, number>(), divisions: new Map<string, number>(), rememberedDivisions: new Map<string, number>() };
    for (const name of lists) {
      if (name === "rememberedDivisions" && this.#memory === undefined) {
        this.#expect(name, given[name].length, 0);
        continue;
      }
      const want = inner.flatMap((q) => this.#quanta.map((_, d) => key(d, q)));
      this.#expect(name, given[name].map((x) => key(x.dimension ?? 0, x.queue)).join(), want.join());
      this.#quanta.forEach((u, d) => {
        const b = this.#bounds(d, name === "satedDivisions");
        const root = b.get(this.#root);
        const top = this.#kids(this.#root).length > 0 ? Infinity : (root?.[2] ?? 0);
        const share = new Map<Queue, number>([[this.#root, Math.min(Math.floor((this.#total[d] ?? 0) / u), root?.[5] ?? 0, top)]]);
        const weight = (k: number): bigint => (name === "rememberedDivisions" ? effective.get(key(d, k)) ?? 0n : BigInt(this.#queues[k]?.weight ?? 1));
        given[name].forEach((x, i) => {
          if ((x.dimension ?? 0) === d) {
            this.#divide(`${name}[${i}]`, x, b, share.get(x.queue) ?? 0, weight).forEach((e, q) => share.set(q, e));
          }
        });
        share.forEach((e, q) => all[name].set(key(d, q), e));
      });
    }
    this.#lines(given, all);
    const amount = (of: ReadonlyMap<string, number>) => (d: number, q: Queue) => (of.get(key(d, q)) ?? 0) * (this.#quanta[d] ?? 1);
    this.#accounts(plugin.queues ?? [], amount(all.divisions), amount(all.rememberedDivisions));
    return { faults: this.#faults, wrong: this.#wrong, compared: this.#compared };
  }

  // #weights checks how the weights with memory follow from usage, and returns them by dimension and queue.
  #weights(given: readonly MemoryDivisionJson[], inner: readonly Queue[]): Map<string, bigint> {
    const effective = new Map<string, bigint>();
    const want = this.#memory?.weigh(inner, this.#root, this.#kids) ?? [];
    this.#expect("weights", given.map((x) => key(x.dimension ?? 0, x.queue)).join(), want.map((x) => key(x.dimension, x.queue)).join());
    want.forEach((w, i) => {
      compared(w, given[i] ?? {}).forEach(([name, has, is]) => this.#expect(`weights[${i}].${name}`, has, is));
      w.children.forEach((c) => effective.set(key(w.dimension, c.queue), c.effective));
    });
    return effective;
  }

  // #amounts checks a resource. What it does not name is 0.
  #amounts(path: string, resource: ResourceJson | undefined, want: readonly number[]): void {
    const dimensions = resource?.dimensions ?? [];
    this.#expect(path, resource !== undefined, true);
    this.#expect(`${path}: dimensions`, new Set(dimensions).size === dimensions.length && dimensions.every((d) => d < want.length), true);
    this.#expect(`${path}: amounts`, resource?.amounts?.length ?? 0, dimensions.length);
    want.forEach((x, d) => {
      const at = dimensions.indexOf(d);
      this.#expect(`${path} of ${this.dimensions[d] ?? d}`, at < 0 ? 0 : numberOf(resource?.amounts?.[at]), x === 0 ? 0 : x);
    });
  }

  // #accounts checks the account of each queue: what it holds and requests, its limits, and its entitlement.
  #accounts(queues: readonly QueueShareJson[], entitled: (d: number, q: Queue) => number, line: (d: number, q: Queue) => number): void {
    this.#expect("queues", queues.map((share) => share.queue ?? 0).join(), this.#queues.map((_, q) => q).join());
    const bounds = this.#quanta.map((_, d) => this.#bounds(d, false));
    queues.forEach((share, q) => {
      const path = `queues[${q}]`;
      const queue = this.#queues[q];
      this.#expect(`${path}.name`, share.name, queue?.name);
      this.#expect(`${path}.kueue`, share.kueue === undefined, true);
      this.#expect(`${path}.participating`, share.participating ?? false, this.#parent.has(q));
      if (queue === undefined || !this.#parent.has(q)) {
        const { weight, guarantee, deserved, allocated, request, capability, withMemory } = share;
        const stated = [weight, guarantee, deserved, allocated, request, capability, withMemory];
        this.#expect(`${path}: amounts of a queue that is set aside`, stated.some((x) => x !== undefined), false);
        return;
      }
      if (this.#memory === undefined) {
        this.#expect(`${path}.withMemory`, share.withMemory === undefined, true);
      } else {
        this.#amounts(`${path}.withMemory`, share.withMemory, this.#quanta.map((_, d) => line(d, q)));
      }
      this.#expect(`${path}.weight`, share.weight ?? 0, queue.weight ?? 1);
      this.#amounts(`${path}.guarantee`, share.guarantee, this.#quanta.map((u, d) => (bounds[d]?.get(q)?.[3] ?? 0) * u));
      this.#amounts(`${path}.deserved`, share.deserved, this.#quanta.map((_, d) => entitled(d, q)));
      this.#amounts(`${path}.allocated`, share.allocated, this.#held.get(q) ?? []);
      this.#amounts(`${path}.request`, share.request, this.#demand.get(q) ?? []);
      this.#amounts(`${path}.capability`, share.capability, this.#capability(q));
    });
  }

  // #lines checks the parts of each share: what is guaranteed, and what stays while all others want more.
  #lines(given: Record<List, readonly FairDivisionJson[]>, all: Record<List, ReadonlyMap<string, number>>): void {
    const bounds = this.#quanta.map((_, d) => this.#bounds(d, false));
    for (const name of lists) {
      given[name].forEach((x, i) => {
        const d = x.dimension ?? 0;
        const portions = [...(x.children ?? []).map((p, k) => [`children[${k}]`, p] as const), ...(x.root === undefined ? [] : [["root", x.root] as const])];
        this.#expect(`${name}[${i}]: the root's own numbers`, x.root !== undefined, name !== "satedDivisions" && x.queue === this.#root);
        for (const [at, p] of portions) {
          const e = all.divisions.get(key(d, p.queue)) ?? 0;
          const [lo, m, hi] = bounds[d]?.get(p.queue) ?? [0, 0, 0];
          const path = `${name}[${i}].${at}`;
          this.#expect(`${path}.guaranteeLine`, Number(p.guaranteeLine ?? 0), Math.min(lo, e));
          this.#expect(`${path}.fairLine`, Number(p.fairLine ?? 0), Math.min(e, Math.max(lo, all.satedDivisions.get(key(d, p.queue)) ?? 0)));
          if (at === "root") {
            const own = [p.guaranteed, p.begin, p.useful, p.share, p.weight, p.start, p.ceiling, p.base].map((x) => Number(x ?? 0));
            this.#expect(path, own.join(), [lo, m, hi, all[name].get(key(d, p.queue)) ?? 0, 0, 0, 0, 0].join());
            this.#expect(`${path}.bound`, p.bound, undefined);
            this.#expect(`${path}.queue`, p.queue, this.#root);
          }
        }
      });
    }
  }
}
