// The page by keyboard alone.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { launch, research, says, serve, settled, sound, text, visit } from "./harness.mjs";

let browser, program;
before(async () => {
  [browser, program] = await Promise.all([launch(), serve("-f", research)]);
});
after(async () => {
  await browser?.close();
  program?.end();
});

// tab goes on until the element with the focus has this name.
async function tab(page, name) {
  for (let i = 0; i < 120; i++) {
    await page.keyboard.press("Tab");
    const at = await page.evaluate(() => document.activeElement?.getAttribute("aria-label") ?? document.activeElement?.textContent ?? "");
    if (name.test(at.trim())) {
      return;
    }
  }
  assert.fail(`${name} is not reached`);
}

test("from the cluster to why a job waits", async () => {
  const page = await visit(browser, program.address, "#/cluster");
  await settled(page);
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to the view");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.tagName), "MAIN");
  await tab(page, /^vision$/);
  await page.keyboard.press("ArrowDown");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "language");
  await page.keyboard.press("End");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "scavenge");
  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await settled(page);
  assert.match(await text(page, "aside"), /^language/);
  await tab(page, /^language\/pretrain-7b$/);
  await page.keyboard.press("Enter");
  await settled(page);
  assert.match(await text(page, ".verdict"), /^It waits outside queue/);
  await sound(page);
  await page.context().close();
});

test("the views one after the other", async () => {
  const page = await visit(browser, program.address, "#/cluster");
  await settled(page);
  for (const [name, title] of [[/^Waiting/, "4 jobs wait"], [/^Nodes/, "10 nodes with GPU: 80 GPUs"]]) {
    await page.evaluate(() => document.body.focus());
    await page.reload();
    await settled(page);
    await tab(page, name);
    await page.keyboard.press("Enter");
    await settled(page);
    await says(page, "h1", new RegExp(`^${title}$`));
    assert.equal(await page.evaluate(() => document.activeElement.tagName), "MAIN", "reading goes on in the view");
  }
  assert.deepEqual(page.wrong, []);
  await page.context().close();
});

test("keys search, show help and move", async () => {
  const page = await visit(browser, program.address, "#/cluster");
  await settled(page);
  await page.keyboard.press("j");
  const first = await page.evaluate(() => document.activeElement.textContent);
  await page.keyboard.press("j");
  assert.notEqual(await page.evaluate(() => document.activeElement.textContent), first);
  await page.keyboard.press("k");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), first);
  await page.keyboard.press("?");
  await says(page, "dialog[open] h2", /^Keys$/);
  await page.keyboard.press("Escape");
  assert.equal(await page.locator("dialog[open]").count(), 0);
  assert.deepEqual(page.wrong, []);
  await page.context().close();
});

test("a link that has the focus can be seen", async () => {
  const page = await visit(browser, program.address, "#/cluster");
  await settled(page);
  const unseen = await page.evaluate(() => [...document.querySelectorAll("main a[href], main button")].filter((e) => {
    const { width, height } = e.getBoundingClientRect();
    return e.checkVisibility() && (width < 5 || height < 5);
  }).map((e) => e.textContent));
  assert.deepEqual(unseen, []);
  assert.deepEqual(page.wrong, []);
  await page.context().close();
});

test("the focus goes to the details that replace what had it", async () => {
  const page = await visit(browser, program.address, "#/cluster?queue=language");
  await settled(page);
  await page.locator("aside a", { hasText: "language/pretrain-7b" }).first().focus();
  await page.keyboard.press("Enter");
  await says(page, "aside", /^language\/pretrain-7b/);
  assert.equal(await page.evaluate(() => document.activeElement.tagName), "ASIDE");
  await page.goBack();
  await says(page, "aside", /^language /);
  assert.equal(await page.evaluate(() => document.activeElement.tagName), "ASIDE");
  await sound(page);
  await page.context().close();
});

test("in the colours of the system, the legend and what is chosen can be seen", async () => {
  const page = await visit(browser, program.address, "#/cluster?queue=language");
  await settled(page);
  await page.emulateMedia({ forcedColors: "active" });
  const of = (selector, property) => page.locator(selector).evaluateAll((all, name) => all.map((e) => getComputedStyle(e)[name]), property);
  assert.deepEqual(new Set(await of(".legend .key", "forcedColorAdjust")), new Set(["none"]));
  const chosen = await of("[aria-current], .selected", "outlineStyle");
  assert.ok(chosen.length >= 3 && chosen.every((style) => style === "solid"), String(chosen));
  await page.emulateMedia({ forcedColors: null });
  assert.deepEqual(page.wrong, []);
  await page.context().close();
});
