// How the weights of `fair` with memory follow from past usage, and what budgets change: the rules of docs/fair.md, for the check of a
// certificate. All numbers are whole.
import type { FairJson, MemoryDivisionJson, QueueJson, SnapshotJson, UsageJson } from "./contract.ts";

type Queue = number | undefined;

// Weighing says how the weights of the children of a queue follow in one dimension.
export interface Weighing {
  readonly queue: Queue;
  readonly dimension: number;
  readonly reference: bigint;
  readonly usage: bigint;
  readonly nominal: bigint;
  readonly weight: bigint;
  readonly weightAll: bigint;
  readonly children: readonly Weighed[];
}

export interface Weighed {
  readonly queue: number;
  readonly weight: bigint;
  // Undefined: the queue is new.
  readonly usage: bigint | undefined;
  readonly factor: bigint;
  readonly budgetFactor: bigint;
  // The weight with memory.
  readonly effective: bigint;
}

const one = 65_536n;

const larger = (a: bigint, b: bigint): bigint => (a > b ? a : b);
const smaller = (a: bigint, b: bigint): bigint => (a < b ? a : b);

// Memory reads usage and budgets of a snapshot.
export class Memory {
  readonly #gain: bigint;
  readonly #power: number;
  readonly #prices: ReadonlyMap<string, bigint> | undefined;

  constructor(
    readonly snapshot: SnapshotJson,
    settings: FairJson,
    readonly dimensions: readonly string[],
  ) {
    this.#gain = BigInt(settings.memory?.gain ?? 196_608);
    this.#power = settings.memory?.power ?? 2;
    const prices = settings.memory?.prices;
    this.#prices = prices === undefined ? undefined : new Map((prices.prices ?? []).map((p) => [p.dimension ?? "", BigInt(p.amount ?? 0)]));
  }

  #amounts(usage: UsageJson | undefined): Map<number, bigint> {
    return new Map((usage?.dimensions ?? []).map((d, i) => [this.dimensions.indexOf(this.snapshot.dimensions?.[d] ?? ""), BigInt(usage?.quantumSeconds?.[i] ?? 0)]));
  }

  // #charged is what usage counts in a dimension.
  #charged(usage: UsageJson | undefined, dimension: number): bigint {
    const amounts = this.#amounts(usage);
    const prices = this.#prices;
    if (prices === undefined) {
      return amounts.get(dimension) ?? 0n;
    }
    return [...amounts].reduce((sum, [d, x]) => sum + (prices.get(this.dimensions[d] ?? "") ?? 0n) * x, 0n);
  }

  // #left is the amount of a queue's budget of one kind, and what is left of it; undefined without one.
  #left(queue: QueueJson | undefined, kind: "BUDGET_KIND_HARD" | "BUDGET_KIND_SOFT", dimension: number): readonly [bigint, bigint] | undefined {
    const budget = queue?.budget;
    const amount = budget?.kind === kind ? this.#amounts(budget.amount).get(dimension) : undefined;
    return amount === undefined ? undefined : [amount, larger(0n, amount - (this.#amounts(budget?.spent).get(dimension) ?? 0n))];
  }

  // most is what the hard budget of a queue pays for during one epoch, in units of the dimension; Infinity without one.
  most(queue: QueueJson | undefined, dimension: number, quantum: number): number {
    const seconds = BigInt(this.snapshot.memory?.epochSeconds ?? 0);
    const budget = this.#left(queue, "BUDGET_KIND_HARD", dimension);
    const most = budget === undefined ? undefined : (budget[1] / seconds) * BigInt(quantum);
    return most === undefined || most > 2n ** 53n ? Infinity : Number(most);
  }

  // #softened is the factor of a soft budget: whole until a quarter is left.
  #softened(queue: QueueJson | undefined, dimension: number): bigint {
    const budget = this.#left(queue, "BUDGET_KIND_SOFT", dimension);
    if (budget === undefined) {
      return one;
    }
    return budget[0] === 0n ? 1n : larger(1n, smaller(one, (4n * one * budget[1]) / budget[0]));
  }

  // #factor is that of a queue with some usage and weight, beside siblings of known usage with a weight.
  #factor(reference: bigint, used: bigint, weight: bigint, known: bigint): bigint {
    if (reference === 0n) {
      return one;
    }
    const part = one * weight * reference;
    const first = larger(1n, ((one + this.#gain) * part) / (part + this.#gain * used * known));
    let factor = first;
    for (let i = 1; i < this.#power; i++) {
      factor = larger(1n, (factor * first) / one);
    }
    return factor;
  }

  // weigh lists how weights follow, from the root down: for each queue of a list, which has parents before their children, and each dimension.
  weigh(inner: readonly Queue[], root: Queue, kids: (q: Queue) => readonly number[]): Weighing[] {
    const nominal = this.dimensions.map((_, d) => new Map<Queue, bigint>([[root, this.#charged(this.snapshot.memory?.offered, d)]]));
    return inner.flatMap((q) => this.dimensions.map((_, d) => this.#children(q, d, kids(q), nominal[d] ?? new Map<Queue, bigint>())));
  }

  #children(q: Queue, d: number, kids: readonly number[], nominal: Map<Queue, bigint>): Weighing {
    const queues = kids.map((k) => {
      const queue = this.snapshot.queues?.[k];
      return { k, queue, weight: BigInt(queue?.weight ?? 1), usage: queue?.usage === undefined ? undefined : this.#charged(queue.usage, d) };
    });
    const of = nominal.get(q) ?? 0n;
    const weightAll = queues.reduce((sum, x) => sum + x.weight, 0n);
    const known = queues.filter((x) => x.usage !== undefined && x.weight > 0n);
    const usage = known.reduce((sum, x) => sum + (x.usage ?? 0n), 0n);
    const weight = known.reduce((sum, x) => sum + x.weight, 0n);
    const reference = weight > 0n ? larger(usage, (of * weight) / weightAll) : 0n;
    const children = queues.map((x): Weighed => {
      if (x.weight === 0n) {
        nominal.set(x.k, 0n);
        return { queue: x.k, weight: 0n, usage: x.usage, factor: 0n, budgetFactor: 0n, effective: 0n };
      }
      nominal.set(x.k, (of * x.weight) / weightAll);
      const factor = x.usage === undefined ? this.#factor(reference, usage, weight, weight) : this.#factor(reference, x.usage, x.weight, weight);
      const budgetFactor = this.#softened(x.queue, d);
      return { queue: x.k, weight: x.weight, usage: x.usage, factor, budgetFactor, effective: larger(1n, (x.weight * factor * budgetFactor) / one) };
    });
    return { queue: q, dimension: d, reference, usage, nominal: of, weight, weightAll, children };
  }
}

// compared lists the numbers of a certificate beside what they must be.
export function compared(want: Weighing, got: MemoryDivisionJson): [name: string, got: string, want: string][] {
  const out: [string, string, string][] = [];
  // These are texts, and are there also if they are 0.
  for (const name of ["reference", "usage", "nominal"] as const) {
    out.push([name, got[name] ?? "", String(want[name])]);
  }
  for (const name of ["weight", "weightAll"] as const) {
    out.push([name, String(got[name] ?? 0), String(want[name])]);
  }
  out.push(["children", (got.children ?? []).map((c) => String(c.queue)).join(), want.children.map((c) => String(c.queue)).join()]);
  want.children.forEach((c, k) => {
    const child = got.children?.[k] ?? {};
    const path = `children[${k}]`;
    out.push([`${path}.weight`, String(child.weight ?? 0), String(c.weight)]);
    out.push([`${path}.usage`, child.usage ?? "", String(c.usage ?? "")]);
    out.push([`${path}.isNew`, String(child.isNew ?? false), String(c.usage === undefined)]);
    out.push([`${path}.factor`, String(child.factor ?? 0), String(c.factor)]);
    out.push([`${path}.budgetFactor`, String(child.budgetFactor ?? 0), String(c.budgetFactor)]);
    out.push([`${path}.effectiveWeight`, String(child.effectiveWeight ?? 0), String(c.effective)]);
  });
  return out;
}
