import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { check } from "../src/core/certificate.ts";
import type { FairJson, PluginSharesJson, SnapshotJson } from "../src/core/contract.ts";

interface Recorded {
  snapshot: SnapshotJson;
  settings: FairJson;
  dimensions: string[];
  shares: PluginSharesJson;
}

// Answers of the engine about a small tree of queues, without and with past usage and budgets.
const names = ["fair", "fair-memory"];
const recorded = (name = "fair"): Recorded => JSON.parse(readFileSync(`test/${name}.json`, "utf8")) as Recorded;

const checked = (r: Recorded): ReturnType<typeof check> => check(r.snapshot, r.settings, r.dimensions, r.shares);

test("a true certificate is found true", () => {
  for (const name of names) {
    const { faults, compared } = checked(recorded(name));
    assert.deepEqual(faults, []);
    assert.ok(compared > 500, String(compared));
  }
});

test("usage, a budget, a gain or an epoch that is another one is found", () => {
  const changes: ((r: Recorded) => void)[] = [
    (r) => { r.settings.memory = { gain: 200_001, power: 3 }; },
    (r) => { r.settings.memory = { gain: 200_000, power: 2 }; },
    (r) => { r.settings.memory = { gain: 200_000, power: 3, prices: { prices: [{ dimension: "cpu", amount: 1 }] } }; },
    (r) => { delete r.snapshot.memory; },
    (r) => { r.snapshot.memory = { ...r.snapshot.memory, epochSeconds: "21601" }; },
    (r) => { r.snapshot.memory = { ...r.snapshot.memory, offered: { dimensions: [2], quantumSeconds: ["1"] } }; },
    (r) => { for (const q of r.snapshot.queues ?? []) { delete q.budget; } },
    (r) => { for (const q of r.snapshot.queues ?? []) { q.usage ??= {}; } },
    (r) => { for (const q of r.snapshot.queues ?? []) { delete q.usage; } },
  ];
  changes.forEach((change, i) => {
    const r = recorded("fair-memory");
    change(r);
    assert.notEqual(checked(r).wrong, 0, String(i));
  });
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

// What is not checked: see unchecked in core/certificate.ts.
const elsewhere = /^\.fair\.queues\.|^\.queues\.\d+\.(inqueue|realCapability|share|dominant|ancestors|children)(\.|$)/;

test("each number that is changed by one is found", () => {
  for (const name of names) {
    const paths: [string, () => void][] = [];
    numbersOf(recorded(name).shares, "", paths);
    assert.ok(paths.length > 500, String(paths.length));
    for (let i = 0; i < paths.length; i++) {
      const r = recorded(name);
      const own: [string, () => void][] = [];
      numbersOf(r.shares, "", own);
      own[i]?.[1]();
      assert.ok(elsewhere.test(own[i]?.[0] ?? "") || checked(r).wrong > 0, own[i]?.[0]);
    }
  }
});

test("a name, a yes or a list that is changed is found", () => {
  const changes: ((s: PluginSharesJson) => void)[] = [
    (s) => { for (const q of s.queues ?? []) { q.allocated = q.deserved; } },
    (s) => { for (const q of s.queues ?? []) { q.participating = false; } },
    (s) => { for (const q of s.queues ?? []) { q.name = "other"; } },
    (s) => { s.queues?.pop(); },
    (s) => { for (const q of s.queues ?? []) { delete q.deserved; } },
    (s) => { delete s.fair; },
    (s) => { s.fair?.divisions?.pop(); },
    (s) => { s.fair?.divisions?.[0]?.children?.reverse(); },
  ];
  changes.forEach((change, i) => {
    const r = recorded();
    change(r.shares);
    assert.notEqual(checked(r).wrong, 0, String(i));
  });
});

test("another snapshot is not what the certificate is about", () => {
  const r = recorded();
  const queue = r.snapshot.queues?.find((q) => q.name !== "root");
  assert.ok(queue);
  queue.guarantee = { dimensions: [0], amounts: [1e9] };
  assert.notEqual(checked(r).wrong, 0);
});

// MUTANTS names a file of answers that were changed, with what the checker in Go says of each; tools/scripts/test-checker.sh writes it.
test("the checker in Go finds the same", { skip: process.env["MUTANTS"] === undefined }, () => {
  interface Line {
    request?: { input: { snapshot: SnapshotJson; policy: { tiers: { plugins: { fair: FairJson }[] }[] } } };
    response: { basis: { dimensions: string[] }; answers?: { shares?: { plugins?: PluginSharesJson[] } }[] };
    path?: string;
    paths?: string[];
    kind?: string;
    refused: boolean;
  }
  let input: NonNullable<Line["request"]>["input"] | undefined;
  let compared = 0;
  const different: string[] = [];
  for (const text of readFileSync(process.env["MUTANTS"] ?? "", "utf8").trim().split("\n")) {
    const line = JSON.parse(text) as Line;
    input = line.request?.input ?? input;
    const shares = line.response.answers?.[0]?.shares?.plugins?.[0];
    const paths = line.paths ?? (line.path === undefined ? [] : [line.path]);
    const here = /^answers\[0\]\.shares\.plugins\[0\]\.(fair\.(divisions|sated_divisions|remembered_divisions|weights|quanta|total)|queues\[\d+\]\.(name|participating|weight|guarantee|deserved|allocated|request|capability|with_memory)\b)/;
    if (input === undefined || shares === undefined || !paths.every((path) => here.test(path))) {
      continue;
    }
    const { wrong, faults } = check(input.snapshot, input.policy.tiers[0]?.plugins[0]?.fair ?? {}, line.response.basis.dimensions, shares);
    if (wrong > 0 !== line.refused) {
      different.push(`${paths.join(" ")} ${line.kind ?? ""} ${faults[0] ?? "is not found"}`);
    }
    compared++;
  }
  assert.deepEqual(different, []);
  assert.ok(compared > 500, String(compared));
});
