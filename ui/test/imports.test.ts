import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { test } from "node:test";

// imports are the modules of the page with those that each imports.
async function imports(root: string): Promise<Map<string, string[]>> {
  const graph = new Map<string, string[]>();
  for (const name of await readdir(root, { recursive: true })) {
    if (/\.tsx?$/.test(name)) {
      const text = await readFile(path.join(root, name), "utf8");
      const found = text.matchAll(/^(?:import|export|\}) .*?"(\.[^"]+)"/gm);
      graph.set(name, [...found].map((m) => path.join(path.dirname(name), m[1] ?? "")));
    }
  }
  return graph;
}

test("no module of the page imports itself through others, and core imports neither parts nor views", async () => {
  const graph = await imports(path.join(import.meta.dirname, "..", "src"));
  for (const [name, imported] of [["main.tsx", "app.tsx"], ["app.tsx", "page.tsx"], ["site/main.tsx", "app.tsx"]] as const) {
    assert.ok((graph.get(name) ?? []).includes(imported), `imports are found: ${name}`);
  }
  const done = new Set<string>();
  const visit = (name: string, above: readonly string[]): void => {
    assert.ok(!above.includes(name), `a circle: ${[...above, name].join(" -> ")}`);
    if (!done.has(name)) {
      (graph.get(name) ?? []).forEach((next) => visit(next, [...above, name]));
      done.add(name);
    }
  };
  for (const [name, list] of graph) {
    visit(name, []);
    if (name.startsWith("core/")) {
      assert.deepEqual(list.filter((n) => /^(parts|views)\//.test(n)), [], name);
    }
  }
});
