// The nodes as a map: one square is one device.
import { textOf, unitFor } from "../core/amount.ts";
import type { Cluster } from "../core/cluster.ts";
import { cell, palette, type Cell } from "../core/nodes.ts";
import { numbers, type Row } from "../core/shares.ts";

// How squares are coloured: by whether their queue borrows, by queue, or by whether a task fits.
export type Colouring = "use" | "queue" | "fit";

export const hues = 8;

export interface Shade {
  readonly by: Colouring;
  // Queues that have more than they deserve, by position.
  readonly borrowing: ReadonlySet<number>;
  readonly palette: ReadonlyMap<number, number>;
  // The job that is marked.
  readonly job?: number | undefined;
  // Nodes on which the task fits, for colouring by fit.
  readonly fitting?: ReadonlySet<number> | undefined;
}

export function shadeOf(cluster: Cluster, rows: readonly Row[], dimension: number, by: Colouring, more: Partial<Shade> = {}): Shade {
  const borrowing = new Set(rows.filter((row) => numbers(row.share, dimension).borrowed > 0).map((row) => row.index));
  return { by, borrowing, palette: by === "queue" ? palette(cluster, dimension, hues) : new Map(), ...more };
}

const side = 9;
const gap = 2;
const pad = 5;

function classOf(shade: Shade, queue: number, job: number, fits: boolean): string {
  if (shade.job !== undefined && shade.job === job) {
    return "sq mine";
  }
  switch (shade.by) {
    case "queue":
      return queue < 0 ? "sq others" : `sq hue${shade.palette.get(queue) ?? hues - 1}`;
    case "fit":
      return fits ? "sq dim" : "sq others";
    case "use":
      return queue < 0 ? "sq others" : shade.borrowing.has(queue) ? "sq borrowed" : "sq has";
  }
}

// cellText describes a node for screen readers.
export function cellText(cluster: Cluster, c: Cell, dimension: number): string {
  const name = cluster.dimensions[dimension] ?? "";
  const queues = new Map<number, number>();
  for (const use of cluster.uses(c.node)) {
    queues.set(use.queue, (queues.get(use.queue) ?? 0) + (use.amounts.get(dimension) ?? 0));
  }
  const [used, of] = [cluster.used(c.node, dimension), cluster.capacity(c.node, dimension)];
  const unit = unitFor(name, [used, of, ...queues.values()]);
  const by = [...queues].filter(([, n]) => n > 0).map(([q, n]) => `${cluster.queueName(q)} ${textOf(name, n, unit)}`);
  const why = cluster.nodes[c.node]?.unschedulable === undefined ? "" : ", takes no new tasks";
  return `${cluster.nodeName(c.node)}: ${textOf(name, used, unit)} of ${textOf(name, of, unit)} ${name} in use` +
    `${by.length > 0 ? ` (${by.join(", ")})` : ""}${why}`;
}

export function NodeCell({ cluster, node, dimension, shade, href }: {
  cluster: Cluster; node: number; dimension: number; shade: Shade; href: string;
}) {
  const c = cell(cluster, node, dimension);
  const columns = c.squares > 8 ? 4 : 2;
  const lines = Math.max(1, Math.ceil(Math.max(c.squares, 1) / columns));
  const fits = shade.fitting?.has(node) ?? false;
  const squares: string[] = [];
  for (const part of c.parts) {
    for (let i = 0; i < part.squares; i++) {
      squares.push(classOf(shade, part.queue, part.job, fits) + (part.releasing ? " releasing" : ""));
    }
  }
  while (squares.length < c.squares) {
    squares.push(shade.by === "fit" && fits ? "sq good" : "sq free");
  }
  const label = cellText(cluster, c, dimension) + (shade.by === "fit" ? (fits ? ", the task fits" : ", the task does not fit") : "");
  const closed = cluster.nodes[node]?.unschedulable !== undefined;
  const width = 2 * pad + columns * side * 1.5 + (columns - 1) * gap;
  const height = 2 * pad + lines * side + (lines - 1) * gap;
  return (
    <a class={closed ? "node closed" : "node"} href={href} title={label} aria-label={label}>
      <svg width={width} height={height} aria-hidden="true">
        {squares.map((name, i) => (
          <rect
            key={i} class={name} x={pad + (i % columns) * (side * 1.5 + gap)} y={pad + Math.floor(i / columns) * (side + gap)}
            width={side * 1.5} height={side} rx="2"
          />
        ))}
        {c.squares === 0 && <line class="none" x1={pad} y1={height / 2} x2={width - pad} y2={height / 2} />}
        {closed && <line class="cross" x1="1" y1={height - 1} x2={width - 1} y2="1" />}
      </svg>
    </a>
  );
}
