// A cluster of 1,000 queues and 10,000 waiting jobs: only what is seen is drawn.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { launch, says, served, settled, sound, visit } from "./harness.mjs";

const gpus = (n) => ({ dimensions: [0], amounts: [1000 * n] });
const count = (n, make) => Array.from({ length: n }, (_, i) => make(i));
const snapshot = {
  dimensions: ["nvidia.com/gpu"],
  nodes: count(2000, (i) => ({ name: `node-${i}`, allocatable: gpus(8) })),
  queues: count(1000, (i) => ({ name: `queue-${i}`, weight: 1 + (i % 7) })),
  jobs: [
    ...count(2000, (i) => ({
      name: `run-${i}`, namespace: "a", queue: `queue-${i % 900}`, phase: "JOB_PHASE_RUNNING", minAvailable: 1, minResources: gpus(8),
      groups: [{ request: gpus(8), tasks: [{ name: `run-${i}-0`, status: "TASK_STATUS_RUNNING", node: i }] }],
    })),
    ...count(10_000, (i) => ({
      name: `wait-${i}`, namespace: "a", queue: `queue-${i % 1000}`, phase: "JOB_PHASE_INQUEUE", minAvailable: 1, minResources: gpus(1 + (i % 8)),
      groups: [{ request: gpus(1 + (i % 8)), tasks: [{ name: `wait-${i}-0` }] }],
    })),
  ],
};

let browser, program;
before(async () => {
  [browser, program] = await Promise.all([launch(), served(snapshot)]);
});
after(async () => {
  await browser?.close();
  program?.end();
});

// drawn is how many rows are in the page; longest is the longest time in milliseconds that the page kept people waiting while it scrolled.
async function scrolled(page, list) {
  return page.evaluate(async (selector) => {
    const box = document.querySelector(selector);
    const frame = () => new Promise((resolve) => { requestAnimationFrame(resolve); });
    let [drawn, work] = [0, 0];
    for (let i = 0; i < 40; i++) {
      const began = performance.now();
      box.scrollTop = ((box.scrollHeight - box.clientHeight) * i) / 39;
      box.dispatchEvent(new Event("scroll"));
      await Promise.resolve();
      work += performance.now() - began;
      await frame();
      await frame();
      drawn = Math.max(drawn, box.querySelectorAll("[role=row], [role=listitem]").length);
    }
    return { drawn, work };
  }, list);
}

test("1,000 queues", async () => {
  const page = await visit(browser, program.address, "#/cluster");
  page.setDefaultTimeout(60_000);
  await settled(page);
  const { drawn } = await scrolled(page, ".shares .list");
  assert.ok(drawn > 5 && drawn < 80, String(drawn));
  await page.getByRole("searchbox", { name: "Find a queue" }).fill("queue-77");
  await page.waitForFunction(() => document.querySelectorAll(".shares .list [role=row]").length === 11);
  await sound(page);
  await page.context().close();
});

test("10,000 waiting jobs", async () => {
  const page = await visit(browser, program.address, "#/waiting");
  page.setDefaultTimeout(60_000);
  await settled(page);
  await says(page, "h1", /^10,000 jobs wait$/);
  const { drawn } = await scrolled(page, ".panel .list");
  assert.ok(drawn > 5 && drawn < 80, String(drawn));
  await page.getByRole("searchbox", { name: "Find a job or a queue" }).fill("wait-9999");
  await page.getByRole("link", { name: "a/wait-9999" }).click();
  await page.locator(".verdict").waitFor();
  await sound(page);
  await page.context().close();
});

test("2,000 nodes", async () => {
  const page = await visit(browser, program.address, "#/nodes?by=queue");
  page.setDefaultTimeout(60_000);
  await settled(page);
  const { drawn } = await scrolled(page, ".map");
  assert.ok(drawn > 20 && drawn < 600, String(drawn));
  await sound(page);
  await page.context().close();
});
