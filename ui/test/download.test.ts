import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";

import { fromJson, toBinary } from "@bufbuild/protobuf";

import { SnapshotSchema } from "../gen/apportion/v1/snapshot_pb.ts";
import { Fault } from "../src/core/ask.ts";
import { download } from "../src/core/download.ts";

const snapshot = { dimensions: ["cpu"], queues: [{ name: "root" }], total: { dimensions: [0], amounts: [8000] } };
const bytes = toBinary(SnapshotSchema, fromJson(SnapshotSchema, snapshot));
const digest = `sha256:${createHash("sha256").update(bytes).digest("hex")}`;

// frameOf is a message of a stream; ended marks the last one.
function frameOf(message: unknown, ended = false): Buffer {
  const text = Buffer.from(JSON.stringify(message));
  const head = Buffer.alloc(5);
  head.writeUInt8(ended ? 2 : 0);
  head.writeUInt32BE(text.length, 1);
  return Buffer.concat([head, text]);
}

const chunkOf = (data: Uint8Array, last: boolean): unknown => ({ chunk: { data: Buffer.from(data).toString("base64"), last } });
const whole = [frameOf({ header: { size: String(bytes.length) } }), frameOf(chunkOf(bytes.subarray(0, 5), false)), frameOf(chunkOf(bytes.subarray(5), true))];

// answering lets fetch answer with these bytes, and returns what was sent.
function answering(body: readonly Buffer[], status = 200): Request[] {
  const sent: Request[] = [];
  globalThis.fetch = (to, init) => {
    sent.push(new Request(new URL(String(to), "http://server"), { ...init, signal: null }));
    return Promise.resolve(new Response(Buffer.concat(body), { status }));
  };
  return sent;
}

test("a snapshot is downloaded in chunks, and read", async () => {
  const sent = answering([...whole, frameOf({}, true)]);
  assert.deepEqual(await download(digest), snapshot);
  assert.equal(sent[0]?.url, "http://server/apportion.v1.SnapshotService/DownloadSnapshot");
  assert.equal(sent[0]?.headers.get("content-type"), "application/connect+json");
  assert.deepEqual(Buffer.from(await (sent[0] as Request).arrayBuffer()), frameOf({ digest }));
});

test("bytes with another digest, an error, and a stream without an end are faults", async () => {
  const other = `sha256:${"0".repeat(64)}`;
  for (const [body, status, want, code] of [
    [[...whole, frameOf({}, true)], 200, other, "data_loss"],
    [[frameOf({ error: { code: "not_found", message: "no" } }, true)], 200, digest, "not_found"],
    [whole, 200, digest, "unavailable"],
    [[Buffer.from(JSON.stringify({ code: "permission_denied", message: "no" }))], 403, digest, "permission_denied"],
    [[Buffer.from("<html>")], 502, digest, "HTTP 502"],
  ] as const) {
    answering(body, status);
    await assert.rejects(download(want), (fault) => fault instanceof Fault && fault.code === code, code);
  }
});
