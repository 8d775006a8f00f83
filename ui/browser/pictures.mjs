// Takes the pictures that README and docs show, into docs/page.
import { mkdir } from "node:fs/promises";
import path from "node:path";

import { ending, launch, research, root, serve, served, settled, visit } from "./harness.mjs";

const folder = path.join(root, "docs/page");
const pictures = [
  { name: "cluster", fragment: "#/cluster?job=language%2Fpretrain-7b", height: 850 },
  { name: "dark", fragment: "#/cluster?queue=language", height: 800, colorScheme: "dark" },
  {
    name: "whatif", height: 900,
    fragment: `#/whatif?queue=language&edit=${encodeURIComponent('["queue/language.weight=7","node/gpu-a100-01.copies=4"]')}`,
  },
  { name: "job", fragment: "#/job/robotics%2Fgrasp-train", height: 1000, from: "ending" },
  { name: "nodes", fragment: "#/nodes/gpu-a100-04?by=queue", height: 460 },
];

await mkdir(folder, { recursive: true });
const browser = await launch();
const snapshot = await ending(research, "2026-03-02T12:00:00Z", { "detector-train": "2026-03-03T01:01:00Z" });
const programs = { research: await serve("-f", research), ending: await served(snapshot) };
for (const { name, fragment, width = 1360, height, colorScheme = "light", from = "research" } of pictures) {
  const page = await visit(browser, programs[from].address, fragment, { viewport: { width, height }, colorScheme });
  await settled(page);
  await page.screenshot({ path: path.join(folder, `${name}.png`) });
  await page.context().close();
}
await browser.close();
for (const program of Object.values(programs)) {
  program.end();
}
