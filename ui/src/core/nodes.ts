// The nodes as a map of devices: the amount and the owner of each square.
import { allSaid, unitsOf } from "./amount.ts";
import type { Cluster } from "./cluster.ts";
import type { NodeReservationJson } from "./contract.ts";
import { millis } from "./history.ts";
import { say } from "./say.ts";

// Part is a run of squares of one owner.
export interface Part {
  // Position of a queue, -1 for what is used by others.
  readonly queue: number;
  // Position of a job, -1 for what is used by others.
  readonly job: number;
  readonly squares: number;
  readonly releasing: boolean;
}

// Cell is one node.
export interface Cell {
  readonly node: number;
  readonly squares: number;
  readonly parts: readonly Part[];
}

// Above this number of devices, a square represents several.
const mostSquares = 16;

// squaresOf returns the number of squares of a capacity: one for each device, or eight for dimensions that are not devices.
export function squaresOf(dimension: string, capacity: number): number {
  if (capacity <= 0) {
    return 0;
  }
  const devices = dimension === "cpu" || dimension === "pods" || unitsOf(dimension) !== 1000 ? 0 : capacity / 1000;
  return devices > 0 && devices <= mostSquares && Number.isInteger(devices) ? devices : 8;
}

// cell returns the squares of a node. Every owner has at least one square; usage above the capacity has none.
export function cell(cluster: Cluster, node: number, dimension: number): Cell {
  const capacity = cluster.capacity(node, dimension);
  const squares = squaresOf(cluster.dimensions[dimension] ?? "", capacity);
  if (squares === 0) {
    return { node, squares, parts: [] };
  }
  const parts: Part[] = [];
  let left = squares;
  let sum = 0;
  let drawn = 0;
  const draw = (queue: number, job: number, amount: number, releasing: boolean): void => {
    sum += amount;
    const n = Math.min(left, Math.max(Math.round((sum / capacity) * squares) - drawn, 0));
    if (amount > 0 && n > 0) {
      parts.push({ queue, job, squares: n, releasing });
      left -= n;
      drawn += n;
    }
  };
  for (const use of cluster.uses(node)) {
    draw(use.queue, use.job, use.amounts.get(dimension) ?? 0, use.releasing === use.tasks);
  }
  const others = cluster.used(node, dimension) - sum;
  draw(-1, -1, others, false);
  return { node, squares, parts };
}

// palette assigns colours to queues in the order of their amounts of a dimension, largest first. Queues beyond the number of colours share
// the last one.
export function palette(cluster: Cluster, dimension: number, colours: number): Map<number, number> {
  const has = new Map<number, number>();
  for (let node = 0; node < cluster.nodes.length; node++) {
    for (const use of cluster.uses(node)) {
      has.set(use.queue, (has.get(use.queue) ?? 0) + (use.amounts.get(dimension) ?? 0));
    }
  }
  const order = [...has].filter(([, amount]) => amount > 0).sort((a, b) => b[1] - a[1] || a[0] - b[0]);
  return new Map(order.map(([queue], i) => [queue, Math.min(i, colours - 1)]));
}

// reserved says what the reservations of a node keep that have not ended, for what and when, as the command line does.
export function reserved(cluster: Cluster, node: number): string[] {
  const now = BigInt(cluster.snapshot.asOf ?? 0);
  const list = cluster.nodes[node]?.reservations ?? [];
  return list.filter((r) => BigInt(r.endUnixNano ?? 0) === 0n || BigInt(r.endUnixNano ?? 0) > now).map((r) => saidReservation(cluster, r));
}

function saidReservation(cluster: Cluster, r: NodeReservationJson): string {
  const what = r.request === undefined ? say("reservedWhole") : allSaid(cluster.dimensions, r.request);
  const job = cluster.jobIndex(r.holder ?? "");
  const [holder, reason] = [job === undefined ? (r.holder ?? "") : cluster.jobName(job), r.reason ?? ""];
  const purpose = holder !== "" && reason !== "" ? say("reservedForBoth", { holder, reason })
    : holder + reason === "" ? "" : say("reservedFor", { what: holder + reason });
  const [from, until] = [moment(r.startUnixNano), moment(r.endUnixNano)];
  const period = from === "" && until === "" ? "" : from === "" ? say("reservedUntil", { until })
    : until === "" ? say("reservedFrom", { from }) : say("reservedDuring", { from, until });
  return what + purpose + period;
}

// moment is a time to the second, empty for none: 2026-07-01 14:30:00 UTC.
const moment = (ns: string | number | bigint | undefined): string =>
  (millis(ns) === 0 ? "" : `${new Date(millis(ns)).toISOString().slice(0, 19).replace("T", " ")} UTC`);
