// The engine as WebAssembly answers each conformance vector of a call that asks a question with the bytes that the service answers.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { test } from "node:test";
import { gunzipSync } from "node:zlib";

import { folder, root } from "./harness.mjs";

const goroot = execFileSync("go", ["env", "GOROOT"], { encoding: "utf8" }).trim();
await import(path.join(goroot, "lib/wasm/wasm_exec.js"));

async function engine() {
  const go = new globalThis.Go();
  const { instance } = await WebAssembly.instantiate(gunzipSync(await readFile(path.join(folder, "engine.wasm.gz"))), go.importObject);
  void go.run(instance);
  return globalThis.apportion;
}

const bytes = (text) => new TextEncoder().encode(text);
const vectors = path.join(root, "testdata/conformance");

test("every vector of a question has the same bytes in WebAssembly", async () => {
  const program = await engine();
  const methods = (await readdir(vectors, { withFileTypes: true }));
  for (const file of methods.filter((m) => m.name.endsWith(".json"))) {
    const { fault } = program.policy(bytes(file.name.replace(/\.json$/, "")), await readFile(path.join(vectors, file.name)));
    assert.equal(fault, undefined);
  }
  // What these ask needs what a server keeps: uploads, conversations, histories.
  const served = new Set(["DownloadSnapshot", "GetHistory", "GetUsage", "ListSnapshots", "RunSession", "UploadSnapshot"]);
  let played = 0;
  for (const method of methods.filter((m) => m.isDirectory() && !served.has(m.name))) {
    for (const vector of await readdir(path.join(vectors, method.name))) {
      const at = path.join(vectors, method.name, vector);
      const names = await readdir(at);
      const { answer, fault } = program.binary(bytes(method.name), await readFile(path.join(at, "1.request.binpb")));
      assert.equal(fault, undefined, at);
      const want = names.find((name) => /^2\.(response|status)\.binpb$/.test(name));
      assert.equal(answer[0], want.includes("status") ? 1 : 0, at);
      if (Buffer.compare(Buffer.from(answer.subarray(1)), await readFile(path.join(at, want))) !== 0) {
        assert.fail(`${method.name}/${vector}: other bytes than ${want}: ${new TextDecoder().decode(answer.subarray(0, 300))}`);
      }
      played++;
    }
  }
  assert.ok(played >= 60, `${played} vectors`);
  console.log(`${played} vectors`);
});
