// Who used what, of a snapshot that a server keeps and that has a ledger: the plot of weeks, budgets in the words of the command line, what
// memory changes, and what a member of a team sees of it.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { converted, kept, launch, ran, remembered, research, settled, sound, text, visit } from "./harness.mjs";

let browser, server, flags;
before(async () => {
  flags = await remembered();
  server = await kept(await converted(research, "--as-of", "2026-03-02T12:00:00Z", ...flags), ["vision"], ...flags);
  browser = await launch();
});
after(async () => {
  await browser?.close();
  server?.end();
});

// enter opens a view with a token.
async function enter(token, fragment, options = {}) {
  const page = await visit(browser, server.address, fragment, { faults: true, ...options });
  await settled(page);
  await page.getByLabel(/^Token/).fill(token);
  await page.locator("header.head").waitFor();
  await settled(page);
  return page;
}

// cells are the cells of a table of the page, row by row.
const cells = (page, region) =>
  page.getByRole("region", { name: region }).locator("tbody tr").evaluateAll((rows) => rows.map((row) => [...row.children].map((cell) => cell.innerText.trim())));

// printed are the head and the cells of the table of budgets of the command line, without those that the page says elsewhere.
function printed() {
  const [head, ...rows] = ran("usage", ...flags, "--by", "budget", "--resource", "gpu").trimEnd().split("\n").map((line) => line.trim().split(/ {2,}/));
  return {
    head: head.map((word) => word.toLowerCase()).filter((word) => !["resource", "used by", "owner"].includes(word)),
    rows: rows.map((row) => row.filter((cell) => cell !== "nvidia.com/gpu" && cell !== "all")),
  };
}

test("weeks of use are drawn, the queue that used most first", async () => {
  const page = await enter(server.admin, "#/usage?policy=fair");
  const plots = page.locator(".spark.usage svg");
  assert.deepEqual((await page.locator(".spark.usage figcaption bdi").allInnerTexts()).slice(0, 3), ["root", "vision", "language"]);
  assert.match(await plots.nth(1).getAttribute("aria-label"), /^vision: 24,192 hours of GPU from 2026-01-19 to 2026-03-02; [\d.]+ count at the end$/);
  assert.equal(await plots.nth(1).locator(".usage-week").count(), 6);
  assert.match(await text(page, "main"), /Areas: the mean of each day\. Lines: what counts, with a half-life of 7d\./);
  await sound(page);
  await page.context().close();
});

test("budgets are shown in the words of the command line", async () => {
  const page = await enter(server.admin, "#/usage?policy=fair");
  const want = printed();
  const head = await page.getByRole("region", { name: "Budgets of GPU" }).locator("thead th").allInnerTexts();
  assert.deepEqual(head, want.head);
  const rows = await cells(page, "Budgets of GPU");
  assert.deepEqual(rows.map((row) => row[0]), ["vision, soft", "vision, soft", "scavenge, hard", "root, soft", "language", "robotics", "scavenge", "vision"]);
  const plain = (row) => row.filter((cell) => cell !== "").map((cell) => cell.replace(/(\d),(?=\d)/g, "$1").replace("–", "-"));
  assert.deepEqual(rows.map(plain), want.rows);
  await sound(page);
  await page.getByRole("link", { name: "memory", exact: true }).click();
  await settled(page);
  assert.match(await text(page, "main"), /No budget bounds memory\./);
  await page.context().close();
});

test("what past usage changes is a table, and what it is without stands beside", async () => {
  const page = await enter(server.admin, "#/usage?policy=fair");
  const [vision] = (await cells(page, "What past usage of GPU changes")).filter((row) => row[0] === "vision");
  assert.match(vision.join(" | "), /^vision \| \d+% \| \d+% \| 3 \| [\d.]+ \| \d+ \| \d+$/);
  await page.context().close();
});

test("a queue has its own use and its own budget", async () => {
  const page = await enter(server.admin, "#/queue/scavenge?policy=fair");
  assert.equal(await page.locator(".spark.usage").count(), 1);
  assert.deepEqual((await cells(page, "Budgets of GPU")).map((row) => row[0]).filter((name) => name !== ""), ["scavenge, hard"]);
  await sound(page);
  await page.context().close();
});

test("a member sees the use and the budget of its own queue alone", async () => {
  const page = await enter(server.member, "#/usage?policy=fair");
  assert.deepEqual(await page.locator(".spark.usage figcaption bdi").allInnerTexts(), ["vision"]);
  assert.deepEqual((await cells(page, "Budgets of GPU")).map((row) => row[0]), ["vision, soft", "vision, soft"]);
  assert.doesNotMatch(await text(page, "body"), /language|robotics|scavenge/);
  await sound(page);
  await page.context().close();
});

test("a phone shows it all, in the light and in the dark", async () => {
  for (const colorScheme of ["light", "dark"]) {
    const page = await enter(server.admin, "#/usage?policy=fair", { viewport: { width: 360, height: 740 }, colorScheme });
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.ok(wide <= 0, `the page is ${wide} pixels wider than the screen`);
    const table = page.getByRole("region", { name: "Budgets of GPU" });
    assert.ok(await table.evaluate((element) => element.scrollWidth <= element.clientWidth), "what is left of a budget is seen without scrolling");
    await sound(page);
    await page.context().close();
  }
});
