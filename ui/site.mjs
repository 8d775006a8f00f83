// Builds the site: node site.mjs OUT LINKS. The Go part of it is built by tools/scripts/site.sh, which also makes the file LINKS: where the marks
// of documents lead.
import { execFileSync } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";

import { build } from "esbuild";

import { render } from "./documents.mjs";
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
const home = await build({ ...common, format: "iife", entryPoints: ["src/site/home.ts", "src/site/home.css"] });
await writeFile(path.join(out, "licenses.txt"), await licenses({ inputs: { ...page.metafile.inputs, ...worker.metafile.inputs, ...home.metafile.inputs } }));
for (const name of ["site/play.html", "icon.svg"]) {
  await writeFile(path.join(out, path.basename(name)), await readFile(path.join(root, "src", name)));
}
console.log(`${await render(out, JSON.parse(await readFile(process.argv[3], "utf8")))} documents`);
