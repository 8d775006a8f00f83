// Spans and series of a history.
import assert from "node:assert/strict";
import { test } from "node:test";

import type { GetHistoryResponseJson, JobHistoryJson, QueueHistoryJson } from "../src/core/contract.ts";
import { idle, reaches, series, spans } from "../src/core/history.ts";

const ns = (seconds: number): string => `${seconds}000000000`;

test("a job that did not wait for a while has a span for that", () => {
  const job = {
    intervals: [
      { check: "CHECK_KIND_NODES", startTime: ns(10), endTime: ns(20), text: "because a" },
      { verdict: "PENDING_VERDICT_IN_TURN", startTime: ns(30), endTime: ns(40), lasts: true, merged: 2, text: "for its turn" },
    ],
  } as JobHistoryJson;
  const list = spans(job);
  assert.deepEqual(list.map((s) => [s.from, s.until, s.lasts]), [[10_000, 20_000, false], [20_000, 30_000, false], [30_000, 40_000, true]]);
  assert.equal(list[1]?.tone, idle);
  assert.equal(list[2]?.text, "for its turn (mostly; 2 older causes are merged)");
  assert.notEqual(list[0]?.tone, list[2]?.tone);
});

test("a series has the samples of one resource, and zeros where a sample lacks it", () => {
  const queue = {
    dimensions: ["cpu", "gpu"],
    samples: [{ startTime: ns(1), endTime: ns(2), amounts: [{ dimension: 1, allocated: 3, deserved: 8 }] }, { startTime: ns(2), endTime: ns(3), amounts: [{ allocated: 7 }] }],
  } as QueueHistoryJson;
  assert.deepEqual(series(queue, "gpu").map((p) => [p.allocated, p.deserved]), [[3, 8], [0, 0]]);
  assert.deepEqual(series(queue, "cpu").map((p) => p.allocated), [0, 7]);
  assert.deepEqual(series(queue, "none").map((p) => p.allocated), [0, 0]);
});

test("it says how far back it reaches", () => {
  const at = new Date(2026, 10, 24, 9, 12).getTime();
  const begins = `${at}000000`;
  assert.equal(reaches({ begins, started: begins } as GetHistoryResponseJson, at), "Known since 09:12, when this server started.");
  const gaps = [{ startTime: begins, endTime: `${at + 600_000}000000` }];
  assert.equal(
    reaches({ begins, started: gaps[0]?.endTime, gaps } as GetHistoryResponseJson, at),
    "Known since 09:12, from the file of this server, which started at 09:22; not from 09:12 to 09:22.",
  );
});
