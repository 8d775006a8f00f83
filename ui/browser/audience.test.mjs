// Two readers of a cluster that the server keeps: an administrator sees everything, a member of team vision its own queue and the sums of the
// others.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { converted, kept, launch, research, settled, sound, text, visit } from "./harness.mjs";

let browser, server;
before(async () => {
  server = await kept(await converted(research), ["vision"]);
  browser = await launch();
});
after(async () => {
  await browser?.close();
  server?.end();
});

// enter opens a view with a token, and collects what the server sends.
async function enter(token, fragment) {
  const page = await visit(browser, server.address, fragment, { faults: true });
  page.received = [];
  page.on("response", async (response) => {
    try {
      page.received.push(await response.text());
    } catch {
      // A request that was cancelled has no answer.
    }
  });
  await settled(page);
  await page.getByLabel(/^Token/).fill(token);
  await page.locator("header.head").waitFor();
  await settled(page);
  return page;
}

test("the administrator sees everything, without a document", async () => {
  const page = await enter(server.admin, "#/cluster?policy=fair");
  assert.match(await text(page, ".summary"), /^All 80 GPUs are in use\./);
  assert.match(await text(page, ".shares"), /vision.*language.*robotics/);
  assert.match(await text(page, ".policy"), /fair-here \(of the server\)/);
  await sound(page);
  await page.context().close();
});

test("a member sees its own queue, and the others as sums", async () => {
  const foreign = /language|robotics|serving|scavenge|pretrain|tokenize|grasp|ranker|hyperopt|nightly-eval/;
  const page = await enter(server.member, "#/cluster?policy=fair");
  assert.match(await text(page, ".head"), /You see your own queues and their jobs\. Other queues are shown as sums\./);
  assert.match(await text(page, ".shares"), /vision.*\d other queues/);
  assert.match(await text(page, ".summary"), /^All 80 GPUs are in use\./);
  assert.match(await text(page, ".causes"), /more waits? in other queues/);
  await sound(page);
  for (const fragment of ["#/waiting", "#/nodes?by=queue", "#/queue/vision", "#/compare", "#/job/vision%2Fsegment-sweep"]) {
    await page.evaluate((at) => { location.hash = at; }, `${fragment}${fragment.includes("?") ? "&" : "?"}policy=fair`);
    await settled(page);
    await page.waitForTimeout(300);
    assert.equal(await page.locator('[role="alert"]').count(), 0, fragment);
    assert.doesNotMatch(await text(page, "body"), foreign, fragment);
    await sound(page);
  }
  assert.ok(page.received.length > 5);
  for (const answer of page.received) {
    assert.doesNotMatch(answer, foreign);
  }
  await page.context().close();
});
