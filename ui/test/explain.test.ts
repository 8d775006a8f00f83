import assert from "node:assert/strict";
import { test } from "node:test";

import { forecast, found, rest } from "../src/core/explain.ts";

test("a text about a job does not repeat the name above it", () => {
  assert.equal(rest({ name: "a/b", text: "a/b waits." }), "It waits.");
  assert.equal(rest({ uid: "u-1", text: "u-1 waits." }), "It waits.");
  assert.equal(rest({ name: "a/b", text: "a/bc waits." }), "a/bc waits.");
  assert.equal(rest({ text: "Waits." }), "Waits.");
});

test("a forecast is when the job could start, and what that depends on", () => {
  const of = (text: string, name = "a/b") => forecast({ name, forecast: { text } });
  assert.deepEqual(of("a/b could start at 2026-03-03 01:01:00 UTC at the earliest if nothing else changes. This depends on 1 end: c/d ends. More."), {
    start: "It could start at 2026-03-03 01:01:00 UTC at the earliest if nothing else changes.", basis: "This depends on 1 end: c/d ends. More.",
  });
  assert.deepEqual(of("a/b could start now if no other job took the room."), { start: "It could start now if no other job took the room.", basis: "" });
  assert.deepEqual(of("x. y could start now. It is not known.", "x. y"), { start: "It could start now.", basis: "It is not known." }, "a name with a full stop");
});

test("the explanation leaves the forecast to its own line", () => {
  const e = { name: "a/b", text: "a/b waits. a/b could start now.", forecast: { text: "a/b could start now. It is not known." } };
  assert.equal(rest(e), "It waits.");
  assert.equal(rest({ ...e, text: "a/b waits." }), "It waits.");
});

test("without a forecast there is no line", () => {
  assert.equal(forecast({ name: "a/b", text: "a/b waits." }), undefined);
  assert.equal(forecast({ name: "a/b", forecast: { outcome: "FORECAST_OUTCOME_NOW" } }), undefined);
});

test("what holds a job back names the constraints that are not judged", () => {
  const constraints = { check: "CHECK_KIND_CONSTRAINTS", outcome: "CHECK_OUTCOME_NOT_KNOWN", text: "placement also depends on volumes" } as const;
  const nodes = { check: "CHECK_KIND_NODES", outcome: "CHECK_OUTCOME_FAILED", text: "0/1 node has room" } as const;
  const passed = { check: "CHECK_KIND_SHARE", outcome: "CHECK_OUTCOME_PASSED", text: "room" } as const;
  assert.equal(found({ findings: [passed, nodes, constraints], blocking: 1 }), "0/1 node has room; placement also depends on volumes");
  assert.equal(found({ findings: [passed, constraints] }), "placement also depends on volumes");
  assert.equal(found({}), "");
});
