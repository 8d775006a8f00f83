// Runs the unit tests: node test.mjs [NAME...]. They are TypeScript, so they are built first.
import { spawnSync } from "node:child_process";
import { readdir } from "node:fs/promises";
import path from "node:path";

import { build } from "esbuild";

const root = import.meta.dirname;
const names = (await readdir(path.join(root, "test"))).filter((name) => name.endsWith(".test.ts"));
const outdir = path.join(root, "out");
await build({
  absWorkingDir: root, entryPoints: names.map((name) => `test/${name}`), outdir, bundle: true, format: "esm", platform: "node", sourcemap: "inline",
  outExtension: { ".js": ".mjs" }, jsx: "automatic", jsxImportSource: "preact",
});
const wanted = names.map((name) => path.join(outdir, name.replace(/\.ts$/, ".mjs")));
process.exit(spawnSync(process.execPath, ["--enable-source-maps", "--test", ...wanted], { stdio: "inherit" }).status ?? 1);
