// Names that try to be code, styles or addresses.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { launch, served, settled, sound, visit } from "./harness.mjs";

const names = [
  "<img src=x onerror=alert(1)>", "<script>alert(1)</script>", "\"><svg onload=alert(1)>", "javascript:alert(1)", "{{constructor.constructor('alert(1)')()}}",
  "';alert(1)//", "\u202egnp.exe", "__proto__", "constructor", "a".repeat(250), "style=\"background:url(https://example.org/)\"", "%3Cscript%3E", "#/job/x?y=z|w",
];
const gpus = (n) => ({ dimension: [0], amount: [1000 * n] });
const snapshot = {
  dimensions: ["nvidia.com/gpu"],
  nodes: names.map((name) => ({ name, allocatable: gpus(8), unschedulable: { cause: "UNSCHEDULABLE_CAUSE_CORDONED", detail: name } })),
  queues: names.map((name) => ({ name })),
  jobs: names.map((name, i) => ({
    name, namespace: names[(i + 1) % names.length], queue: name, minAvailable: 1, minResources: gpus(16), condition: name,
    groups: [{ role: name, request: gpus(16), tasks: [{ name }] }],
  })),
  leftOut: names.map((name) => ({ cause: "LEFT_OUT_CAUSE_UNKNOWN_QUEUE", name, queue: name })),
};

let browser, program;
before(async () => {
  [browser, program] = await Promise.all([launch(), served(snapshot)]);
});
after(async () => {
  await browser?.close();
  program?.end();
});

for (const view of ["cluster", "waiting", "waiting?cause=left", "nodes", "nodes?by=queue", "cluster?sort=name"]) {
  test(`hostile names are text in ${view}`, async () => {
    const page = await visit(browser, program.address, `#/${view}`);
    await settled(page);
    await sound(page);
    assert.equal(await page.locator("script, img, iframe, object, style").count(), 1, "the page's own script alone");
    await page.context().close();
  });
}

test("hostile names are addresses of their own job and queue", async () => {
  const page = await visit(browser, program.address, "#/cluster");
  await settled(page);
  for (let i = 0; i < names.length; i++) {
    await page.evaluate((hash) => { location.hash = hash; }, `#/queue/${encodeURIComponent(names[i])}`);
    await settled(page);
    assert.equal(await page.locator("h1").textContent(), names[i]);
    const link = page.locator(".job-row a").first();
    assert.equal(await link.textContent(), `${names[(i + 1) % names.length]}/${names[i]}`);
    await link.click();
    await settled(page);
    await page.locator(".verdict").waitFor();
  }
  await sound(page);
  await page.context().close();
});
