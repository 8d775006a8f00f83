// Addresses of views. Every view has one, in the fragment: #/job/ml%2Ftrain?policy=fair.

export const views = ["cluster", "queue", "waiting", "job", "nodes", "whatif", "compare", "certificate", "usage", "rehearse", "open"] as const;

export type View = (typeof views)[number];

export interface Route {
  readonly view: View;
  // The queue of view queue, the job of view job, the queue of view certificate.
  readonly name: string;
  readonly query: Readonly<Record<string, string>>;
}

export const start: Route = { view: "cluster", name: "", query: {} };

// Parts of the query that links to other views copy.
const lasting = ["policy", "r", "from"];

// parse reads a fragment. An invalid one is the address of the first view.
export function parse(fragment: string): Route {
  const [path = "", search = ""] = split(fragment.replace(/^#\/?/, ""), "?");
  const [view = "", name = ""] = split(path, "/");
  const known = views.find((v) => v === view);
  if (known === undefined) {
    return start;
  }
  const query: Record<string, string> = {};
  for (const [key, value] of new URLSearchParams(search)) {
    query[key] = value;
  }
  return { view: known, name: decoded(name), query };
}

function split(text: string, at: string): [string, string] {
  const i = text.indexOf(at);
  return i < 0 ? [text, ""] : [text.slice(0, i), text.slice(i + at.length)];
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// format is the inverse of parse.
export function format(route: Route): string {
  const search = new URLSearchParams();
  for (const key of Object.keys(route.query).sort()) {
    const value = route.query[key];
    if (value !== undefined && value !== "") {
      search.set(key, value);
    }
  }
  const name = route.name === "" ? "" : `/${encodeURIComponent(route.name)}`;
  const text = search.toString();
  return `#/${route.view}${name}${text === "" ? "" : `?${text}`}`;
}

// to returns the address of another view with the same policy and resource.
export function to(from: Route, view: View, name = "", query: Record<string, string> = {}): string {
  const kept: Record<string, string> = {};
  for (const key of lasting) {
    const value = from.query[key];
    if (value !== undefined) {
      kept[key] = value;
    }
  }
  return format({ view, name, query: { ...kept, ...query } });
}

// having returns the address of the same view with changed parts of the query; empty parts are removed.
export const having = (from: Route, query: Record<string, string>): string => format({ ...from, query: { ...from.query, ...query } });
