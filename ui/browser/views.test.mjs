// The main path of each view, in a browser.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { ending, launch, research, says, serve, served, settled, sound, text, visit } from "./harness.mjs";

let browser, program;
before(async () => {
  [browser, program] = await Promise.all([launch(), serve("-f", research)]);
});
after(async () => {
  await browser?.close();
  program?.end();
});

// look opens a view, checks it in light, in dark and on a phone, and closes it.
async function look(fragment, check, address = program.address) {
  const page = await visit(browser, address, fragment);
  await settled(page);
  await check(page);
  await sound(page);
  await page.emulateMedia({ colorScheme: "dark" });
  await sound(page);
  await page.setViewportSize({ width: 390, height: 844 });
  await sound(page);
  const [scroll, width] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(scroll <= width, `${fragment} is wider than a phone: ${scroll}`);
  await page.context().close();
}

test("the cluster: who has what, who borrows, and why jobs wait", () => look("#/cluster", async (page) => {
  assert.equal(await text(page, ".summary"),
    "All 80 GPUs are in use. Queues scavenge and vision have 28.44 more than they deserve; queues robotics and language lack 28.44 of what they deserve.");
  const label = await page.locator('.shares svg[role="img"]').first().getAttribute("aria-label");
  assert.equal(label, "vision, nvidia.com/gpu: has 40, deserves 26.67, asks for 40, is guaranteed 16, may have at most 48");
  await page.getByRole("link", { name: "language/pretrain-7b" }).first().click();
  await settled(page);
  assert.match(await text(page, ".verdict"), /^It waits outside queue language, because the cluster admits 16/);
  assert.match(page.url(), /#\/cluster\?job=language%2Fpretrain-7b$/);
}));

test("the order and the filter of queues are in the address", () => look("#/cluster?sort=has", async (page) => {
  const names = await page.locator(".shares .list .c-name a").allInnerTexts();
  assert.deepEqual(names, ["vision", "scavenge", "language", "robotics", "serving"]);
  await page.getByRole("link", { name: "CPU", exact: true }).click();
  await settled(page);
  assert.match(page.url(), /r=cpu&sort=has$/);
}));

test("a queue: its numbers and its jobs in order", () => look("#/queue/language", async (page) => {
  assert.equal(await text(page, "h1"), "language");
  assert.deepEqual(await page.locator(".job-row a").allInnerTexts(), ["language/pretrain-7b", "language/tokenize", "language/finetune-chat"]);
}));

test("waiting jobs, by cause", () => look("#/waiting", async (page) => {
  assert.equal(await text(page, "h1"), "4 jobs wait");
  await page.getByRole("link", { name: /no usable node has enough/ }).click();
  await page.waitForFunction(() => document.querySelectorAll(".waiting-row").length === 2);
  assert.deepEqual(await page.locator(".waiting-row a").allInnerTexts(), ["robotics/grasp-train", "robotics/grasp-eval"]);
  await page.getByRole("link", { name: "robotics/grasp-eval" }).click();
  await settled(page);
  assert.match(await text(page, ".verdict"), /^It waits for room: /);
}));

test("a job: the answer first, then the checks, its queue and its tasks", () => look("#/job/language%2Fpretrain-7b", async (page) => {
  assert.deepEqual(await page.locator(".check-name").allInnerTexts(), ["Admission", "Tasks", "Queue", "Share", "Nodes", "Eviction"]);
  assert.equal(await page.locator(".task-row").count(), 5);
}));

test("a job's plan: where its tasks go, and what must be evicted", () => look("#/job/robotics%2Fgrasp-train", async (page) => {
  await page.locator(".plan").waitFor();
  const plan = await text(page, ".plan");
  assert.match(plan, /^How it could be placed The 2 tasks that robotics\/grasp-train needs can be placed on 2 nodes if 2 running tasks of queue vision/);
}));

test("a waiting job: when it could start, if it is known when running jobs end", async (t) => {
  const known = await served(await ending(research, "2026-03-02T12:00:00Z", { "detector-train": "2026-03-03T01:01:00Z" }));
  t.after(known.end);
  const start = "It could start at 2026-03-03 01:01:00 UTC at the earliest if nothing else changes.";
  await look("#/job/robotics%2Fgrasp-train", async (page) => {
    await says(page, ".forecast", /./);
    const line = await text(page, ".forecast");
    assert.ok(line.startsWith(`${start} This depends on 1 end: vision/detector-train ends at 2026-03-03 01:01:00 UTC.`), line);
    assert.doesNotMatch(await text(page, ".verdict"), /could start/, "it is said once");
  }, known.address);
  await look("#/job/robotics%2Fgrasp-train", async (page) => {
    await page.locator(".verdict").waitFor();
    assert.equal(await page.locator(".forecast").count(), 0, "no end is known");
  });
});

test("the nodes: a map of devices, and what runs on one", () => look("#/nodes", async (page) => {
  assert.equal(await text(page, "h1"), "10 nodes with GPU: 80 GPUs");
  await page.getByRole("link", { name: /^gpu-a100-04:/ }).click();
  await page.locator("aside", { hasText: "vision/detector-train" }).waitFor();
  assert.match(await text(page, "aside"), /gpu-a100-04.*vision\/detector-train/);
  await page.getByRole("link", { name: "What fits" }).click();
  await page.getByRole("combobox", { name: "A task of" }).selectOption("robotics/grasp-eval");
  await settled(page);
  assert.match(await text(page, ".choice"), /fits on 0 of 16 nodes/);
}));

test("how a share comes about, by rounds", () => look("#/queue/language?round=2", async (page) => {
  assert.match(await text(page, "main"), /Round 2 divides 8 among queues whose weights sum to 9\./);
  await page.getByRole("link", { name: "Round 5" }).click();
  await says(page, "main", /No other round follows: the last round changed nothing\./);
}));

test("how a share comes about, by level and by division", async () => {
  await look("#/queue/language?policy=capacity", async (page) => {
    assert.match(await text(page, ".derivation"), /language 80 40 40 40 28 28$/);
  });
  await look("#/queue/language?policy=fair", async (page) => {
    assert.match(await text(page, ".division"), /^root divides 80: .* Level 53\/6 quanta .*language 3 16 40 26 the level/);
  });
});

test("the certificate, checked by the page", () => look("#/certificate?policy=fair", async (page) => {
  assert.match(await text(page, ".summary"), /^true This page has checked [\d,]+ numbers/);
}));

test("the certificate of a policy that has none", () => look("#/certificate", async (page) => {
  await page.getByRole("link", { name: /fair/ }).click();
  await settled(page);
  assert.match(await text(page, ".summary"), /^true/);
}));

test("what if a weight were another, nodes came, and a job were submitted", () => look("#/whatif?queue=language", async (page) => {
  assert.match(await text(page, ".summary"), /^No queue would deserve more or less; the same jobs would be blocked\.$/);
  await page.getByRole("spinbutton", { name: "Weight of language" }).fill("7");
  await page.getByText("was 3").waitFor();
  await says(page, ".summary", /^Language deserves [0-9.]+ more/);
  await page.getByRole("slider", { name: "More nodes like gpu-a100-01, slider" }).fill("4");
  await says(page, ".summary", /2 jobs would no longer be blocked/);
  await page.getByRole("button", { name: "Submit it" }).click();
  await page.locator(".verdict").waitFor();
  assert.match(await text(page, ".crumb"), /ml\/train/);
  // The address follows the field of a slider within a quarter of a second.
  await page.waitForFunction(() => location.hash.includes("train"));
  const address = page.url();
  await page.reload();
  await settled(page);
  await page.locator(".verdict").waitFor();
  assert.equal(page.url(), address);
  assert.equal(await page.getByRole("spinbutton", { name: "Weight of language" }).inputValue(), "7", "the address holds it all");
  await page.getByRole("button", { name: "Take back all" }).click();
  await says(page, ".summary", /^No queue/);
}));

test("what if jobs had ended", () => look(`#/whatif?edit=${encodeURIComponent('["job/scavenge/hyperopt.ended=true","job/scavenge/render-farm.ended=true"]')}`, async (page) => {
  await says(page, ".summary", /would no longer be blocked/);
  assert.match(await text(page, ".chips"), /scavenge\/hyperopt has ended/);
}));

test("a job that cannot be read says where it is wrong", () => look("#/whatif", async (page) => {
  await page.getByRole("textbox", { name: /A job/ }).fill("name: x\nqueue: nowhere");
  await page.getByRole("button", { name: "Submit it" }).click();
  assert.equal(await text(page, '[role="alert"]'), "queue: there is no queue nowhere");
}));

test("policies side by side", () => look("#/compare", async (page) => {
  await page.getByRole("combobox", { name: "Compare with" }).selectOption("fair");
  await settled(page);
  await says(page, ".summary", /^Language deserves 0\.67 less, vision 0\.33 more/);
}));

test("another policy is another answer at another address", () => look("#/cluster", async (page) => {
  await page.getByRole("combobox", { name: "Policy" }).selectOption("fair");
  await settled(page);
  assert.match(page.url(), /policy=fair/);
  assert.match(await text(page, ".summary"), /^All 80 GPUs are in use\./);
}));

test("what does not exist is said", async () => {
  for (const [fragment, want] of [["#/job/none", /no job of this name/], ["#/queue/none", /no queue of this name/], ["#/nowhere", /80 GPUs/]]) {
    const page = await visit(browser, program.address, fragment);
    await settled(page);
    assert.match(await text(page, "main"), want);
    await sound(page);
    await page.context().close();
  }
});

test("a server that has ended is said, and the page stays", async () => {
  const other = await serve("-f", research);
  const page = await visit(browser, other.address, "#/cluster", { faults: true });
  await settled(page);
  other.end();
  await page.getByRole("combobox", { name: "Policy" }).selectOption("fair");
  await page.getByRole("alert").first().waitFor();
  assert.match(await text(page, '[role="alert"]'), /The server cannot be reached/);
  await page.context().close();
});

test("what would help a job, tried by one click", async () => {
  const page = await visit(browser, program.address, "#/job/language%2Fpretrain-7b?policy=fair");
  await settled(page);
  await page.locator(".remedies li").first().waitFor();
  const patch = page.locator(".remedies code", { hasText: /^kubectl patch / }).first();
  await patch.waitFor();
  assert.match(await patch.textContent(), /^kubectl patch \S+ \S+ .*--type=merge '--patch=\{/);
  await sound(page);
  await page.getByRole("link", { name: /^Try it/ }).first().click();
  await settled(page);
  assert.ok((await page.locator(".chips li").count()) > 0);
  await sound(page);
  await page.context().close();
});
