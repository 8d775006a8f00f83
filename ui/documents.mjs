// Renders the documents of the project as pages of the site: render(OUT, LINKS). LINKS says by document and line where the marks below
// transcripts lead in the page. A link that leads nowhere ends the build.
import { readFile, mkdir, writeFile, copyFile, stat } from "node:fs/promises";
import path from "node:path";

import MarkdownIt from "markdown-it";

const root = path.resolve(import.meta.dirname, "..");

// The documents in the order in which the navigation lists them.
const chapters = [
  ["Begin", ["docs/quickstart.md", "docs/cli.md", "docs/kubectl.md", "docs/page.md", "docs/site.md", "docs/agents.md"]],
  ["Understand", ["docs/semantics.md", "docs/reservations.md", "docs/backfill.md", "docs/fair.md", "docs/proof.md", "docs/forecast.md", "docs/kueue.md", "docs/volcano.md"]],
  ["Change", ["docs/testing.md", "docs/rehearse.md", "docs/ledger.md"]],
  ["Integrate", ["docs/adding-to-a-scheduler.md", "docs/kube-scheduler.md", "docs/kueue-admission.md", "docs/clients.md", "docs/contract.md", "docs/api/apportion.v1.md", "docs/api/apportion.v1alpha1.md"]],
  ["Operate", [
    "docs/operations.md", "docs/configuration.md", "docs/following.md", "docs/metrics.md", "docs/upgrading.md", "docs/threat-model.md", "SECURITY.md", "deploy/chart/README.md",
  ]],
  ["Project", ["README.md", "docs/performance.md", "docs/load-testing.md", "docs/decisions.md", "CONTRIBUTING.md", "CHANGELOG.md"]],
];

const escaped = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;");

// page is the path of a document's page in the site.
const page = (file) => `docs/${file.replace(/^docs\//, "").replace(/\.md$/, "").toLowerCase()}.html`;

// slug is the anchor of a heading as code hosts form it.
const slug = (title) => title.trim().toLowerCase().replace(/[^\p{L}\p{N}_ -]/gu, "").replace(/ /g, "-");

const plain = (token) => (token.children ?? []).filter((t) => t.type === "text" || t.type === "code_inline" || t.type === "softbreak").map((t) => t.content || " ").join("");

// marks are links to the page below a transcript.
const mark = "Open this in the page";

class Site {
  #out;
  #links;
  #documents = new Map();
  #wanted = [];
  #assets = new Set();

  constructor(out, links) {
    this.#out = out;
    this.#links = links;
  }

  // read parses a document and those that it leads to.
  async read(file) {
    if (this.#documents.has(file)) {
      return;
    }
    const document = { file, tokens: [], anchors: new Set(), title: "", sections: [] };
    this.#documents.set(file, document);
    const markdown = new MarkdownIt({ html: true });
    document.tokens = markdown.parse(await readFile(path.join(root, file), "utf8"), {});
    this.#headings(document);
    await this.#resolve(document);
  }

  // headings gives each heading its anchor, and collects the sections for the search.
  #headings(document) {
    let section = { heading: "", anchor: "", text: [] };
    const counts = new Map();
    document.sections.push(section);
    document.tokens.forEach((token, i) => {
      if (token.type === "heading_open") {
        const title = plain(document.tokens[i + 1]);
        const base = slug(title);
        const n = counts.get(base) ?? 0;
        counts.set(base, n + 1);
        const anchor = n === 0 ? base : `${base}-${n}`;
        token.attrSet("id", anchor);
        document.anchors.add(anchor);
        document.title ||= title;
        section = { heading: title, anchor, level: Number(token.tag.slice(1)), text: [] };
        document.sections.push(section);
      } else if (token.type === "inline" && document.tokens[i - 1]?.type !== "heading_open") {
        section.text.push(plain(token));
      } else if (token.type === "fence" || token.type === "code_block") {
        section.text.push(token.content);
      }
      for (const html of [token, ...(token.children ?? [])].filter((t) => t.type.startsWith("html_"))) {
        for (const [, id] of html.content.matchAll(/(?:name|id)="([^"]+)"/g)) {
          document.anchors.add(id);
        }
      }
    });
  }

  // resolve makes links lead to pages of the site. What is no document and no picture stands in the source alone, and is named, not linked.
  async #resolve(document) {
    const up = "../".repeat(page(document.file).split("/").length - 1);
    for (const token of document.tokens) {
      const open = [];
      for (const child of token.children ?? []) {
        if (child.type === "image") {
          const file = this.#below(document.file, child.attrGet("src"));
          await this.#asset(file);
          child.attrSet("src", up + file);
        } else if (child.type === "link_open") {
          open.push(child);
          await this.#link(document, token, child, up);
        } else if (child.type === "link_close") {
          child.tag = open.pop().tag;
        }
      }
    }
  }

  #below(file, target) {
    return path.normalize(path.join(path.dirname(file), decodeURIComponent(target)));
  }

  async #link(document, token, link, up) {
    const href = link.attrGet("href");
    if (/^[a-z]+:/.test(href)) {
      link.attrSet("rel", "noreferrer");
      return;
    }
    const after = token.children[token.children.indexOf(link) + 1];
    if (after?.content === mark) {
      const line = token.map[0] + 1;
      const fragment = this.#links[document.file]?.[line];
      if (fragment === undefined) {
        throw new Error(`${document.file}:${line}: the link to the page has no question`);
      }
      link.attrSet("href", `${up}play.html${fragment}`);
      link.attrSet("class", "play");
      return;
    }
    const [target, anchor = ""] = href.split("#");
    let file = target === "" ? document.file : this.#below(document.file, target);
    const about = await stat(path.join(root, file)).catch(() => undefined);
    if (about === undefined) {
      throw new Error(`${document.file}: ${href} leads nowhere`);
    }
    if (about.isDirectory() && await stat(path.join(root, file, "README.md")).catch(() => undefined)) {
      file = path.join(file, "README.md");
    }
    if (file.endsWith(".md")) {
      await this.read(file);
      this.#wanted.push([document.file, file, anchor]);
      const to = path.relative(path.dirname(page(document.file)), page(file));
      link.attrSet("href", (file === document.file && anchor !== "" ? "" : to) + (anchor === "" ? "" : `#${anchor}`));
    } else if (/\.(png|svg|json)$/.test(file) && about.size < 1 << 20) {
      await this.#asset(file);
      link.attrSet("href", up + file);
    } else {
      link.tag = "span";
      link.attrs = [["class", "source"], ["title", `${file}, in the source`]];
    }
  }

  async #asset(file) {
    if (!this.#assets.has(file)) {
      this.#assets.add(file);
      const to = path.join(this.#out, file);
      await mkdir(path.dirname(to), { recursive: true });
      await copyFile(path.join(root, file), to);
    }
  }

  // write writes the pages and what the search reads.
  async write() {
    for (const [from, file, anchor] of this.#wanted) {
      if (anchor !== "" && !this.#documents.get(file).anchors.has(anchor)) {
        throw new Error(`${from}: ${file} has no section ${anchor}`);
      }
    }
    const found = [];
    for (const document of this.#documents.values()) {
      const to = path.join(this.#out, page(document.file));
      await mkdir(path.dirname(to), { recursive: true });
      await writeFile(to, this.#page(document));
      for (const { heading, anchor, text } of document.sections) {
        if (heading !== "" || text.length > 0) {
          found.push({ page: page(document.file), document: document.title, heading, anchor, text: text.join(" ").replace(/\s+/g, " ") });
        }
      }
    }
    await writeFile(path.join(this.#out, "docs/search.json"), JSON.stringify(found));
    const first = page(chapters[0][1][0]);
    const home = await readFile(path.join(root, "ui/src/site/index.html"), "utf8");
    for (const [, file] of home.matchAll(/src="(docs\/[^"]*)"/g)) {
      await this.#asset(file);
    }
    await writeFile(path.join(this.#out, "index.html"), home.replace("<!-- bar -->", () => this.#bar("", "home")).replaceAll("DOCUMENTS", first)
      .replace("<!-- chapters -->", () => this.#chapters(undefined, "")));
    return this.#documents.size;
  }

  #bar(up, current) {
    const place = (name, href, title) => `<a href="${up}${href}"${name === current ? ' aria-current="page"' : ""}>${title}</a>`;
    return `<a class="skip" href="#content">Skip to the text</a>
<header class="bar">
<a class="brand" href="${up}index.html"><img src="${up}icon.svg" alt="" width="20" height="20"> Apportion</a>
<nav aria-label="Site">${place("documents", page(chapters[0][1][0]), "Documents")}${place("play", "play.html#/cluster?from=sample%3Aresearch", "Playground")}</nav>
<search><input type="search" id="search" placeholder="Search the documents" aria-label="Search the documents" autocomplete="off" spellcheck="false" data-up="${up}">
<div id="found" role="region" aria-label="Search results" aria-live="polite" hidden></div></search>
<button type="button" id="scheme" hidden></button>
</header>`;
  }

  // chapters lists all documents, and the sections of the current one.
  #chapters(current, up) {
    return chapters.map(([title, files]) => {
      const list = files.map((file) => {
        const document = this.#documents.get(file);
        const mine = file === current?.file;
        const within = mine ? document.sections.filter((s) => s.level === 2) : [];
        const inner = within.length === 0 ? "" : `<ul>${within.map((s) => `<li><a href="#${escaped(s.anchor)}">${escaped(s.heading)}</a></li>`).join("")}</ul>`;
        return `<li><a href="${up}${page(file)}"${mine ? ' aria-current="page"' : ""}>${escaped(document.title)}</a>${inner}</li>`;
      });
      return `<section><h2>${title}</h2><ul>${list.join("")}</ul></section>`;
    }).join("\n");
  }

  #page(document) {
    const up = "../".repeat(page(document.file).split("/").length - 1);
    const markdown = new MarkdownIt({ html: true });
    const { rules } = markdown.renderer;
    rules.table_open = () => '<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>\n';
    rules.table_close = () => "</table></div>\n";
    // The pages' policy of content allows no styles in attributes.
    rules.th_close = (tokens, i) => `</${tokens[i - 1].content === "" ? "td" : "th"}>`;
    rules.th_open = rules.td_open = (tokens, i) => `<${tokens[i].tag === "th" && tokens[i + 1].content === "" ? "td" : tokens[i].tag}${/right/.test(tokens[i].attrGet("style") ?? "") ? ' class="right"' : ""}>`;
    rules.fence = rules.code_block = (tokens, i) => `<pre tabindex="0"><code>${escaped(tokens[i].content)}</code></pre>\n`;
    rules.html_block = rules.html_inline = (tokens, i) => tokens[i].content.replace(/<!--[\s\S]*?-->/g, "");
    rules.heading_close = (tokens, i) => {
      const id = tokens[i - 2].attrGet("id");
      return tokens[i].tag === "h1" ? "</h1>\n" : ` <a class="anchor" href="#${escaped(id)}" aria-label="Link to ${escaped(plain(tokens[i - 1]))}">#</a></${tokens[i].tag}>\n`;
    };
    const body = markdown.renderer.render(document.tokens, markdown.options, {});
    return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escaped(document.title)} · Apportion</title>
<link rel="icon" href="${up}icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="${up}home.css">
<script src="${up}home.js"></script>
</head>
<body>
${this.#bar(up, "documents")}
<div class="document">
<nav class="chapters" aria-label="Documents"><details><summary>All documents</summary>
${this.#chapters(document, up)}
</details></nav>
<main id="content" tabindex="-1">
${body}</main>
</div>
</body>
</html>
`;
  }
}

// render writes the documents and the home page into a folder, and returns how many documents there are.
export async function render(out, links) {
  const site = new Site(out, links);
  for (const file of chapters.flatMap(([, files]) => files)) {
    await site.read(file);
  }
  return site.write();
}
