// The page without a server, in a browser.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtemp, readdir, readFile, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { gzipSync } from "node:zlib";

import { zipSync } from "fflate";

import { launch, research, settled, sound, text, visit } from "../browser/harness.mjs";
import { serve } from "./harness.mjs";

let browser, site;
before(async () => {
  [browser, site] = await Promise.all([launch(), serve()]);
});
after(async () => {
  await browser?.close();
  site?.end();
});

const sample = "#/cluster?from=sample%3Aresearch";

// opened opens the site at a fragment, and waits for its cluster.
async function opened(fragment, options) {
  const page = await visit(browser, site.page, fragment, options);
  await page.locator(".shares").first().waitFor({ timeout: 60_000 });
  await settled(page);
  return page;
}

// give hands files to the page, as their names and contents: from a folder, because contents would pass through the browser's debugging protocol.
async function give(page, files) {
  const folder = await mkdtemp(path.join(os.tmpdir(), "apportion-site-"));
  const paths = await Promise.all(Object.entries(files).map(async ([name, data]) => {
    const file = path.join(folder, name);
    await writeFile(file, data);
    return file;
  }));
  await page.locator('input[type="file"]').setInputFiles(paths);
}

const manifests = async () => Object.fromEntries(await Promise.all((await readdir(research)).map(async (name) => [name, await readFile(path.join(research, name))])));

const summary = "All 80 GPUs are in use. Queues scavenge and vision have 28.44 more than they deserve; queues robotics and language lack 28.44 of what they deserve.";

// shown waits for the numbers of the research cluster.
async function shown(page) {
  await page.locator(".summary").waitFor({ timeout: 120_000 });
  await settled(page);
  assert.equal(await text(page, ".summary"), summary);
}

// refused waits for what the page says about files.
async function refused(page, want) {
  await page.locator(".failed").waitFor({ timeout: 120_000 });
  assert.match(await text(page, ".failed"), want);
}

test("the sample, then every view with the network cut off", async () => {
  const page = await opened(sample);
  assert.equal(await text(page, ".summary"), summary);
  await sound(page);
  // What remedies need of the reader is loaded before.
  await page.goto(`${site.page}#/job/language%2Fpretrain-7b?policy=proportion&from=sample%3Aresearch`);
  await page.locator(".remedies code", { hasText: /^kubectl patch / }).first().waitFor({ timeout: 60_000 });
  await settled(page);
  await sound(page);
  const asked = new Set();
  page.on("request", (request) => {
    if (!request.url().endsWith("/icon.svg")) {
      asked.add(request.url());
    }
  });
  await page.context().setOffline(true);
  for (const [fragment, selector] of [
    ["#/waiting", ".waiting-row"], ["#/nodes", ".node"], ["#/compare", "main table, main .list"], ["#/whatif", "main input"], ["#/queue/language", ".job-row"],
    ["#/job/language%2Fpretrain-7b", ".verdict"], ["#/certificate/language?policy=fair", "main"], ["#/cluster?policy=capacity", ".shares"],
  ]) {
    await page.evaluate((to) => { location.hash = to; }, fragment);
    await page.locator(selector).first().waitFor();
    await settled(page);
    // The browser itself fetches the icon again with each address.
    page.wrong.splice(0, Infinity, ...page.wrong.filter((fault) => !fault.includes("ERR_INTERNET_DISCONNECTED") || asked.size > 0));
    assert.deepEqual([...asked], [], fragment);
    await sound(page);
  }
  await page.context().close();
});

test("dumps as files, as a zip, and as a tar in gzip, as the command line reads them", async () => {
  const files = await manifests();
  const folder = await mkdtemp(path.join(os.tmpdir(), "apportion-site-"));
  const tar = path.join(folder, "dump.tar.gz");
  assert.equal(spawnSync("tar", ["-czf", tar, "-C", path.dirname(research), path.basename(research)]).status, 0);
  for (const given of [files, { "dump.zip": zipSync(files) }, { "dump.tar.gz": await readFile(tar) }, { "pods.yaml.gz": gzipSync(files["pods.yaml"]), ...files, "pods.yaml": "" }]) {
    const page = await visit(browser, site.page, "#/open");
    await give(page, given);
    await shown(page);
    await sound(page);
    await page.context().close();
  }
});

test("files that cannot be read get an answer", async () => {
  const page = await visit(browser, site.page, "#/open");
  const bomb = zipSync({ "pods.yaml": new Uint8Array(300 << 20) });
  const { "pods.yaml": pods } = await manifests();
  const whole = zipSync({ "pods.yaml": pods });
  for (const [given, want] of [
    [{ "bomb.zip": bomb }, /bomb\.zip cannot be unpacked: Unpacked, the files have more than 128 MB/],
    [{ "bomb.yaml.gz": gzipSync(Buffer.alloc(200 << 20)) }, /more than 128 MB/],
    [{ "cut.zip": whole.subarray(0, whole.length / 2) }, /cut\.zip cannot be unpacked: it is damaged, or ends early/],
    [{ "cut.yaml.gz": gzipSync(pods).subarray(0, 1000) }, /cut\.yaml\.gz cannot be unpacked: it is damaged, or ends early/],
    [{ "a.zip": zipSync({ "readme.md": new Uint8Array(3) }) }, /there is no file in it that ends in \.yaml/],
    [{ "empty.yaml": "" }, /no input: empty\.yaml is empty; give the output of: kubectl get/],
    [{ "x.yaml": "a: [1" }, /x\.yaml/],
    [{ "x.json": "{\"a\": 1e999}" }, /x\.json is neither a dump of kubectl nor a snapshot/],
    [{ "noise.yaml": Buffer.from([0, 1, 2, 255, 254]) }, /noise\.yaml/],
  ]) {
    await give(page, given);
    await page.waitForFunction((source) => new RegExp(source).test(document.querySelector(".failed")?.innerText ?? ""), want.source, { timeout: 120_000 })
      .catch(async () => assert.match(await text(page, "main"), want));
    await sound(page);
  }
  await page.context().close();
});

test("a file of 200 MB gets a clear answer at once", async () => {
  const page = await visit(browser, site.page, "#/open");
  await give(page, { "large.yaml": Buffer.alloc(200 << 20, "#") });
  await refused(page, /large\.yaml has 200 MB\. This page reads up to 128 MB\. The command apportion ui -f reads files of any size/);
  await sound(page);
  await page.context().close();
});

test("a second drop while the first one is read takes its place, and reading can be cancelled", async () => {
  const page = await visit(browser, site.page, "#/open");
  const files = await manifests();
  const line = "- {apiVersion: v1, kind: Pod, metadata: {name: p, namespace: n}, spec: {containers: []}}\n";
  const large = `apiVersion: v1\nkind: List\nitems:\n${line.repeat(300_000)}`;
  await give(page, { "large.yaml": large });
  await page.getByText("Reading the objects").waitFor({ timeout: 60_000 });
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.locator(".spinner").waitFor({ state: "detached" });
  await give(page, { "large.yaml": large });
  await page.getByText("Reading the objects").waitFor({ timeout: 60_000 });
  await give(page, files);
  await shown(page);
  await sound(page);
  await page.context().close();
});

test("without WebAssembly the page says so", async () => {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.addInitScript(() => { delete globalThis.WebAssembly; });
  await page.goto(site.page + sample);
  await refused(page, /This browser cannot run WebAssembly/);
  await context.close();
});

test("opened as a file, the page says what to do", async () => {
  const page = await (await browser.newContext()).newPage();
  await page.goto(`file://${(await import("./harness.mjs")).folder}/play.html`);
  await page.getByText("python3 -m http.server").waitFor({ timeout: 15_000 });
  await page.context().close();
});
