// What the tests in the browser share: the program, the browser, and pages that fail where something is wrong.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { createRequire } from "node:module";
import { mkdtemp, readFile, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";

import { chromium } from "playwright-core";

export const root = path.resolve(import.meta.dirname, "../..");
export const research = path.join(root, "examples/clusters/research");
export const program = process.env.APPORTION ?? path.join(root, "bin/apportion");

const axeSource = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

// standing starts a server with the page, an identity with a token, and a policy named cluster.
export async function standing(token) {
  const folder = await mkdtemp(path.join(os.tmpdir(), "apportion-ui-"));
  const hash = createHash("sha256").update(token).digest("hex");
  await writeFile(path.join(folder, "apportion.yaml"), JSON.stringify({
    listen: [`unix:${folder}/grpc`], http: { listen: "127.0.0.1:0", ui: true }, policies: { cluster: "preset:capacity" },
    identities: [{ name: "viewer", tokens: [`sha256:${hash}`] }], drain: { delay: "0s" }, log: { format: "json" },
  }));
  const child = spawn(program, ["serve", "--config", path.join(folder, "apportion.yaml")], { stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  const address = await new Promise((resolve, reject) => {
    child.stderr.on("data", (data) => {
      said += data;
      const at = /"serving JSON","address":"([^"]+)"/.exec(said)?.[1];
      if (at !== undefined) {
        resolve(`http://${at}/ui/`);
      }
    });
    child.once("exit", () => reject(new Error(`the server ended: ${said}`)));
  });
  return { address, end: () => child.kill() };
}

// kept starts a server that keeps a snapshot up to date, and knows an administrator and a member who owns some queues. Flags may name a ledger.
export async function kept(snapshot, queues, ...flags) {
  const binary = path.join(await mkdtemp(path.join(os.tmpdir(), "apportion-ui-")), "keptpage");
  const built = spawnSync("go", ["build", "-o", binary, "./internal/test/keptpage"], { cwd: root });
  assert.equal(built.status, 0, String(built.stderr));
  const child = spawn(binary, [...flags, snapshot, ...queues], { stdio: ["ignore", "pipe", "inherit"] });
  const address = await new Promise((resolve, reject) => {
    child.stdout.once("data", (data) => resolve(String(data).trim()));
    child.once("exit", () => reject(new Error("the server ended")));
  });
  return { address, admin: "token-of-the-administrator", member: "token-of-a-member-of-a-team", end: () => child.kill() };
}

// ran is what the program prints.
export function ran(...flags) {
  const done = spawnSync(program, flags, { maxBuffer: 1 << 28, encoding: "utf8" });
  assert.equal(done.status, 0, done.stderr);
  return done.stdout;
}

// converted is a file with the snapshot of a folder of manifests.
export async function converted(manifests, ...flags) {
  const file = path.join(await mkdtemp(path.join(os.tmpdir(), "apportion-ui-")), "opened.json");
  await writeFile(file, ran("convert", "-f", manifests, "-o", "json", ...flags));
  return file;
}

// remembered makes a ledger of six weeks until 2026-03-02, in which queues of the sample cluster used devices by turns, and budgets. It
// returns the flags that name both.
export async function remembered() {
  const folder = await mkdtemp(path.join(os.tmpdir(), "apportion-ui-"));
  const [history, ledger, budgets] = ["history.csv", "usage.ledger", "budgets.yaml"].map((name) => path.join(folder, name));
  const rows = ["task,queue,owner,start,end,cpu,nvidia.com/gpu"];
  const [begin, day] = [Date.parse("2026-01-19T00:00:00Z"), 86_400_000];
  for (let n = 0; n < 42; n++) {
    const gpus = { vision: n % 7 < 5 ? 32 : 4, language: n < 21 ? 8 : 24, robotics: n % 2 === 0 ? 12 : 0, scavenge: n % 7 < 5 ? 0 : 30 };
    for (const [queue, held] of Object.entries(gpus)) {
      for (const [owner, part] of queue === "vision" ? [["ann", 0.75], ["eve", 0.25]] : [["bob", 1]]) {
        if (held > 0) {
          const [from, until] = [begin + n * day, begin + (n + 1) * day].map((at) => new Date(at).toISOString().replace(".000", ""));
          rows.push(`${queue}-${owner}-${n},${queue},${owner},${from},${until},${held * part * 8},${held * part}`);
        }
      }
    }
  }
  await writeFile(history, `${rows.join("\n")}\n`);
  await writeFile(budgets, `budgets:
- {queue: vision, kind: soft, periods: [{begin: 2026-01-01, hours: {nvidia.com/gpu: 8000}}, {begin: 2026-02-01, hours: {nvidia.com/gpu: 20000}}]}
- {queue: scavenge, kind: hard, periods: [{begin: 2026-01-01, hours: {nvidia.com/gpu: 10000, cpu: 100000}}]}
- {queue: root, kind: soft, periods: [{begin: 2026-02-01, hours: {nvidia.com/gpu: 60000}}]}
`);
  ran("usage", "import", "--ledger", ledger, "--from", "csv", history);
  return ["--ledger", ledger, "--budgets", budgets];
}

// ending is a snapshot of a folder of manifests at a time, with the times at which some jobs are expected to end.
export async function ending(manifests, asOf, ends) {
  const nanoseconds = (time) => String(BigInt(Date.parse(time)) * 1_000_000n);
  const snapshot = JSON.parse(await readFile(await converted(manifests)));
  snapshot.asOf = nanoseconds(asOf);
  for (const [name, time] of Object.entries(ends)) {
    snapshot.jobs.find((job) => job.name === name).expectedEnd = nanoseconds(time);
  }
  return snapshot;
}

// generated is a snapshot of the generator.
export const generated = (...flags) => JSON.parse(spawnSync(program, ["generate", ...flags], { maxBuffer: 1 << 28 }).stdout);

// serve starts `apportion ui`, and returns its address and a function that ends it.
export async function serve(...flags) {
  const child = spawn(program, ["ui", "--no-open", "--listen", "127.0.0.1:0", ...flags], { stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  child.stderr.on("data", (data) => { said += data; });
  const address = await new Promise((resolve, reject) => {
    child.stdout.once("data", (data) => resolve(String(data).trim()));
    child.once("exit", () => reject(new Error(`the program ended: ${said}`)));
  });
  return { address, end: () => child.kill() };
}

// served serves a snapshot given as an object.
export async function served(snapshot, ...flags) {
  const file = path.join(await mkdtemp(path.join(os.tmpdir(), "apportion-ui-")), "cluster.json");
  await writeFile(file, JSON.stringify(snapshot));
  return serve("--snapshot", file, ...flags);
}

export const launch = () => chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
  ],
});

// visit opens a view. The page collects what must not happen: faults, violations of the policy of content, requests elsewhere.
export async function visit(browser, address, fragment = "", options = {}) {
  const context = await browser.newContext({ viewport: { width: 1360, height: 860 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  const wrong = [];
  const origin = new URL(address).origin;
  page.on("pageerror", (error) => wrong.push(`error: ${error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error" && !options.faults) {
      wrong.push(`console: ${message.text()}`);
    }
  });
  page.on("request", (request) => {
    if (new URL(request.url()).origin !== origin) {
      wrong.push(`request to ${request.url()}`);
    }
  });
  page.on("dialog", (dialog) => {
    wrong.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  await page.addInitScript({ content: `addEventListener("securitypolicyviolation", (e) => console.error("violation: " + e.violatedDirective + " " + e.blockedURI));${axeSource}` });
  await page.goto(address + fragment);
  page.wrong = wrong;
  return page;
}

// settled waits until nothing is asked any more.
export async function settled(page) {
  await page.waitForLoadState("networkidle");
  // What a key or a click changes is drawn with the next frame.
  await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
  await page.waitForFunction(() => document.querySelector(".spinner") === null && document.querySelector("main") !== null);
}

// sound checks that nothing was wrong, and that nothing keeps people from reading the page.
export async function sound(page) {
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  assert.deepEqual(violations.map((v) => `${v.id}: ${v.help}: ${v.nodes.map((n) => n.html).slice(0, 3).join(" | ")}`), []);
  assert.deepEqual(page.wrong, []);
}

// text is what a person reads of an element, in one line.
export const text = async (page, selector) => (await page.locator(selector).first().innerText()).replace(/\s+/g, " ").trim();

// says waits until an element reads like this.
export async function says(page, selector, want) {
  let got = "";
  for (let i = 0; i < 600; i++) {
    got = await page.evaluate((at) => document.querySelector(at)?.innerText ?? "", selector);
    got = got.replace(/\s+/g, " ").trim();
    if (want.test(got)) {
      return;
    }
    await page.waitForTimeout(100);
  }
  assert.match(got, want);
}
