// What the home page and the documents of the site do: colours, search, and addresses of the page from when it was the home page.
import MiniSearch from "minisearch";

import { after, apply, kept, label, sign } from "../core/scheme.ts";

interface Section {
  readonly page: string;
  readonly document: string;
  readonly heading: string;
  readonly anchor: string;
  readonly text: string;
}

// colours lets a button change between the colours of the system, light and dark. The page uses the same choice.
function colours(): void {
  const button = document.getElementById("scheme");
  if (button === null) {
    return;
  }
  let scheme = kept();
  const show = (): void => {
    button.textContent = sign(scheme);
    button.setAttribute("aria-label", label(scheme));
  };
  button.hidden = false;
  button.addEventListener("click", () => {
    scheme = after(scheme);
    apply(scheme);
    show();
  });
  show();
}

const most = 12;
const around = 70;

let index: Promise<MiniSearch<Section>> | undefined;

// indexed reads the sections of all documents when a person first searches.
async function indexed(up: string): Promise<MiniSearch<Section>> {
  const sections = (await (await fetch(`${up}docs/search.json`)).json()) as Section[];
  const all = new MiniSearch<Section>({
    fields: ["heading", "document", "text"], storeFields: ["page", "document", "heading", "anchor", "text"],
    searchOptions: { boost: { heading: 4, document: 2 }, prefix: true, combineWith: "AND", fuzzy: (term) => (term.length > 4 ? 0.15 : false) },
  });
  all.addAll(sections.map((section, id) => ({ id, ...section })));
  return all;
}

// excerpt is the text around the first of the words that were found.
function excerpt(text: string, terms: readonly string[]): string {
  const lower = text.toLowerCase();
  const at = Math.max(0, Math.min(...terms.map((t) => lower.indexOf(t)).filter((i) => i >= 0), text.length));
  const from = at === text.length ? 0 : Math.max(0, at - around);
  return `${from > 0 ? "…" : ""}${text.slice(from, from + 2 * around)}${from + 2 * around < text.length ? "…" : ""}`;
}

function search(): void {
  const field = document.getElementById("search");
  const found = document.getElementById("found");
  if (!(field instanceof HTMLInputElement) || found === null) {
    return;
  }
  const up = field.dataset["up"] ?? "";
  const close = (): void => {
    found.hidden = true;
  };
  const show = async (): Promise<void> => {
    const words = field.value.trim();
    if (words === "") {
      close();
      return;
    }
    found.hidden = false;
    try {
      const results = (await (index ??= indexed(up))).search(words).slice(0, most);
      if (field.value.trim() !== words) {
        return;
      }
      found.replaceChildren(...(results.length === 0 ? [said("Nothing was found.")] : results.map((r) => entry(up, r as unknown as Section, r.terms))));
    } catch {
      index = undefined;
      found.replaceChildren(said("The search cannot be read from this site."));
    }
  };
  field.addEventListener("input", () => void show());
  field.addEventListener("focus", () => void show());
  addEventListener("keydown", (event) => {
    if (event.key === "/" && !(document.activeElement instanceof HTMLInputElement || document.activeElement instanceof HTMLTextAreaElement)) {
      event.preventDefault();
      field.focus();
      field.select();
    } else if (event.key === "Escape" && !found.hidden) {
      // The focus shows what was found.
      field.focus();
      close();
    } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && !found.hidden && (document.activeElement === field || found.contains(document.activeElement))) {
      event.preventDefault();
      const all = [field, ...found.querySelectorAll("a")];
      const now = all.findIndex((e) => e === document.activeElement);
      all[Math.min(Math.max(0, now + (event.key === "ArrowDown" ? 1 : -1)), all.length - 1)]?.focus();
    } else if (event.key === "Enter" && document.activeElement === field) {
      found.querySelector("a")?.click();
    }
  });
  addEventListener("click", (event) => {
    if (event.target instanceof Node && !found.contains(event.target) && event.target !== field) {
      close();
    }
  });
}

function said(text: string): HTMLElement {
  const p = document.createElement("p");
  p.textContent = text;
  return p;
}

function entry(up: string, section: Section, terms: readonly string[]): HTMLElement {
  const link = document.createElement("a");
  link.href = `${up}${section.page}${section.anchor === "" ? "" : `#${section.anchor}`}`;
  const title = document.createElement("b");
  title.textContent = section.heading === "" || section.heading === section.document ? section.document : `${section.document}: ${section.heading}`;
  const text = document.createElement("small");
  text.textContent = excerpt(section.text, terms);
  link.append(title, text);
  return link;
}

document.documentElement.dataset["scheme"] = kept();
if (location.hash.startsWith("#/")) {
  location.replace(`play.html${location.hash}`);
}
addEventListener("DOMContentLoaded", () => {
  colours();
  search();
  const chapters = document.querySelector<HTMLDetailsElement>(".chapters details");
  if (chapters !== null) {
    chapters.open = matchMedia("(min-width: 900px)").matches;
  }
});
