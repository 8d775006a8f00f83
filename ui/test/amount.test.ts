import assert from "node:assert/strict";
import { test } from "node:test";

import { alike, allSaid, amountOf, fieldOf, quantityOf, resourceOf, said, textOf, unitsOf } from "../src/core/amount.ts";

test("a dimension that is not listed is absent, one of zero is not", () => {
  const resource = { dimensions: [2, 0], amounts: [0, 5] };
  assert.equal(amountOf(resource, 2), 0);
  assert.equal(amountOf(resource, 0), 5);
  assert.equal(amountOf(resource, 1), undefined);
  assert.equal(amountOf(undefined, 0), undefined);
  assert.equal(amountOf({ dimensions: [0], amounts: ["Infinity"] }, 0), Infinity);
});

test("amounts read as people write them", () => {
  for (const [dimension, amount, want] of [
    ["cpu", 1500, "1.5"], ["memory", 64 * 2 ** 30, "64 Gi"], ["memory", 2 ** 44, "16 Ti"], ["nvidia.com/gpu", 26666.666, "26.67"],
    ["pods", 110, "110"], ["ephemeral-storage", 2 ** 30 * 1000, "1 Gi"], ["cpu", Infinity, "no limit"], ["cpu", undefined, "–"], ["cpu", 1234567, "1,235"],
  ] as const) {
    assert.equal(textOf(dimension, amount), want);
  }
});

test("amounts that are read together have one unit", () => {
  const [Mi, Gi, Ti] = [2 ** 20, 2 ** 30, 2 ** 40];
  for (const [dimension, amounts, want] of [
    ["memory", [64 * Gi, 512 * Mi, 0], ["64 Gi", "0.5 Gi", "0 Gi"]],
    ["memory", [16 * Ti, 512 * Gi], ["16 Ti", "0.5 Ti"]],
    ["memory", [16 * Ti, 100 * Gi + 1], ["16 Ti", "0.1 Ti"]],
    ["memory", [5 * Ti, 100 * Gi + 1, 3 * Mi], ["5,120 Gi", "100 Gi", "< 0.01 Gi"]],
    ["memory", [3 * Mi, 1000, Infinity, undefined], ["3,145,728", "1,000", "no limit", "–"]],
    ["cpu", [1500, 250], ["1.5", "0.25"]],
    ["memory", [0], ["0"]],
  ] as const) {
    assert.deepEqual(alike(dimension, ...amounts), want);
  }
});

test("units follow their number", () => {
  assert.equal(said("nvidia.com/gpu", 1000), "1 GPU");
  assert.equal(said("nvidia.com/gpu", 80000), "80 GPUs");
  assert.equal(said("pods", 1), "1 pod");
  assert.equal(allSaid(["cpu", "memory"], { dimensions: [0, 1], amounts: [2000, 0] }), "2 CPUs");
  assert.equal(allSaid(["cpu"], undefined), "nothing");
});

test("quantities are read as Kubernetes reads them", () => {
  for (const [dimension, text, want] of [
    ["cpu", "500m", 500], ["cpu", 8, 8000], ["cpu", "0.5", 500], ["memory", "64Gi", 64 * 2 ** 30], ["memory", "1e3", 1000], ["memory", "1.5Ki", 1536],
    ["nvidia.com/gpu", "8", 8000], ["pods", "3", 3], ["cpu", "x", undefined], ["cpu", "-1", undefined], ["cpu", "8 GB", undefined], ["cpu", "8Xi", undefined],
  ] as const) {
    assert.equal(quantityOf(dimension, text), want, `${dimension} ${text}`);
  }
});

test("what a field shows is read back as the same amount", () => {
  for (const [dimension, amount] of [["cpu", 64000], ["memory", 512 * 2 ** 30], ["nvidia.com/gpu", 16000]] as const) {
    assert.equal(Number(fieldOf(dimension, amount)) * unitsOf(dimension), amount);
  }
  assert.equal(fieldOf("cpu", undefined), "");
});

test("a resource lists its dimensions in order, and no limit as a word", () => {
  assert.deepEqual(resourceOf(new Map([[3, 1], [0, Infinity]])), { dimensions: [0, 3], amounts: ["Infinity", 1] });
});
