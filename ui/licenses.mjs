// The licences of the packages of which something is in a bundle.
import { readdir, readFile } from "node:fs/promises";
import path from "node:path";

// licenses returns them as a text, of a bundle that esbuild describes.
export async function licenses(metafile) {
  const packages = new Set();
  for (const input of Object.keys(metafile.inputs)) {
    const name = /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input)?.[1];
    if (name !== undefined) {
      packages.add(name);
    }
  }
  const texts = [];
  for (const name of [...packages].sort()) {
    const folder = path.join(import.meta.dirname, "node_modules", name);
    const { version, license } = JSON.parse(await readFile(path.join(folder, "package.json"), "utf8"));
    const file = (await readdir(folder)).find((entry) => /^LICEN[CS]E(\.|$)/.test(entry));
    const text = file === undefined ? await said(metafile, name) : await readFile(path.join(folder, file), "utf8");
    texts.push(`${name} ${version} (${license})\n\n${text.trim()}\n`);
  }
  return `The page holds parts of these packages.\n\n${texts.join(`\n${"-".repeat(80)}\n\n`)}`;
}

// said is the licence of a package without a file of it: Apache-2.0, which is the project's own, and what the heads of its files say.
async function said(metafile, name) {
  const texts = [await readFile(path.join(import.meta.dirname, "../LICENSE"), "utf8")];
  for (const input of Object.keys(metafile.inputs).filter((input) => input.includes(`node_modules/${name}/`)).sort()) {
    const head = /^(?:\/\/.*\n)+/.exec(await readFile(path.join(import.meta.dirname, input), "utf8"))?.[0] ?? "";
    if (head.includes("Redistribution")) {
      texts.push(head.replaceAll(/^\/\/ ?/gm, ""));
    }
  }
  return texts.map((text) => text.trim()).join("\n\n");
}
