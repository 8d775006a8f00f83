import assert from "node:assert/strict";
import { test } from "node:test";

import { oddsOf } from "../src/core/odds.ts";

const starts = ["0", "60", "120", "240", "480", "600", "900", "1200", "3600", "864000"];

test("chances rise with each run that starts, and the last tenth does not decide the scale", () => {
  const odds = oddsOf({ kind: "FORECAST_KIND_ODDS", runs: 10, starts, p10: "0", p50: "480", p90: "3600", text: "It starts." });
  assert.equal(odds?.until, 7200);
  assert.equal(odds?.later, 1);
  assert.deepEqual(odds?.steps.at(-1), { at: 3600, chance: 0.9 });
  assert.equal(odds?.label, "The chance to have started: 10 % at once, 50 % within 8m, 90 % within 1h");
});

test("chances that are not reached are not marked", () => {
  const odds = oddsOf({ kind: "FORECAST_KIND_ODDS", runs: 20, starts: ["60"] });
  assert.deepEqual(odds?.marks, []);
  assert.equal(odds?.later, 19);
  assert.match(odds?.label ?? "", /^Less than 10 % of 20 runs/);
});

test("without a history there are no odds", () => {
  assert.equal(oddsOf({ kind: "FORECAST_KIND_BOUNDS", earliest: "5" }), undefined);
  assert.equal(oddsOf({ kind: "FORECAST_KIND_ODDS", runs: 10 }), undefined);
  assert.equal(oddsOf(undefined), undefined);
});
