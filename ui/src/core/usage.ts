// Who used what over weeks, as the ledger of the server says; and what past usage changes for each queue, as the answer to `shares` says.
import { amountOf, unitsOf } from "./amount.ts";
import { call } from "./ask.ts";
import type { Cluster } from "./cluster.ts";
import type { GetUsageRequestJson, GetUsageResponseJson, MemoryDivisionJson, PluginSharesJson, UsageJson } from "./contract.ts";
import { duration } from "./duration.ts";
import { say } from "./say.ts";

// usage asks who used what of the cluster of a snapshot.
export const usage = (request: GetUsageRequestJson, signal?: AbortSignal): Promise<GetUsageResponseJson> =>
  call<GetUsageResponseJson>("GetUsage", request, signal);

// halfLife says how long usage counts before it counts half; undefined without a memory.
export function halfLife(epochSeconds: string | number | bigint | undefined, epochs: number | undefined): string | undefined {
  const seconds = Number(epochSeconds ?? 0) * (epochs ?? 0);
  return seconds > 0 ? duration(seconds) : undefined;
}

// Point is what a queue used in a period, as a mean amount at a time, and what counts at the end of it.
export interface Point {
  readonly from: number;
  readonly until: number;
  readonly used: number;
  readonly decayed: number;
}

// Series is what a queue used of one resource over time.
export interface Series {
  readonly queue: string;
  readonly points: readonly Point[];
  // Hours of a displayed unit in all periods.
  readonly hours: number;
}

// series returns what queues used of a resource, the one that used most first. Amounts are in units of the contract. What counts is the
// decayed usage over the time for which it counts: the amount that a queue would have used all the time to have as much.
export function series(answer: GetUsageResponseJson, dimension: string, only?: ReadonlySet<string>): Series[] {
  const d = (answer.dimensions ?? []).indexOf(dimension);
  const quantum = Number(answer.quanta?.[d] ?? 1);
  const intervals = answer.intervals ?? [];
  const epoch = Number(answer.epochSeconds ?? 0);
  const factor = 2 ** (-1 / Math.max(answer.halfLifeEpochs ?? 1, 1));
  const counting = epoch / (1 - factor);
  const names = new Set(intervals.flatMap((x) => (x.queues ?? []).flatMap((q) => (q.owner === undefined ? [q.queue ?? ""] : []))));
  const amount = (u: UsageJson | undefined): number => (usedOf(u, d) ?? 0) * quantum;
  const out: Series[] = [];
  for (const queue of names) {
    if (d < 0 || (only !== undefined && !only.has(queue))) {
      continue;
    }
    let seconds = 0;
    const points = intervals.map((x): Point => {
      const own = (x.queues ?? []).find((q) => q.queue === queue && q.owner === undefined);
      const [from, until] = [Number(x.startTime ?? 0) / 1e6, Number(x.endTime ?? 0) / 1e6];
      const used = amount(own?.used);
      seconds += used;
      return { from, until, used: used / Math.max((until - from) / 1000, 1), decayed: counting > 0 ? amount(own?.decayed) / counting : 0 };
    });
    if (points.some((p) => p.used > 0 || p.decayed > 0)) {
      out.push({ queue, points, hours: seconds / unitsOf(dimension) / 3600 });
    }
  }
  return out.sort((a, b) => b.hours - a.hours || (a.queue < b.queue ? -1 : 1));
}

// usedOf returns the quantum-seconds of a dimension; undefined if it is not listed.
function usedOf(usage: UsageJson | undefined, dimension: number): number | undefined {
  const at = usage?.dimensions?.indexOf(dimension) ?? -1;
  return at < 0 ? undefined : Number(usage?.quantumSeconds?.[at] ?? 0);
}

// Spent is what was spent of a budget in one of its periods, by all or by a queue below, in hours of a displayed unit.
export interface Spent {
  readonly queue: string;
  readonly kind: "hard" | "soft";
  readonly from: number;
  // The time at which the next period begins; undefined: there is none.
  readonly until: number | undefined;
  // Empty: all of the budget's queue.
  readonly user: string;
  readonly granted: number;
  readonly used: number;
}

// spent returns what was spent of the budgets of a resource, each budget before its users.
export function spent(answer: GetUsageResponseJson | undefined, dimension: string): Spent[] {
  const d = (answer?.dimensions ?? []).indexOf(dimension);
  const hour = (unitsOf(dimension) * 3600) / Number(answer?.quanta?.[d] ?? 1);
  return (answer?.budgets ?? []).flatMap((b) => {
    const granted = usedOf(b.granted, d);
    if (d < 0 || granted === undefined) {
      return [];
    }
    const row = (user: string, usage: UsageJson | undefined): Spent => ({
      queue: b.queue ?? "", kind: b.kind === "BUDGET_KIND_HARD" ? "hard" : "soft", from: Number(b.startTime ?? 0) / 1e6,
      until: b.endTime === undefined ? undefined : Number(b.endTime) / 1e6, user, granted: granted / hour, used: (usedOf(usage, d) ?? 0) / hour,
    });
    return [row("", b.spent), ...(b.users ?? []).map((u) => row(u.queue ?? "", u.used)).filter((one) => one.used > 0)];
  });
}

// Remembered is what past usage changes for a queue.
export interface Remembered {
  // Parts of what its siblings used and of their weight, from 0 to 1; undefined: it is new.
  readonly used: number | undefined;
  readonly part: number;
  readonly weight: number;
  readonly effective: number;
  // The amount up to which it is given first what becomes free, and without memory.
  readonly first: number;
  readonly deserved: number;
}

// remembered returns what past usage changes, by position of the queue; empty without a memory.
export function remembered(plugin: PluginSharesJson | undefined, dimension: number): Map<number, Remembered> {
  const out = new Map<number, Remembered>();
  const shares = new Map((plugin?.queues ?? []).map((q) => [q.queue ?? 0, q]));
  for (const division of plugin?.fair?.weights ?? []) {
    if ((division.dimension ?? 0) !== dimension) {
      continue;
    }
    for (const child of division.children ?? []) {
      const share = shares.get(child.queue ?? 0);
      out.set(child.queue ?? 0, {
        used: child.isNew === true ? undefined : partOf(child.usage, usageOf(division)), part: Number(child.weight ?? 0) / Math.max(Number(division.weightAll ?? 0), 1),
        weight: Number(child.weight ?? 0), effective: Number(child.effectiveWeight ?? 0) / 65_536, first: amountOf(share?.withMemory, dimension) ?? 0,
        deserved: amountOf(share?.deserved, dimension) ?? 0,
      });
    }
  }
  return out;
}

// usageOf is what the children of a division used.
const usageOf = (division: MemoryDivisionJson): bigint => (division.children ?? []).reduce((sum, c) => sum + BigInt(c.usage || 0), 0n);

const partOf = (usage: string | undefined, of: bigint): number => (of === 0n ? 0 : Number(BigInt(usage || 0)) / Number(of));

// remembers says in a sentence that past usage is known in a cluster; undefined: it is not.
export function remembers(cluster: Cluster): string | undefined {
  const memory = cluster.snapshot.memory;
  const half = halfLife(memory?.epochSeconds, memory?.halfLifeEpochs);
  return half === undefined ? undefined : `What queues used is known and counts half after ${half}.`;
}

// said says in a sentence what the columns of the table about memory mean, by their names there.
export function said(cluster: Cluster): string | undefined {
  const memory = cluster.snapshot.memory;
  const half = halfLife(memory?.epochSeconds, memory?.halfLifeEpochs);
  const since = new Date(Number(memory?.epoch ?? 0) * Number(memory?.epochSeconds ?? 0) * 1000).toISOString().slice(0, 16).replace("T", " ");
  const columns: Record<string, string> = { "FIRST UP TO": "“first up to”", USED: "“used”", PART: "“its part”" };
  return half === undefined ? undefined : `${say("withMemory", { half, since })}.`.replace(/FIRST UP TO|USED|PART/g, (name) => columns[name] ?? name);
}
