// Measures the site in Chromium: what is loaded, the first picture of the sample, and questions about the standard cluster of 100,000 tasks.
//
// node site/measure.mjs [--steps 20] [--quality 11]
import { spawnSync } from "node:child_process";
import { mkdtemp, readdir, readFile, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { brotliCompressSync, constants, gunzipSync } from "node:zlib";

import { launch, program, settled, visit } from "../browser/harness.mjs";
import { folder, serve } from "./harness.mjs";

const { values: flags } = parseArgs({ options: { steps: { type: "string", default: "20" }, quality: { type: "string", default: "11" } } });
const steps = Number(flags.steps);

// The highest quality takes minutes.
for (const name of (await readdir(folder)).filter((n) => n.endsWith(".wasm.gz"))) {
  const zipped = await readFile(path.join(folder, name));
  const plain = gunzipSync(zipped);
  const small = brotliCompressSync(plain, { params: { [constants.BROTLI_PARAM_QUALITY]: Number(flags.quality), [constants.BROTLI_PARAM_LGWIN]: 24, [constants.BROTLI_PARAM_SIZE_HINT]: plain.length } });
  console.log(`${name.padEnd(20)} ${[plain, zipped, small].map((d) => `${(d.length / 1e6).toFixed(1)} MB`.padStart(8)).join(" ")}   plain, gzip, brotli`);
}

function report(name, list) {
  const sorted = [...list].sort((a, b) => a - b);
  const at = (p) => `${Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * p))])}`.padStart(7);
  console.log(`${name.padEnd(58)} ${at(0.5)} ${at(0.95)} ${at(1)}`);
}

// watch notes how long each request of a worker takes, and when a frame has shown other shares after a key was pressed.
function watch() {
  const noted = { asked: [], input: 0, painted: 0 };
  globalThis.noted = noted;
  const post = Worker.prototype.postMessage;
  Worker.prototype.postMessage = function (message, ...more) {
    const entry = { name: message.name, text: message.name === "call" ? new TextDecoder().decode(message.arguments[1]).slice(-4000) : "", from: performance.now() };
    const done = ({ data }) => {
      if (data.kind !== "progress") {
        entry.took = performance.now() - entry.from;
        noted.asked.push(entry);
        this.removeEventListener("message", done);
      }
    };
    this.addEventListener("message", done);
    return post.call(this, message, ...more);
  };
  addEventListener("input", (event) => { noted.input = event.timeStamp; }, { capture: true });
  let shown;
  new MutationObserver(() => {
    const text = document.querySelector(".sides .list")?.textContent ?? "";
    if (text !== shown) {
      shown = text;
      requestAnimationFrame(() => {
        const { port1, port2 } = new MessageChannel();
        port1.onmessage = () => { noted.painted = performance.now(); };
        port2.postMessage(0);
      });
    }
  }).observe(document, { subtree: true, childList: true, characterData: true });
}

const [browser, site] = await Promise.all([launch(), serve()]);
try {
  console.log(`\n${"milliseconds".padEnd(58)} ${["50 %", "95 %", "most"].map((t) => t.padStart(7)).join(" ")}`);
  const first = [];
  for (let i = 0; i < 5; i++) {
    const page = await visit(browser, site.page, "", {});
    await page.goto("about:blank");
    const begun = performance.now();
    await page.goto(`${site.page}#/cluster?from=sample%3Aresearch`);
    await page.locator(".shares-row .bar").first().waitFor();
    first.push(performance.now() - begun);
    await page.context().close();
  }
  report("the sample: from the address to the first picture", first);

  const file = path.join(await mkdtemp(path.join(os.tmpdir(), "apportion-measure-")), "standard.json");
  await writeFile(file, spawnSync(program, ["generate", "--standard", "-o", "json"], { maxBuffer: 1 << 29 }).stdout);
  const page = await visit(browser, site.page, "#/open");
  page.setDefaultTimeout(300_000);
  await page.evaluate(watch);
  const begun = performance.now();
  await page.locator('input[type="file"]').setInputFiles(file);
  await page.locator(".shares").first().waitFor();
  report("the standard cluster: from the file to the first picture", [performance.now() - begun]);
  await settled(page);
  for (let i = 0; i < 4; i++) {
    for (const policy of ["capacity", "fair", "proportion"]) {
      await page.evaluate((to) => { location.hash = `#/cluster?policy=${to}${"&x=" + Math.random()}`; }, policy);
      await settled(page);
    }
  }
  const asked = await page.evaluate(() => globalThis.noted.asked);
  for (const entry of asked.filter((e) => e.name !== "call")) {
    report(`  ${entry.name}`, [entry.took]);
  }
  report("  shares, by each policy the first time", asked.filter((e) => e.name === "call" && e.text.includes('"shares"') && !e.text.includes('"explain"')).map((e) => e.took));
  await page.evaluate(() => { location.hash = "#/whatif?policy=proportion&queue=queue-0500"; });
  await settled(page);
  await page.waitForFunction(() => document.querySelector(".sides")?.getAttribute("aria-busy") === "false");
  await page.getByRole("spinbutton", { name: /^Weight of/ }).focus();
  const whatif = [];
  for (let i = 0; i < steps; i++) {
    await page.keyboard.press("ArrowUp");
    await page.waitForFunction(() => globalThis.noted.painted > globalThis.noted.input);
    whatif.push(await page.evaluate(() => globalThis.noted.painted - globalThis.noted.input));
    await page.waitForFunction(() => document.querySelector(".sides")?.getAttribute("aria-busy") === "false");
    await page.waitForTimeout(300);
  }
  report("  what if: from a key to the shares after it", whatif);
} finally {
  await browser.close();
  site.end();
}
