// The home page and the documents of the site: files as they are written, then in a browser.
import assert from "node:assert/strict";
import { readdir, readFile, stat } from "node:fs/promises";
import path from "node:path";
import { after, before, test } from "node:test";

import { launch, settled, sound, text, visit } from "../browser/harness.mjs";
import { folder, serve } from "./harness.mjs";

let browser, site;
before(async () => {
  [browser, site] = await Promise.all([launch(), serve()]);
});
after(async () => {
  await browser?.close();
  site?.end();
});

const pages = async () => (await readdir(folder, { recursive: true })).filter((name) => name.endsWith(".html"));
const decoded = (html) => html.replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&quot;/g, '"').replace(/&amp;/g, "&");

test("every link of the site leads to a file, and to a section of it", async () => {
  const anchors = new Map();
  const anchorsOf = async (file) => {
    if (!anchors.has(file)) {
      anchors.set(file, new Set([...(await readFile(file, "utf8")).matchAll(/\s(?:id|name)="([^"]+)"/g)].map(([, id]) => decoded(id))));
    }
    return anchors.get(file);
  };
  let links = 0;
  for (const name of await pages()) {
    const html = await readFile(path.join(folder, name), "utf8");
    for (const [, written] of html.replace(/<pre[\s\S]*?<\/pre>/g, "").matchAll(/\s(?:href|src)="([^"]*)"/g)) {
      const [target, anchor = ""] = decoded(written).split("#");
      if (/^[a-z]+:/.test(target)) {
        assert.match(target, /^(https?|mailto):/, `${name}: ${written}`);
        continue;
      }
      const file = target === "" ? path.join(folder, name) : path.join(folder, path.dirname(name), decodeURIComponent(target));
      assert.ok((await stat(file).catch(() => undefined))?.isFile(), `${name}: ${written} leads nowhere`);
      if (anchor !== "" && !anchor.startsWith("/")) {
        assert.ok((await anchorsOf(file)).has(decodeURIComponent(anchor)), `${name}: ${written}: there is no such section`);
      }
      links++;
    }
  }
  assert.ok(links > 3000, `${links} links`);
});

test("the home page and documents are sound in light and in dark, on a desktop and on a phone", async () => {
  for (const name of ["index.html", "docs/cli.html", "docs/fair.html", "docs/site.html"]) {
    for (const colorScheme of ["light", "dark"]) {
      const page = await visit(browser, site.address, name, { colorScheme });
      await settled(page);
      await sound(page);
      await page.setViewportSize({ width: 390, height: 844 });
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth <= 0), true, `${name} is wider than a phone`);
      await page.context().close();
    }
  }
});

test("the documents are searched without a pointer", async () => {
  const page = await visit(browser, site.address, "docs/cli.html");
  await page.keyboard.press("/");
  await page.keyboard.type("reclaim");
  await page.locator("#found a").first().waitFor();
  await settled(page);
  await page.keyboard.press("ArrowDown");
  const [from, wanted] = await page.evaluate(() => [location.href, document.activeElement.href]);
  await page.keyboard.press("Enter");
  // The first section that is found may stand in the same document: its address differs by the section alone.
  await page.waitForURL(wanted);
  await page.goBack();
  await page.waitForURL(from);
  await page.keyboard.press("/");
  await page.keyboard.type("no such word anywhere xyzzy");
  await page.getByText("Nothing was found.").waitFor();
  await sound(page);
  await page.keyboard.press("Escape");
  assert.equal(await page.locator("#found").isVisible(), false);
  await page.context().close();
});

test("an address of the page from when it was the home page leads to the page", async () => {
  const page = await visit(browser, site.address, "#/cluster?from=sample%3Aresearch");
  await page.locator(".shares").first().waitFor();
  assert.match(page.url(), /play\.html#\/cluster/);
  await page.context().close();
});

test("each link below a transcript opens the page with its question", async () => {
  const links = new Set();
  for (const name of await pages()) {
    for (const [, written] of (await readFile(path.join(folder, name), "utf8")).matchAll(/href="[^"]*play\.html(#[^"]*)" class="play"/g)) {
      links.add(decoded(written));
    }
  }
  assert.ok(links.size >= 50, `${links.size} links`);
  const page = await visit(browser, site.page, "#/open");
  const from = (link) => new URLSearchParams(link.split("?")[1]).get("from");
  let before;
  for (const link of [...links].sort((a, b) => (from(a) < from(b) ? -1 : 1))) {
    // A view of the same cluster needs no new page.
    if (from(link) !== before) {
      await page.goto("about:blank");
    }
    before = from(link);
    await page.goto(site.page + link);
    const view = /^#\/(\w+)/.exec(link)[1];
    await page.locator({ cluster: ".shares", queue: "main .panel h2, main .panel h1", job: ".verdict", waiting: ".waiting-row, .groups", compare: ".pair", whatif: ".chips" }[view]).first()
      .waitFor({ timeout: 60_000 }).catch(async () => assert.fail(`${link.slice(0, 200)}: ${await text(page, "main")}`));
    await settled(page);
    assert.equal(await page.locator(".failed").count(), 0, link);
    const [name, query] = link.slice(2).split("?");
    if (name.includes("/")) {
      assert.match(await text(page, "main"), new RegExp(decodeURIComponent(name.split("/")[1]).replace(/[/-]/g, ".")));
    }
    assert.equal(await page.locator("select.policy").inputValue(), new URLSearchParams(query).get("policy"), link);
  }
  await sound(page);
  await page.context().close();
});

// tabbed presses Tab until an element that a selector names has the focus.
async function tabbed(page, selector) {
  for (let i = 0; i < 80; i++) {
    await page.keyboard.press("Tab");
    if (await page.evaluate((at) => document.activeElement.matches(at), selector)) {
      return;
    }
  }
  assert.fail(`no Tab reaches ${selector}`);
}

test("the keyboard alone leads from the home page to a job, and to what if", async () => {
  const page = await visit(browser, site.address, "index.html");
  await tabbed(page, ".button.first");
  await page.keyboard.press("Enter");
  await page.locator(".shares").first().waitFor();
  await settled(page);
  await tabbed(page, '.views a[href^="#/waiting"]');
  await page.keyboard.press("Enter");
  await page.locator(".waiting-row").first().waitFor();
  await tabbed(page, ".list a");
  await page.keyboard.press("Enter");
  await page.locator(".verdict").first().waitFor();
  await settled(page);
  await page.evaluate(() => document.activeElement.blur());
  await tabbed(page, '.views a[href^="#/whatif"]');
  await page.keyboard.press("Enter");
  await page.locator("main input[type=range]").first().waitFor();
  await settled(page);
  await tabbed(page, "main input[type=range]");
  await page.keyboard.press("ArrowRight");
  await page.locator(".chips li").first().waitFor();
  await settled(page);
  await sound(page);
  await page.context().close();
});
