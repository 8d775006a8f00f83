import assert from "node:assert/strict";
import { test } from "node:test";

import { strToU8, zipSync } from "fflate";

import { expanded } from "../src/site/files.ts";

// read returns what the page reads of an archive.
async function read(files: Record<string, string>): Promise<string[]> {
  const archive = zipSync(Object.fromEntries(Object.entries(files).map(([name, text]) => [name, strToU8(text)])));
  const found = await expanded([new File([new Uint8Array(archive)], "a.zip")], () => undefined);
  return found.map(({ name, data }) => `${name}: ${new TextDecoder().decode(data)}`);
}

const empty = (ending: string): Record<string, string> => Object.fromEntries(Array.from({ length: 6000 }, (_, i) => [`${i}${ending}`, ""]));

test("an archive of thousands of empty files is read, if few of them are wanted", async () => {
  assert.deepEqual(await read({ ...empty(".md"), "queue.yaml": "kind: Queue" }), ["queue.yaml: kind: Queue"]);
  await assert.rejects(read(empty(".yaml")), { message: /^a\.zip cannot be unpacked: There are more than 5,000 files/ });
});

test("a file that is larger than what is unpacked at a time is read whole", async () => {
  const text = Array.from({ length: 50_000 }, (_, i) => `line ${i}`).join("\n");
  assert.deepEqual(await read({ "a.yaml": text, "b.json": "{}" }), [`a.yaml: ${text}`, "b.json: {}"]);
});
