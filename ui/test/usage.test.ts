import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import type { GetUsageResponseJson, PluginSharesJson } from "../src/core/contract.ts";
import { halfLife, remembered, series, spent } from "../src/core/usage.ts";

test("a half-life is said in days or hours", () => {
  assert.equal(halfLife("21600", 28), "7d");
  assert.equal(halfLife("3600", 24), "24h");
  assert.equal(halfLife("3600", 1), "1h");
  assert.equal(halfLife(undefined, undefined), undefined);
});

const day = 86_400_000_000_000;

test("what queues used is the mean of each day, and what counts is an amount", () => {
  const used = (hours: number): { dimensions: number[]; quantumSeconds: string[] } => ({ dimensions: [1], quantumSeconds: [String(hours * 3600)] });
  const answer: GetUsageResponseJson = {
    begins: "0", epochSeconds: "3600", halfLifeEpochs: 24, dimensions: ["cpu", "gpu"], quanta: ["1", "1000"],
    intervals: [0, 1].map((n) => ({
      startTime: String(n * day), endTime: String((n + 1) * day),
      queues: [
        { queue: "a", used: used(48), decayed: used(24) }, { queue: "a", owner: "ann", used: used(48) },
        ...(n === 1 ? [{ queue: "b", used: used(24), decayed: used(12) }] : []),
      ],
    })),
  };
  const [a, b] = series(answer, "gpu");
  assert.equal(a?.queue, "a");
  assert.equal(a?.hours, 96);
  assert.deepEqual(a?.points.map((p) => p.used), [2000, 2000]);
  // All the time one device, with a half-life of a day, counts as long as the sum of the factors: 35.1 hours.
  assert.ok(Math.abs((a?.points[1]?.decayed ?? 0) - (1000 * 24) / 35.13) < 5);
  assert.deepEqual(b?.points.map((p) => p.used), [0, 1000]);
  assert.deepEqual(series(answer, "gpu", new Set(["b"])).map((s) => s.queue), ["b"]);
  assert.deepEqual(series(answer, "tpu"), []);
});

test("what was spent of a budget is in hours, all before the queues below", () => {
  const used = (hours: number): { dimensions: number[]; quantumSeconds: string[] } => ({ dimensions: [1], quantumSeconds: [String(hours * 3600)] });
  const answer: GetUsageResponseJson = {
    dimensions: ["cpu", "gpu"], quanta: ["1", "1000"],
    budgets: [
      {
        queue: "a", kind: "BUDGET_KIND_HARD", startTime: "0", endTime: String(day), granted: used(10), spent: used(12),
        users: [{ queue: "a-1", used: used(12) }, { queue: "a-2", used: { dimensions: [0], quantumSeconds: ["5"] } }],
      },
      { queue: "b", kind: "BUDGET_KIND_SOFT", startTime: String(day), granted: used(0), spent: { dimensions: [], quantumSeconds: [] } },
    ],
  };
  assert.deepEqual(spent(answer, "gpu"), [
    { queue: "a", kind: "hard", from: 0, until: day / 1e6, user: "", granted: 10, used: 12 },
    { queue: "a", kind: "hard", from: 0, until: day / 1e6, user: "a-1", granted: 10, used: 12 },
    { queue: "b", kind: "soft", from: day / 1e6, until: undefined, user: "", granted: 0, used: 0 },
  ]);
  assert.deepEqual(spent(answer, "cpu"), []);
  assert.deepEqual(spent(undefined, "gpu"), []);
});

test("what memory changes is said for each queue, beside what it is without", () => {
  const { shares } = JSON.parse(readFileSync("test/fair-memory.json", "utf8")) as { shares: PluginSharesJson };
  const all = remembered(shares, 2);
  const [vision, fresh, serving] = [1, 4, 3].map((q) => all.get(q));
  assert.ok(vision?.used !== undefined && vision.used > 0.9);
  assert.ok(vision.effective < vision.weight && vision.first < vision.deserved);
  assert.equal(fresh?.used, undefined);
  assert.ok(serving !== undefined && serving.effective > serving.weight);
  assert.equal(remembered(undefined, 2).size, 0);
});
