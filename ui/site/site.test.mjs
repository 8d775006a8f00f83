// The page without a server, in a browser.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtemp, readdir, readFile, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { deflateRawSync, gzipSync } from "node:zlib";

import { zipSync } from "fflate";

import { launch, ran, research, root, settled, sound, text, visit } from "../browser/harness.mjs";
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
  await page.getByText("python3 -m http.server").waitFor({ timeout: 60_000 });
  await page.context().close();
});

const packed = (text) => deflateRawSync(Buffer.from(text)).toString("base64url");
const example = async () => (await readFile(path.join(root, "testdata/pending/taint/dump.yaml"), "utf8"));

test("an address holds a cluster, and reads the same after a reload", async () => {
  const page = await visit(browser, site.page, `#/job/ml%2Ftrain?policy=fair&from=data%3A${packed(await example())}`);
  for (let i = 0; i < 2; i++) {
    await page.locator(".verdict").first().waitFor();
    await settled(page);
    assert.match(await text(page, "main"), /ml\/train/);
    assert.match(page.url(), /from=data%3A/);
    await sound(page);
    await page.reload();
  }
  await page.context().close();
});

test("an address that holds no cluster gets an answer", async () => {
  const whole = packed(await example());
  const page = await visit(browser, site.page, "#/open");
  for (const [data, want] of [
    [whole.slice(0, whole.length / 2), /cannot be unpacked: it may have been cut short/],
    ["!!!", /cannot be unpacked/], ["AAAA", /cannot be unpacked/], [`${whole.slice(0, 40)}____${whole.slice(44)}`, /cannot be unpacked|example\.yaml/],
    [packed(" ".repeat(2 << 20)), /holds a cluster of more than 1 MB\. Open it from a file/],
    [packed(Buffer.alloc(300 << 20)).slice(0, 500_000), /more than 1 MB/],
    [packed("a: [1"), /example\.yaml/], [packed(""), /example\.yaml is empty/],
  ]) {
    await page.goto("about:blank");
    await page.goto(`${site.page}#/cluster?from=data%3A${encodeURIComponent(data)}`);
    await refused(page, want);
    await sound(page);
  }
  await page.goto(`${site.page}#/cluster?from=sample%3A..%2F..%2Fetc`);
  await page.reload();
  await refused(page, /This site has no sample \.\.\/\.\.\/etc/);
  await page.context().close();
});

test("names that would be code, or turn the text around, are shown as letters", async () => {
  const names = ["<img src=x onerror=alert(1)>", "__proto__", "constructor", "a\u202Egnp.exe", "\u2066hidden\u2069", "javascript:alert(1)", "\u0000\u0007"];
  const queue = (name) => ({ name, weight: 1 });
  const job = (name, i) => ({ uid: `u${i}`, name, namespace: name, queue: name, minAvailable: 1, groups: [{ request: { dimensions: [0], amounts: [1000] }, tasks: [{ uid: `t${i}`, name }] }] });
  const snapshot = {
    dimensions: ["cpu"], nodes: [{ name: names[0], allocatable: { dimensions: [0], amounts: [4000] } }], queues: names.map(queue), jobs: names.map(job),
  };
  const page = await visit(browser, site.page, `#/cluster?from=data%3A${packed(JSON.stringify(snapshot))}`);
  await page.locator(".shares").first().waitFor();
  for (const view of ["cluster", "waiting", "nodes", "whatif", "compare", "rehearse", ...names.flatMap((n) => [`queue/${encodeURIComponent(n)}`, `job/${encodeURIComponent(`${n}/${n}`)}`])]) {
    await page.evaluate((to) => { location.hash = `#/${to}?policy=fair`; }, view);
    await settled(page);
    assert.equal(await page.locator("img[src=x]").count(), 0);
    // A name may turn itself around, and nothing beside it.
    assert.deepEqual(await page.evaluate(() => {
      const turned = [];
      const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
      for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
        if (/[\u202a-\u202e\u2066-\u2069]/.test(node.data) && node.parentElement.closest("bdi, option, title") === null) {
          turned.push(node.data);
        }
      }
      return turned;
    }), [], view);
  }
  await sound(page);
  await page.context().close();
});

test("a dump of 10,000 pods is read", async () => {
  const items = [{ apiVersion: "scheduling.volcano.sh/v1beta1", kind: "Queue", metadata: { name: "q" }, spec: { weight: 1 } }];
  for (let n = 0; n < 100; n++) {
    items.push({ apiVersion: "v1", kind: "Node", metadata: { name: `n${n}` }, status: { allocatable: { cpu: "64", memory: "256Gi", pods: "110" }, conditions: [{ type: "Ready", status: "True" }] } });
    items.push({ apiVersion: "scheduling.volcano.sh/v1beta1", kind: "PodGroup", metadata: { name: `g${n}`, namespace: "ml" }, spec: { minMember: 100, queue: "q" }, status: { phase: n < 50 ? "Running" : "Pending" } });
  }
  for (let n = 0; n < 10_000; n++) {
    const at = Math.floor(n / 100);
    items.push({
      apiVersion: "v1", kind: "Pod", metadata: { name: `p${n}`, namespace: "ml", uid: `u${n}`, annotations: { "scheduling.k8s.io/group-name": `g${at}` } },
      spec: { schedulerName: "volcano", containers: [{ name: "c", resources: { requests: { cpu: "500m", memory: "1Gi" } } }], ...(n < 5000 ? { nodeName: `n${n % 100}` } : {}) },
      status: { phase: n < 5000 ? "Running" : "Pending" },
    });
  }
  const page = await visit(browser, site.page, "#/open");
  await give(page, { "pods.json": JSON.stringify({ apiVersion: "v1", kind: "List", items }) });
  await page.locator(".summary").waitFor({ timeout: 300_000 });
  await settled(page);
  assert.match(await text(page, ".views"), /Waiting 50/);
  await page.evaluate(() => { location.hash = "#/job/ml%2Fg99"; });
  await page.locator(".verdict").first().waitFor({ timeout: 120_000 });
  await sound(page);
  await page.context().close();
});

test("a question can be cancelled, and asked again", async () => {
  const page = await opened(sample);
  // The worker that runs now answers nothing more, as if a question took for ever.
  await page.evaluate(() => {
    const post = Worker.prototype.postMessage;
    globalThis.again = () => { Worker.prototype.postMessage = post; };
    Worker.prototype.postMessage = () => undefined;
    location.hash = "#/cluster?policy=capacity&from=sample%3Aresearch";
  });
  await page.getByText(/Deciding for \d+s/).waitFor();
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByText("You cancelled this question.").first().waitFor();
  await page.evaluate(() => {
    globalThis.again();
    location.hash = "#/cluster?policy=fair&from=sample%3Aresearch";
  });
  await page.locator(".summary").first().waitFor();
  await settled(page);
  await sound(page);
  await page.context().close();
});

const trace = "arrival,queue,seconds,gpu\n0,vision,3600,8\n60,language,60,8\n";

test("a history is rehearsed as the command line rehearses it", async () => {
  const page = await opened(sample);
  await page.getByRole("link", { name: "Rehearse" }).click();
  await page.getByText("the week that comes with the sample").waitFor();
  await page.getByRole("button", { name: "Rehearse" }).click();
  await page.locator(".rehearsed").first().locator("tbody tr").nth(1).waitFor({ timeout: 300_000 });
  const rows = await page.locator(".rehearsed").first().locator("tbody tr").allInnerTexts();
  const { runs } = JSON.parse(ran("rehearse", "-f", research, "--trace", path.join(root, "examples/traces/week.csv"), "--policy", "proportion", "--policy", "fair", "-o", "json"));
  runs.forEach((run, i) => {
    const cells = rows[i].split("\t");
    assert.equal(cells[1], `${(100 * run.use[0].arriving).toFixed(1)} %`);
    assert.equal(cells[4], run.evictions.total.toLocaleString("en-US"));
    assert.equal(cells[6], run.fairness.toFixed(3));
  });
  await sound(page);
  await page.context().close();
});

test("a rehearsal can be cancelled, and what is no history gets an answer", async () => {
  const page = await opened(sample);
  await page.getByRole("link", { name: "Rehearse" }).click();
  const week = await readFile(path.join(root, "examples/traces/week.csv"), "utf8");
  const lines = week.trim().split("\n");
  const many = [...lines, ...Array.from({ length: 30 }, (_, k) => lines.slice(2).map((line) => {
    const [arrival, job, ...rest] = line.split(",");
    return [Number(arrival) + (k + 1) * 604_800, `${job}-${k}`, ...rest].join(",");
  })).flat()].join("\n");
  const folder = await mkdtemp(path.join(os.tmpdir(), "apportion-site-"));
  const given = async (name, data) => {
    await writeFile(path.join(folder, name), data);
    await page.locator('input[type="file"]').setInputFiles(path.join(folder, name));
    await page.getByRole("button", { name: "Rehearse" }).click();
  };
  await given("half-year.csv", many);
  await page.getByText(/Rehearsing under/).waitFor({ timeout: 60_000 });
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.locator(".spinner").waitFor({ state: "detached" });
  for (const [name, data, want] of [
    ["empty.csv", "", /empty\.csv/], ["other.csv", "arrival,queue,seconds,cpu\n0,nowhere,1,1\n", /queues that the cluster does not have: nowhere/],
    ["bad.csv", "arrival,queue,seconds,cpu\n0,vision,x,1\n", /bad\.csv/], ["t.swf", "1 2 3", /t\.swf is not a trace that the page reads/],
    ["large.csv", `arrival,queue,seconds,cpu\n${"0,vision,1,1\n".repeat(20_001)}`, /20001 jobs\. The page rehearses up to 20000/],
  ]) {
    await given(name, data);
    await page.waitForFunction((source) => new RegExp(source).test(document.querySelector(".failed")?.innerText ?? ""), want.source, { timeout: 120_000 });
    await sound(page);
  }
  await given("small.csv.gz", gzipSync(trace));
  await page.locator(".rehearsed tbody tr").first().waitFor({ timeout: 120_000 });
  await sound(page);
  await page.context().close();
});
