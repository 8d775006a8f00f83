// Builds the page into dist, which is checked in: node build.mjs [--out DIR].
import { readFile, writeFile, mkdir, rm } from "node:fs/promises";
import { gzipSync } from "node:zlib";
import path from "node:path";

import { build } from "esbuild";

import { licenses } from "./licenses.mjs";

const root = import.meta.dirname;
const out = path.resolve(process.argv[2] === "--out" ? process.argv[3] : path.join(root, "dist"));
// Bytes of everything, compressed.
const most = 120 * 1024;

await rm(out, { recursive: true, force: true });
await mkdir(out, { recursive: true });
const result = await build({
  absWorkingDir: root,
  entryPoints: ["src/main.tsx", "src/style.css"],
  entryNames: "[name]",
  outdir: out,
  bundle: true,
  minify: true,
  format: "esm",
  target: ["es2022", "chrome111", "firefox113", "safari16.4"],
  charset: "utf8",
  legalComments: "none",
  metafile: true,
  jsx: "automatic",
  jsxImportSource: "preact",
});

await writeFile(path.join(out, "licenses.txt"), await licenses(result.metafile));
await writeFile(path.join(out, "index.html"), await readFile(path.join(root, "src/index.html")));
await writeFile(path.join(out, "icon.svg"), await readFile(path.join(root, "src/icon.svg")));

let size = 0;
for (const name of ["index.html", "main.js", "style.css", "icon.svg"]) {
  size += gzipSync(await readFile(path.join(out, name))).length;
}
console.log(`${size} bytes compressed, at most ${most}`);
if (size > most) {
  process.exit(1);
}
