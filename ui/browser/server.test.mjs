// The page of a server: nothing is shown before the reader opens a file, and nothing is answered without a token.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { converted, launch, research, says, settled, sound, standing, text, visit } from "./harness.mjs";

const token = "a-secret-of-thirty-two-characters";
let browser, program, file;
before(async () => {
  [browser, program, file] = await Promise.all([launch(), standing(token), converted(research)]);
});
after(async () => {
  await browser?.close();
  program?.end();
});

test("a file is opened, and answered with the token alone", async () => {
  // Without a token the server lists no clusters, which the browser notes.
  const page = await visit(browser, program.address, "#/cluster", { faults: true });
  await settled(page);
  assert.equal(await text(page, "h1"), "Open a cluster");
  await sound(page);
  await page.getByLabel(/^Token/).fill(token);
  await page.getByLabel(/^Name of a policy of this server/).fill("cluster");
  await page.locator('input[type="file"]').setInputFiles(file);
  await settled(page);
  assert.match(await text(page, ".summary"), /^All 80 GPUs are in use\./);
  assert.equal(await page.getByRole("combobox", { name: "Policy" }).evaluate((s) => s.selectedOptions[0].textContent), "cluster (of the server)");
  await page.getByRole("link", { name: "What if" }).click();
  await page.getByRole("spinbutton", { name: /^deserved of vision/ }).fill("40");
  await says(page, ".summary", /^Vision deserves 8 more/);
  await sound(page);
  await page.context().close();
});

test("without a token the server says so, and shows nothing", async () => {
  const page = await visit(browser, program.address, "#/cluster", { faults: true });
  await settled(page);
  await page.locator('input[type="file"]').setInputFiles(file);
  await page.getByRole("alert").first().waitFor();
  assert.match(await text(page, '[role="alert"]'), /^There is no answer\./);
  await page.context().close();
});

test("what is no snapshot is said", async () => {
  const page = await visit(browser, program.address, "", { faults: true });
  await settled(page);
  await page.locator('input[type="file"]').setInputFiles({ name: "x.json", mimeType: "application/json", buffer: Buffer.from('{"kind":"List"}') });
  assert.match(await text(page, '[role="alert"]'), /x\.json is not a snapshot\. Write it with: apportion convert/);
  await sound(page);
  await page.context().close();
});
