import assert from "node:assert/strict";
import { test } from "node:test";

import { duration, rough } from "../src/core/duration.ts";

test("durations leave out units that are zero", () => {
  const said = { 0: "0s", 1: "1s", 60: "1m", 90: "1m30s", 3600: "1h", 5400: "1h30m", 3601: "1h0m1s", 129_600: "36h", 172_800: "2d", 604_800: "7d", 964_801: "11d4h0m1s" };
  assert.deepEqual(Object.fromEntries(Object.keys(said).map((s) => [s, duration(Number(s))])), said);
});

// The test of the command line has the same cases: internal/duration/duration_test.go.
test("rough durations are as precise as it matters", () => {
  const said = {
    0: "0s", 59: "59s", 60: "1m", 89: "1m", 90: "2m", 3599: "1h", 3600: "1h", 5999: "1h40m", 172_769: "47h59m", 172_799: "2d", 172_800: "2d",
    1_000_000: "11d14h",
  };
  assert.deepEqual(Object.fromEntries(Object.keys(said).map((s) => [s, rough(Number(s))])), said);
});
