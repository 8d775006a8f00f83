import assert from "node:assert/strict";
import { test } from "node:test";

import { isolated, pieces } from "../src/core/isolate.ts";

// marked shows isolated pieces in brackets.
const marked = (text: string): string => pieces(text).map((p) => (p.isolated ? `[${p.text}]` : p.text)).join("");

test("what is written from right to left is isolated from the sentence around it", () => {
  for (const [text, want] of [
    ["", ""],
    ["queue vision deserves 5 GPUs", "queue vision deserves 5 GPUs"],
    ["queue \u05d0\u05d1 deserves 5 GPUs", "queue [\u05d0\u05d1] deserves 5 GPUs"],
    ["\u05d0\u05d1: 5, \u05d2.", "[\u05d0\u05d1]: 5, [\u05d2]."],
    ["a/\u05d0-1-\u0628-2 waits", "a/[\u05d0-1-\u0628]-2 waits"],
    ["\u{10800} \u{1e900}\ufe8d", "[\u{10800}] [\u{1e900}\ufe8d]"],
    ["größe 東京 🚀", "größe 東京 🚀"],
  ] as const) {
    assert.equal(marked(text), want);
  }
});

test("characters that control the direction are written out", () => {
  assert.equal(marked("queue \u202egnp.exe waits"), "queue \\u202egnp.exe waits");
  assert.equal(marked("\u061c\u200e\u200f\u2066\u05d0\u2069\u05d1"), "\\u061c\\u200e\\u200f\\u2066[\u05d0\\u2069\u05d1]");
});

test("an attribute isolates by characters", () => {
  assert.equal(isolated("queue \u05d0\u05d1 waits"), "queue \u2068\u05d0\u05d1\u2069 waits");
  assert.equal(isolated("queue \u2069\u202e waits"), "queue \\u2069\\u202e waits");
});
