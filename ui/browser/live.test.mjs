// A cluster that is read again: the page shows what has changed, and keeps its place.
import assert from "node:assert/strict";
import { mkdtemp, readFile, rename, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";

import { converted, launch, research, says, serve, settled, sound, text, visit } from "./harness.mjs";

let browser, program, file;
before(async () => {
  file = path.join(await mkdtemp(path.join(os.tmpdir(), "apportion-ui-")), "cluster.json");
  await writeFile(file, await readFile(await converted(research)));
  [browser, program] = await Promise.all([launch(), serve("--snapshot", file, "--watch", "--interval", "200ms")]);
});
after(async () => {
  await browser?.close();
  program?.end();
});

// edit changes the file as a whole.
async function edit(change) {
  const snapshot = JSON.parse(await readFile(file, "utf8"));
  change(snapshot);
  await writeFile(`${file}.new`, JSON.stringify(snapshot));
  await rename(`${file}.new`, file);
}

test("what changes is shown, and the place is kept", async () => {
  const page = await visit(browser, program.address, "#/cluster?queue=vision");
  await settled(page);
  assert.match(await text(page, ".summary"), /^All 80 GPUs are in use\./);
  assert.match(await text(page, ".head-title"), /live, as of/);
  await sound(page);
  await page.evaluate(() => {
    globalThis.drawn = document.querySelector(".shares");
    scrollTo(0, 120);
  });
  const before = await page.evaluate(() => scrollY);
  const weight = await text(page, ".queue .note");
  await edit((s) => {
    s.queues.find((q) => q.name === "vision").weight = 9;
    // Positions are others from now on.
    s.queues.reverse();
  });
  await says(page, ".queue .note", /^Weight 9/);
  assert.doesNotMatch(weight, /^Weight 9/);
  assert.equal(await text(page, ".queue h2"), "vision");
  assert.equal(await page.evaluate(() => scrollY), before);
  assert.ok(await page.evaluate(() => globalThis.drawn === document.querySelector(".shares")), "the table stays");
  await sound(page);
  await page.context().close();
});

test("what a new version changes is marked, and what one looks at stays", async () => {
  const page = await visit(browser, program.address, "#/waiting");
  await settled(page);
  const row = page.locator(".waiting-row a", { hasText: "language/pretrain-7b" });
  await page.keyboard.press("?");
  await page.locator("dialog[open]").waitFor();
  await page.keyboard.press("Escape");
  await row.focus();
  await page.evaluate(() => {
    globalThis.row = document.activeElement;
    scrollTo(0, 40);
  });
  const at = await page.evaluate(() => scrollY);
  await edit((s) => {
    s.queues.find((q) => q.name === "robotics").state = "QUEUE_STATE_CLOSED";
    s.jobs.reverse();
  });
  await says(page, ".changes", /^~ [1-9] changed$/);
  const changed = page.locator(".waiting-row", { hasText: "robotics/grasp-eval" }).getByRole("img", { name: "changed" });
  assert.match(await changed.getAttribute("title"), /^before: 0\/16 nodes have room/);
  assert.ok(await page.evaluate(() => globalThis.row === document.activeElement && document.activeElement.isConnected), "the row that has the focus");
  assert.equal(await page.evaluate(() => scrollY), at);
  await sound(page);
  // A panel that is open, with what was computed for it.
  await page.goto(`${program.address}#/job/robotics%2Fgrasp-train`);
  await settled(page);
  await page.locator(".remedies li").first().waitFor();
  await page.evaluate(() => {
    globalThis.shown = [document.querySelector(".remedies"), document.querySelector(".plan")];
    globalThis.missed = 0;
    new MutationObserver(() => { globalThis.missed += globalThis.shown.some((e) => !e.isConnected) ? 1 : 0; }).observe(document.body, { childList: true, subtree: true });
  });
  await edit((s) => {
    delete s.queues.find((q) => q.name === "robotics").state;
    s.queues.find((q) => q.name === "vision").weight = 4;
  });
  await says(page, ".changes", /changed/);
  assert.equal(await page.evaluate(() => globalThis.missed), 0, "remedies and plan stay");
  await sound(page);
  await page.context().close();
});

test("a strip says what a job waited for, and a line what its queue held", async () => {
  const page = await visit(browser, program.address, "#/job/robotics%2Fgrasp-train");
  await settled(page);
  await says(page, "#job-past", /^It waits since \d\d:\d\d or longer$/);
  // What the tests before changed may have changed the cause too.
  assert.equal(await page.locator(".strip rect").count(), await page.locator(".spans li").count());
  await edit((s) => {
    s.queues.find((q) => q.name === "robotics").state = "QUEUE_STATE_CLOSED";
  });
  await page.waitForFunction(() => document.querySelector(".spans li:last-child").textContent.includes("is not open"));
  const spans = await page.locator(".spans li").allTextContents();
  assert.ok(spans.length > 1);
  assert.equal(await page.locator(".strip rect").count(), spans.length);
  assert.match(spans[0], /^\d\d:\d\d – \d\d:\d\d .*because no usable node has enough nvidia.com\/gpu left$/);
  assert.match(spans.at(-1), /^\d\d:\d\d – now .*because queue robotics is not open$/);
  await says(page, ".past .note", /^Known since \d\d:\d\d, when this server started\.$/);
  await sound(page);
  await page.goto(`${program.address}#/queue/robotics`);
  await settled(page);
  await says(page, "#queue-past", /^Jobs wait since \d\d:\d\d/);
  await page.locator(".spark svg").first().waitFor();
  assert.match(await page.locator(".spark svg").first().getAttribute("aria-label"), /^[A-Za-z]+: held .* since \d\d:\d\d; now .* of .* deserved$/);
  await says(page, "#queue-next", /^What comes next, if nothing else changes$/);
  await sound(page);
  await edit((s) => {
    delete s.queues.find((q) => q.name === "robotics").state;
  });
  await page.context().close();
});

test("every view of it", async () => {
  for (const fragment of ["#/waiting", "#/nodes?by=queue", "#/whatif", "#/compare", "#/queue/vision", "#/certificate?policy=fair"]) {
    const page = await visit(browser, program.address, fragment);
    await settled(page);
    assert.equal(await page.locator('[role="alert"]').count(), 0, fragment);
    await sound(page);
    await page.context().close();
  }
});

test("what if on a snapshot that the server keeps", async () => {
  const page = await visit(browser, program.address, "#/whatif?queue=vision");
  await settled(page);
  await page.getByRole("spinbutton", { name: "Weight of vision" }).fill("1");
  await says(page, ".summary", /^(?!No queue)/);
  await sound(page);
  await page.context().close();
});

test("a source that cannot be read is said", async () => {
  const page = await visit(browser, program.address, "#/cluster");
  await settled(page);
  await rename(file, `${file}.away`);
  await says(page, ".head-note", /^not complete/);
  await sound(page);
  await rename(`${file}.away`, file);
  await page.waitForFunction(() => document.querySelector(".head-note") === null);
  await page.context().close();
});

test("light, dark, or same as the system", async () => {
  const page = await visit(browser, program.address, "#/cluster");
  await settled(page);
  const back = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await back();
  await page.getByRole("button", { name: /^Colours: same as the system/ }).click();
  assert.equal(await back(), light);
  await page.getByRole("button", { name: /^Colours: light/ }).click();
  await page.getByRole("button", { name: /^Colours: dark/ }).waitFor();
  await page.waitForFunction((was) => getComputedStyle(document.body).backgroundColor !== was, light);
  await sound(page);
  await page.reload();
  await settled(page);
  assert.notEqual(await back(), light, "the choice lasts");
  await page.context().close();
});
