// Names that try to be code, styles or addresses.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { launch, served, settled, sound, visit } from "./harness.mjs";

const names = [
  "<img src=x onerror=alert(1)>", "<script>alert(1)</script>", "\"><svg onload=alert(1)>", "javascript:alert(1)", "{{constructor.constructor('alert(1)')()}}",
  "';alert(1)//", "\u202egnp.exe", "__proto__", "constructor", "a".repeat(250), "style=\"background:url(https://example.org/)\"", "%3Cscript%3E", "#/job/x?y=z|w",
];
const gpus = (n) => ({ dimensions: [0], amounts: [1000 * n] });
const snapshot = {
  dimensions: ["nvidia.com/gpu"],
  nodes: names.map((name) => ({ name, allocatable: gpus(8), unschedulable: { cause: "UNSCHEDULABLE_CAUSE_CORDONED", detail: name } })),
  queues: names.map((name) => ({ name })),
  jobs: names.map((name, i) => ({
    name, namespace: names[(i + 1) % names.length], queue: name, minAvailable: 1, minResources: gpus(16), condition: name,
    groups: [{ role: name, request: gpus(16), tasks: [{ name }] }],
  })),
  leftOuts: names.map((name) => ({ cause: "LEFT_OUT_CAUSE_UNKNOWN_QUEUE", name, queue: name })),
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

test("a long name scrolls no page sideways, on a phone neither", async () => {
  const i = names.findIndex((name) => name.length > 200);
  const long = encodeURIComponent(names[i]);
  const job = encodeURIComponent(`${names[(i + 1) % names.length]}/${names[i]}`);
  for (const width of [390, 1360]) {
    const page = await visit(browser, program.address, "#/cluster", { viewport: { width, height: 860 } });
    for (const view of ["cluster", "waiting", `queue/${long}`, `job/${job}`, `nodes/${long}`, `whatif?queue=${long}`]) {
      await page.evaluate((hash) => { location.hash = hash; }, `#/${view}`);
      await settled(page);
      assert.equal(await page.evaluate(() => Math.max(0, document.documentElement.scrollWidth - innerWidth)), 0, `${view.slice(0, 8)} at ${width}`);
    }
    await page.context().close();
  }
});

// Letters that are written from right to left reorder what is beside them up to the next letter, numbers included.
test("names from right to left leave the order of the text around them", async (t) => {
  const name = (n) => `\u05d0\u05d1${n}\u05d2`;
  const other = await served({
    ...snapshot,
    nodes: [1, 2].map((n) => ({ name: name(n), allocatable: gpus(8) })),
    queues: [{ name: name(3), capability: gpus(4) }],
    jobs: [4, 5].map((n) => ({
      name: name(n), queue: name(3), minAvailable: 1, minResources: gpus(16), groups: [{ role: "r", request: gpus(16), tasks: [{ name: name(6) }] }],
    })),
    leftOuts: [{ cause: "LEFT_OUT_CAUSE_UNKNOWN_QUEUE", name: name(7), queue: name(8) }],
  });
  t.after(() => other.end());
  let seen = 0;
  for (const view of [`job/${encodeURIComponent(name(4))}`, "waiting", "waiting?cause=left", "cluster", `queue/${encodeURIComponent(name(3))}`]) {
    const page = await visit(browser, other.address, `#/${view}`);
    await settled(page);
    const wrong = await page.evaluate(() => {
      const out = { turned: [], seen: 0 };
      const at = (node, from, to) => {
        const range = document.createRange();
        range.setStart(node, from);
        range.setEnd(node, to);
        return range.getBoundingClientRect();
      };
      const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
      for (let node = texts.nextNode(); node !== null; node = texts.nextNode()) {
        const isolated = node.parentElement.closest("bdi, option, title") !== null;
        if (/[\u0590-\u05ff]/.test(node.data)) {
          out.seen++;
        }
        if (!isolated && /[\u0590-\u05ff]/.test(node.data)) {
          out.turned.push(`not isolated: ${node.data}`);
        }
        for (let i = 1; !isolated && i < node.data.length; i++) {
          const [before, after] = [at(node, i - 1, i), at(node, i, i + 1)];
          if (before.width > 0 && after.width > 0 && before.top === after.top && after.left < before.left) {
            out.turned.push(node.data);
            break;
          }
        }
      }
      return out;
    });
    assert.deepEqual(wrong.turned, [], view);
    seen += wrong.seen;
    await sound(page);
    await page.context().close();
  }
  assert.ok(seen > 10, `${seen} names`);
});
