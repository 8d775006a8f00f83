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
    const file = (await readdir(folder)).find((entry) => /^LICEN[CS]E(\.|$)/.test(entry)) ?? "LICENSE";
    const text = await readFile(path.join(folder, file), "utf8");
    texts.push(`${name} ${version} (${license})\n\n${text.trim()}\n`);
  }
  return `The page holds parts of these packages.\n\n${texts.join(`\n${"-".repeat(80)}\n\n`)}`;
}
