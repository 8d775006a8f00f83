// Takes the pictures that README and docs show, into docs/page.
import { mkdir } from "node:fs/promises";
import path from "node:path";

import { launch, research, root, serve, settled, visit } from "./harness.mjs";

const folder = path.join(root, "docs/page");
const pictures = [
  { name: "cluster", fragment: "#/cluster?job=language%2Fpretrain-7b", height: 850 },
  { name: "dark", fragment: "#/cluster?queue=language", height: 800, colorScheme: "dark" },
  {
    name: "whatif", height: 900,
    fragment: `#/whatif?queue=language&edit=${encodeURIComponent('[["weight","language",7],["add","gpu-a100-01",4]]')}`,
  },
  { name: "job", fragment: "#/job/robotics%2Fgrasp-train", height: 700 },
  { name: "nodes", fragment: "#/nodes/gpu-a100-04?by=queue", height: 460 },
];

await mkdir(folder, { recursive: true });
const browser = await launch();
const program = await serve("-f", research);
for (const { name, fragment, width = 1360, height, colorScheme = "light" } of pictures) {
  const page = await visit(browser, program.address, fragment, { viewport: { width, height }, colorScheme });
  await settled(page);
  await page.screenshot({ path: path.join(folder, `${name}.png`) });
  await page.context().close();
}
await browser.close();
program.end();
