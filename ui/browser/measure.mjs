// Measures What if on the standard cluster: the time from a key press in the field of a weight to the end of the frame that shows the
// shares after it, and how long the causes of all waiting jobs take on the server.
//
// node browser/measure.mjs [--steps 40] [--trace FILE] [--queue NAME]
import { mkdtemp, writeFile } from "node:fs/promises";
import { spawnSync } from "node:child_process";
import os from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";

import { launch, program, serve, settled, visit } from "./harness.mjs";

const { values: flags } = parseArgs({
  options: { steps: { type: "string", default: "40" }, trace: { type: "string" }, queue: { type: "string", default: "queue-0500" } },
});
const steps = Number(flags.steps);

function report(name, list) {
  const sorted = [...list].sort((a, b) => a - b);
  const at = (p) => `${Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * p))])}`.padStart(7);
  console.log(`${name.padEnd(44)} ${at(0.5)} ${at(0.95)} ${at(1)}`);
}

// watch notes in the page when a key was pressed, and when a frame has shown other shares.
function watch() {
  const noted = { input: 0, painted: 0, text: undefined };
  globalThis.noted = noted;
  addEventListener("input", (event) => { noted.input = event.timeStamp; }, { capture: true });
  const look = () => {
    const text = document.querySelector(".sides .list")?.textContent ?? "";
    if (text !== noted.text) {
      noted.text = text;
      // A message is delivered after the frame that comes next.
      requestAnimationFrame(() => {
        const { port1, port2 } = new MessageChannel();
        port1.onmessage = () => { noted.painted = performance.now(); };
        port2.postMessage(0);
      });
    }
  };
  new MutationObserver(look).observe(document, { subtree: true, childList: true, characterData: true });
  look();
  performance.setResourceTimingBufferSize(1_000_000);
}

// idle waits until nothing is asked any more.
async function idle(page) {
  await page.waitForFunction(() => document.querySelector(".sides")?.getAttribute("aria-busy") === "false");
  await page.waitForTimeout(50);
}

// painted waits until the shares of the newest step are shown, and returns how long that took and what of it was what.
async function painted(page) {
  await page.waitForFunction(() => globalThis.noted.painted > globalThis.noted.input);
  return page.evaluate(() => {
    const { input, painted } = globalThis.noted;
    const asked = performance.getEntriesByType("resource").find((e) => e.name.endsWith("/Simulate") && e.startTime >= input);
    return {
      all: painted - input, sent: asked.startTime - input, served: asked.responseEnd - asked.startTime, drawn: painted - asked.responseEnd,
      bytes: asked.decodedBodySize,
    };
  });
}

const file = path.join(await mkdtemp(path.join(os.tmpdir(), "apportion-measure-")), "standard.pb");
await writeFile(file, spawnSync(program, ["generate", "--standard", "-o", "binary"], { maxBuffer: 1 << 28 }).stdout);
const [browser, server] = await Promise.all([launch(), serve("--snapshot", file)]);
try {
  const page = await visit(browser, server.address, `#/whatif?queue=${flags.queue}`);
  page.setDefaultTimeout(60_000);
  await settled(page);
  await idle(page);
  await page.evaluate(watch);
  await page.getByRole("spinbutton", { name: /^Weight of/ }).focus();
  const press = () => page.keyboard.press("ArrowUp");
  for (let i = 0; i < 5; i++) {
    await press();
    await painted(page);
    await idle(page);
  }

  console.log(`${"milliseconds".padEnd(44)} ${["50 %", "95 %", "most"].map((t) => t.padStart(7)).join(" ")}`);
  if (flags.trace !== undefined) {
    await browser.startTracing(page, { path: flags.trace });
  }
  const one = [];
  for (let i = 0; i < steps; i++) {
    await press();
    one.push(await painted(page));
    await page.waitForTimeout(500);
  }
  if (flags.trace !== undefined) {
    await browser.stopTracing();
  }
  report("a step", one.map((r) => r.all));
  report("  until the question is sent", one.map((r) => r.sent));
  report("  until the answer has come", one.map((r) => r.served));
  report("  until it is shown", one.map((r) => r.drawn));
  console.log(`  bytes of the answer: ${Math.max(...one.map((r) => r.bytes))}`);

  const last = [];
  for (let i = 0; i < steps / 4; i++) {
    for (let k = 0; k < 10; k++) {
      await press();
      await page.waitForTimeout(50);
    }
    await press();
    await idle(page);
    last.push(await page.evaluate(() => globalThis.noted.painted - globalThis.noted.input));
  }
  report("the last of eleven steps, 50 ms apart", last);

  const causes = [];
  for (let i = 0; i < 5; i++) {
    await press();
    await idle(page);
    causes.push(await page.evaluate(() => {
      const asked = performance.getEntriesByType("resource").filter((e) => e.name.endsWith("/Simulate")).at(-1);
      return asked.responseEnd - asked.startTime;
    }));
  }
  report("causes of all waiting jobs: the answer", causes);
} finally {
  await browser.close();
  server.end();
}
