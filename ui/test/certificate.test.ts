import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { check } from "../src/core/certificate.ts";
import type { FairDerivationJson, FairJson, SnapshotJson } from "../src/core/contract.ts";

interface Recorded {
  snapshot: SnapshotJson;
  settings: FairJson;
  dimensions: string[];
  fair: FairDerivationJson;
}

// An answer of the engine about a small tree of queues.
const recorded = (): Recorded => JSON.parse(readFileSync("test/fair.json", "utf8")) as Recorded;

const checked = (r: Recorded): ReturnType<typeof check> => check(r.snapshot, r.settings, r.dimensions, r.fair);

test("a true certificate is found true", () => {
  const { faults, compared } = checked(recorded());
  assert.deepEqual(faults, []);
  assert.ok(compared > 500, String(compared));
});

// Every number of an object, as a function that changes it by one.
function numbersOf(at: unknown, path: string, out: [string, () => void][]): void {
  if (typeof at !== "object" || at === null) {
    return;
  }
  for (const [name, value] of Object.entries(at)) {
    const owner = at as Record<string, unknown>;
    if (typeof value === "number") {
      out.push([`${path}.${name}`, () => { owner[name] = value + 1; }]);
    } else if (typeof value === "string" && /^[0-9]+$/.test(value)) {
      out.push([`${path}.${name}`, () => { owner[name] = String(BigInt(value) + 1n); }]);
    }
    numbersOf(value, `${path}.${name}`, out);
  }
}

test("each number that is changed by one is found", () => {
  const paths: [string, () => void][] = [];
  const { quanta, total, divisions, sated } = recorded().fair;
  numbersOf({ quanta, total, divisions, sated }, "", paths);
  assert.ok(paths.length > 300, String(paths.length));
  for (let i = 0; i < paths.length; i++) {
    const r = recorded();
    const own: [string, () => void][] = [];
    numbersOf({ quanta: r.fair.quanta, total: r.fair.total, divisions: r.fair.divisions, sated: r.fair.sated }, "", own);
    own[i]?.[1]();
    assert.notEqual(checked(r).wrong, 0, own[i]?.[0]);
  }
});

test("another snapshot is not what the certificate is about", () => {
  const r = recorded();
  const queue = r.snapshot.queues?.find((q) => q.name !== "root");
  assert.ok(queue);
  queue.guarantee = { dimension: [0], amount: [1e9] };
  assert.notEqual(checked(r).wrong, 0);
});
