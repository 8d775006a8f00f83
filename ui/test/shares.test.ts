import assert from "node:assert/strict";
import { test } from "node:test";

import { Cluster } from "../src/core/cluster.ts";
import type { QueueShareJson, SharesAnswerJson } from "../src/core/contract.ts";
import { arrange, isFlat, numbers, rows, summary } from "../src/core/shares.ts";

const gpus = (n: number) => ({ dimensions: [0], amounts: [1000 * n] });
const share = (queue: number, has: number, deserves: number, wants: number, more: Partial<QueueShareJson> = {}): QueueShareJson =>
  ({ queue, participating: true, allocated: gpus(has), deserved: gpus(deserves), request: gpus(wants), realCapability: gpus(8), ...more });
const cluster = new Cluster({
  dimensions: ["nvidia.com/gpu"], nodes: [{ name: "n", allocatable: gpus(8) }],
  queues: [{ name: "root" }, { name: "b" }, { name: "a" }, { name: "a1" }, { name: "idle" }],
});
const answer = (queues: QueueShareJson[]): SharesAnswerJson => ({ plugins: [{ plugin: "drf" }, { plugin: "proportion", queues }] });

test("a queue borrows what it has above what it deserves, and is short of what it asks for and lacks", () => {
  assert.deepEqual([numbers(share(1, 6, 4, 6), 0).borrowed, numbers(share(1, 6, 4, 6), 0).short], [2000, 0]);
  assert.deepEqual([numbers(share(1, 2, 4, 3), 0).borrowed, numbers(share(1, 2, 4, 3), 0).short], [0, 1000]);
  assert.equal(numbers(share(1, 4 + 1e-12, 4, 4), 0).borrowed, 0, "rounding is no loan");
});

test("the summary says who has more and who less", () => {
  const all = rows(cluster, answer([share(1, 6, 4, 6), share(2, 2, 4, 8), { queue: 4 }]));
  assert.equal(summary(cluster, all, 0), "All 8 GPUs are in use. Queue b has 2 more than it deserves; queue a lacks 2 of what it deserves.");
  assert.equal(summary(cluster, rows(cluster, answer([share(1, 1, 4, 1)])), 0), "1 of 8 GPUs is in use.");
});

const tree = rows(cluster, answer([
  share(0, 6, 8, 8, { children: [1, 2] }), share(1, 4, 4, 4, { ancestors: [0] }), share(2, 2, 4, 4, { ancestors: [0], children: [3] }),
  share(3, 2, 4, 4, { ancestors: [0, 2] }),
]));

test("parents come before their children, whatever the order", () => {
  const names = (...a: Parameters<typeof arrange>): string[] => arrange(...a).map((row) => row.name);
  assert.deepEqual(names(tree, 0, "tree", "", new Set()), ["root", "b", "a", "a1"]);
  assert.deepEqual(names(tree, 0, "name", "", new Set()), ["root", "a", "a1", "b"]);
  assert.deepEqual(names(tree, 0, "short", "", new Set()), ["root", "a", "a1", "b"]);
  assert.deepEqual(names(tree, 0, "tree", "", new Set(["a"])), ["root", "b", "a"]);
  assert.deepEqual(names(tree, 0, "tree", "A", new Set(["a"])), ["a", "a1"], "a filter looks into folded queues");
});

test("a tree of queues is no flat list", () => {
  const answer = (queues: object[]) => ({ plugins: [{ plugin: "gang" }, { plugin: "capacity", queues }] }) as unknown as SharesAnswerJson;
  assert.equal(isFlat(answer([{ queue: 1, name: "a" }, { queue: 2 }])), true);
  assert.equal(isFlat(answer([{ queue: 0, children: [1] }, { queue: 1, ancestors: [0] }])), false);
  assert.equal(isFlat({}), true);
});

test("what is wrong comes first: where jobs wait, then what queues lack", () => {
  const flat = rows(cluster, answer([share(1, 4, 4, 4), share(2, 1, 4, 8), share(3, 3, 4, 8)]));
  const order = arrange(flat, 0, "wrong", "", new Set(), new Map([[1, 0]])).map((row) => row.name);
  assert.deepEqual(order, ["b", "a", "a1"]);
});
