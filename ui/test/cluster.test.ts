import assert from "node:assert/strict";
import { test } from "node:test";

import { Cluster } from "../src/core/cluster.ts";
import type { SnapshotJson } from "../src/core/contract.ts";
import { cell, reserved, squaresOf } from "../src/core/nodes.ts";

// GPUs are the first dimension; cpu and memory are not named.
const gpus = (n: number) => ({ dimensions: [0], amounts: [1000 * n] });
const snapshot: SnapshotJson = {
  dimensions: ["nvidia.com/gpu"],
  nodes: [{ name: "n0", allocatable: gpus(8), usedByOthers: gpus(1) }, { name: "n1" }],
  queues: [{ name: "a" }, { name: "b" }],
  jobs: [
    { namespace: "x", name: "first", queue: "b", groups: [{ request: gpus(2), tasks: [{ status: "TASK_STATUS_RUNNING", node: 0 }, {}] }] },
    { uid: "u2", queue: "a", groups: [
      { request: gpus(1), tasks: [{ name: "p", status: "TASK_STATUS_RELEASING", node: 0 }, { status: "TASK_STATUS_SUCCEEDED", node: 0 }] },
    ] },
  ],
};

test("names, numbers and dimensions are those of the contract", () => {
  const c = new Cluster(snapshot);
  assert.deepEqual(c.dimensions, ["nvidia.com/gpu", "cpu", "memory"]);
  assert.equal(c.jobName(0), "x/first");
  assert.equal(c.jobName(1), "u2");
  assert.equal(c.jobIndex("u2"), 1);
  assert.equal(c.queueOf(0), 1);
  assert.equal(c.taskName(2), "p");
  assert.deepEqual(c.tasksOf(1).map((t) => t.number), [2, 3]);
  assert.deepEqual(c.offered(), [0]);
});

test("a node is used by tasks that run or are released, and by others", () => {
  const c = new Cluster(snapshot);
  assert.equal(c.used(0, 0), 4000);
  assert.deepEqual(c.uses(0).map((u) => [u.job, u.queue, u.amounts.get(0), u.releasing]), [[1, 0, 1000, 1], [0, 1, 2000, 0]]);
  assert.deepEqual(c.uses(1), []);
});

test("one square is one device, and others come last", () => {
  const c = new Cluster(snapshot);
  assert.deepEqual(cell(c, 0, 0), {
    node: 0, squares: 8, parts: [
      { queue: 0, job: 1, squares: 1, releasing: true }, { queue: 1, job: 0, squares: 2, releasing: false }, { queue: -1, job: -1, squares: 1, releasing: false },
    ],
  });
  assert.equal(cell(c, 1, 0).squares, 0);
});

test("what is not counted in devices has eight squares", () => {
  assert.equal(squaresOf("cpu", 96000), 8);
  assert.equal(squaresOf("memory", 2 ** 40), 8);
  assert.equal(squaresOf("nvidia.com/gpu", 4000), 4);
  assert.equal(squaresOf("nvidia.com/gpu", 500), 8);
  assert.equal(squaresOf("nvidia.com/gpu", 64000), 8);
});

test("a node says what is kept of it, for what and when, unless that has ended", () => {
  const at = (time: string) => `${Date.parse(time)}000000`;
  const node = { name: "n", allocatable: gpus(8), reservations: [
    { startUnixNano: at("2026-03-02T15:00:00Z"), endUnixNano: at("2026-03-02T17:00:00Z"), reason: "maintenance" },
    { startUnixNano: at("2026-03-02T21:00:00Z"), request: gpus(4), holder: "u2" },
    { endUnixNano: at("2026-03-03T00:00:00Z"), holder: "x/later", reason: "demo" },
    { startUnixNano: at("2026-03-01T15:00:00Z"), endUnixNano: at("2026-03-02T14:00:00Z") },
    {},
  ] };
  const c = new Cluster({ ...snapshot, asOf: at("2026-03-02T14:00:00Z"), nodes: [node, { name: "m" }] });
  assert.deepEqual(reserved(c, 0), [
    "the whole node for maintenance from 2026-03-02 15:00:00 UTC to 2026-03-02 17:00:00 UTC",
    "4 GPUs for u2 from 2026-03-02 21:00:00 UTC on",
    "the whole node for x/later (demo) until 2026-03-03 00:00:00 UTC",
    "the whole node",
  ]);
  assert.deepEqual(reserved(c, 1), []);
});
