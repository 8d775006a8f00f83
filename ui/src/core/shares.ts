// What queues have, deserve and want: the answer to a `shares` step, as rows of a table or a tree.
import { amountOf, said, textOf, unitFor, type Unit } from "./amount.ts";
import type { Cluster } from "./cluster.ts";
import type { PluginSharesJson, QueueShareJson, QueueStandingJson, SharesAnswerJson } from "./contract.ts";

// Row is one queue.
export interface Row {
  readonly index: number;
  readonly name: string;
  readonly depth: number;
  readonly share: QueueShareJson;
  readonly standing: QueueStandingJson | undefined;
  readonly children: readonly number[];
  // The row is the sum of queues that the reader may not see.
  readonly others?: boolean;
}

// Numbers are a row's amounts of one dimension.
export interface Numbers {
  readonly guarantee: number;
  readonly deserved: number;
  readonly allocated: number;
  readonly request: number;
  readonly limit: number;
  // The amount above what it deserves.
  readonly borrowed: number;
  // The requested amount that it lacks of what it deserves.
  readonly short: number;
}

// dividing returns the plugin that divides among queues.
export const dividing = (answer: SharesAnswerJson | undefined): PluginSharesJson | undefined =>
  answer?.plugins?.find((p) => (p.queues ?? []).length > 0);

// isFlat reports whether queues have neither parents nor children.
export const isFlat = (answer: SharesAnswerJson): boolean =>
  (dividing(answer)?.queues ?? []).every((q) => (q.ancestors ?? []).length === 0 && (q.children ?? []).length === 0);

// numbers returns a queue's amounts of a dimension. Differences below a millionth of a unit are rounding errors.
export function numbers(share: QueueShareJson, dimension: number): Numbers {
  const of = (r: QueueShareJson["guarantee"]): number => amountOf(r, dimension) ?? 0;
  const deserved = of(share.deserved);
  const allocated = of(share.allocated);
  const request = of(share.request);
  const limit = amountOf(share.realCapability, dimension) ?? 0;
  const above = (a: number, b: number): number => (a - b > 1e-6 * Math.max(1, a) ? a - b : 0);
  return {
    guarantee: of(share.guarantee), deserved, allocated, request, limit,
    borrowed: above(allocated, deserved),
    short: above(Math.min(deserved, request), allocated),
  };
}

// rows returns the queues that take part. If the plugin has a tree, parents come before their children.
export function rows(cluster: Cluster, answer: SharesAnswerJson | undefined): Row[] {
  const standings = new Map((answer?.standings ?? []).map((s) => [s.queue ?? 0, s]));
  const row = (share: QueueShareJson): Row => {
    const index = share.queue ?? 0;
    const name = cluster.queueName(index);
    return { index, name, depth: share.ancestors?.length ?? 0, share, standing: standings.get(index), children: share.children ?? [] };
  };
  const plugin = dividing(answer);
  const own = (plugin?.queues ?? []).filter((share) => share.participating).map(row);
  // Sums have negative positions.
  const sums = (plugin?.others ?? []).map((o, i): Row => {
    const parent = own.find((r) => r.index === o.parent);
    const count = o.queueCount ?? 0;
    const { guarantee, deserved, allocated, request } = o;
    const share = { guarantee, deserved, allocated, request, realCapability: deserved, participating: true } as QueueShareJson;
    const depth = parent === undefined ? 0 : parent.depth + 1;
    share.ancestors = o.parent === undefined ? [] : [...(parent?.share.ancestors ?? []), o.parent];
    return { index: -1 - i, name: `${count} other ${count === 1 ? "queue" : "queues"}`, depth, share, standing: undefined, children: [], others: true };
  });
  const below = (index: number): number[] => sums.filter((s) => s.share.ancestors?.at(-1) === index).map((s) => s.index);
  return [...own.map((r) => ({ ...r, children: [...r.children, ...below(r.index)] })), ...sums];
}

// resting returns the names of queues that take no part.
export const resting = (cluster: Cluster, answer: SharesAnswerJson | undefined): string[] =>
  (dividing(answer)?.queues ?? []).filter((share) => !share.participating).map((share) => cluster.queueName(share.queue));

export const sorts = ["tree", "wrong", "name", "has", "deserves", "wants", "borrowed", "short", "order"] as const;

export type Sort = (typeof sorts)[number];

// key returns the number by which rows are sorted, the largest first; names break ties.
function key(sort: Sort, row: Row, dimension: number): number {
  const n = numbers(row.share, dimension);
  switch (sort) {
    case "has":
      return n.allocated;
    case "deserves":
      return n.deserved;
    case "wants":
      return n.request;
    case "borrowed":
      return n.borrowed;
    case "short":
      return n.short;
    case "order":
      return -(row.standing?.rank ?? Number.MAX_SAFE_INTEGER);
    default:
      return 0;
  }
}

const compareNames = new Intl.Collator("en", { numeric: true }).compare;

// arrange sorts rows: siblings among themselves, parents before children. Folded queues hide the queues below them; a filter shows only
// matches, without the tree.
//
// worst has the positions of queues by what waits in them, the worst first: the order of "wrong".
export function arrange(
  all: readonly Row[], dimension: number, sort: Sort, filter: string, folded: ReadonlySet<string>, worst?: ReadonlyMap<number, number>,
): Row[] {
  const compare = (a: Row, b: Row): number => {
    if (sort === "wrong") {
      const place = (row: Row): number => worst?.get(row.index) ?? Number.MAX_SAFE_INTEGER;
      return place(a) - place(b) || key("short", b, dimension) - key("short", a, dimension) || compareNames(a.name, b.name);
    }
    if (sort === "tree") {
      return Number(a.others ?? false) - Number(b.others ?? false) || a.index - b.index;
    }
    return key(sort, b, dimension) - key(sort, a, dimension) || compareNames(a.name, b.name);
  };
  const wanted = filter.trim().toLowerCase();
  if (wanted !== "") {
    return all.filter((row) => row.name.toLowerCase().includes(wanted)).sort(compare);
  }
  if (sort === "wrong" || all.every((row) => row.depth === 0)) {
    return [...all].sort(compare);
  }
  const byIndex = new Map(all.map((row) => [row.index, row]));
  const out: Row[] = [];
  const pending = all.filter((row) => !row.share.ancestors?.some((a) => byIndex.has(a))).sort(compare).reverse();
  for (let row = pending.pop(); row !== undefined; row = pending.pop()) {
    out.push(row);
    if (!folded.has(row.name)) {
      const below = row.children.map((c) => byIndex.get(c)).filter((r): r is Row => r !== undefined);
      pending.push(...below.sort(compare).reverse());
    }
  }
  return out;
}

// leaves returns the rows without children; their amounts sum to the cluster's usage.
export function leaves(all: readonly Row[]): Row[] {
  const inner = new Set(all.filter((row) => row.children.length > 0).map((row) => row.index));
  return all.filter((row) => !inner.has(row.index));
}

// summary describes which queues have more than they deserve, and which have less.
export function summary(cluster: Cluster, all: readonly Row[], dimension: number): string {
  const name = cluster.dimensions[dimension] ?? "";
  const ends = leaves(all).map((row) => ({ name: row.name, others: row.others === true, ...numbers(row.share, dimension) }));
  const sum = (of: (n: (typeof ends)[number]) => number): number => ends.reduce((s, n) => s + of(n), 0);
  // The sum of several queues does not show which of them borrow.
  const borrowing = ends.filter((n) => n.borrowed > 0 && !n.others).sort((a, b) => b.borrowed - a.borrowed);
  const lacking = ends.filter((n) => n.short > 0 && !n.others).sort((a, b) => b.short - a.short);
  const [used, borrowed, short] = [sum((n) => n.allocated), sum((n) => (n.others ? 0 : n.borrowed)), sum((n) => (n.others ? 0 : n.short))];
  const unit = unitFor(name, [used, cluster.total(dimension), borrowed, short]);
  const parts = [inUse(name, used, cluster.total(dimension), unit)];
  if (borrowing.length > 0) {
    const one = borrowing.length === 1;
    parts.push(`${one ? "Queue" : "Queues"} ${listed(borrowing)} ${one ? "has" : "have"} ${textOf(name, borrowed, unit)} more than ${one ? "it deserves" : "they deserve"}`);
  }
  if (lacking.length > 0) {
    const one = lacking.length === 1;
    const clause = `${one ? "queue" : "queues"} ${listed(lacking)} ${one ? "lacks" : "lack"} ${textOf(name, short, unit)} of what ${one ? "it deserves" : "they deserve"}`;
    if (borrowing.length > 0) {
      parts.push(`${parts.pop() ?? ""}; ${clause}`);
    } else {
      parts.push(`Q${clause.slice(1)}`);
    }
  }
  return `${parts.join(". ")}.`;
}

function inUse(name: string, used: number, total: number, unit: Unit): string {
  const [has, of] = [textOf(name, used, unit), said(name, total, unit)];
  if (has === textOf(name, total, unit)) {
    return `All ${of} are in use`;
  }
  return `${has} of ${of} ${has === "1" ? "is" : "are"} in use`;
}

function listed(of: readonly { name: string }[]): string {
  const few = 3;
  const names = of.slice(0, few).map((n) => n.name);
  if (of.length > few) {
    names.push(`${of.length - few} more`);
  }
  return names.length < 2 ? (names[0] ?? "") : `${names.slice(0, -1).join(", ")} and ${names[names.length - 1]}`;
}
