// Builds the page without a server: node site.mjs OUT. The Go part of the site is built by scripts/site.sh.
import { execFileSync } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";

import { build } from "esbuild";

import { licenses } from "./licenses.mjs";

const root = import.meta.dirname;
const out = path.resolve(process.argv[2]);
const go = execFileSync("go", ["env", "GOROOT"], { encoding: "utf8" }).trim();
const common = {
  absWorkingDir: root, bundle: true, minify: true, target: ["es2022", "chrome111", "firefox113", "safari16.4"], charset: "utf8", legalComments: "none",
  metafile: true, jsx: "automatic", jsxImportSource: "preact", outdir: out, entryNames: "[name]",
};
const page = await build({ ...common, format: "esm", entryPoints: ["src/site/main.tsx", "src/style.css"] });
const worker = await build({
  ...common, format: "iife", entryPoints: ["src/site/worker.ts"], alias: { "go-wasm-exec": path.join(go, "lib/wasm/wasm_exec.js") },
});
await writeFile(path.join(out, "licenses.txt"), await licenses({ inputs: { ...page.metafile.inputs, ...worker.metafile.inputs } }));
for (const name of ["site/index.html", "icon.svg"]) {
  await writeFile(path.join(out, path.basename(name)), await readFile(path.join(root, "src", name)));
}
