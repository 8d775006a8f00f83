// The table of queues with their bars: a tree if the policy has one.
import { useMemo } from "preact/hooks";

import { go } from "../address.ts";
import { textOf } from "../core/amount.ts";
import { having } from "../core/route.ts";
import { arrange, numbers, sorts, type Numbers, type Row, type Sort } from "../core/shares.ts";
import { usePage } from "../page.tsx";
import { QueueBar } from "./bar.tsx";
import { List } from "./list.tsx";

export function State({ n, dimension }: { n: Numbers; dimension: string }) {
  if (n.borrowed > 0) {
    return <span class="pill warn">borrows {textOf(dimension, n.borrowed)}</span>;
  }
  if (n.short > 0) {
    return <span class="pill bad">short {textOf(dimension, n.short)}</span>;
  }
  return null;
}

const heads: readonly { readonly sort: Sort; readonly text: string; readonly class: string }[] = [
  { sort: "name", text: "Queue", class: "c-name" },
  { sort: "wants", text: "has · may have · wants", class: "c-bar" },
  { sort: "has", text: "has", class: "c-num" },
  { sort: "deserves", text: "deserves", class: "c-num" },
  { sort: "short", text: "short", class: "c-state" },
];

interface Props {
  readonly rows: readonly Row[];
  readonly href: (row: Row) => string;
  readonly selected?: string | undefined;
  // Number of waiting jobs of a queue, by its position.
  readonly waiting?: ReadonlyMap<number, number> | undefined;
  readonly sorting?: boolean;
}

export const sortOf = (query: Readonly<Record<string, string>>): Sort => sorts.find((s) => s === query["sort"]) ?? "tree";

const rowHeight = 36;

export function Shares({ rows, href, selected, waiting, sorting = true }: Props) {
  const { cluster, dimension, route } = usePage();
  const name = cluster.dimensions[dimension] ?? "";
  const sort = sortOf(route.query);
  const filter = route.query["q"] ?? "";
  const fold = route.query["fold"] ?? "";
  const folded = useMemo(() => new Set(fold === "" ? [] : fold.split("|")), [fold]);
  const shown = useMemo(() => arrange(rows, dimension, sort, filter, folded), [rows, dimension, sort, filter, folded]);
  const scale = useMemo(() => {
    const most = (row: Row): number => {
      const n = numbers(row.share, dimension);
      return Math.max(Number.isFinite(n.limit) ? n.limit : 0, n.allocated, Math.min(n.request, cluster.total(dimension)), n.deserved);
    };
    return shown.reduce((m, row) => Math.max(m, most(row)), 0);
  }, [shown, dimension, cluster]);
  const toggle = (row: Row): void => {
    const next = new Set(folded);
    if (!next.delete(row.name)) {
      next.add(row.name);
    }
    go(having(route, { fold: [...next].join("|") }), true);
  };
  return (
    <div class="shares" role="table" aria-label={`Queues and their ${name}`} aria-rowcount={shown.length + 1}>
      <div role="rowgroup">
        <div class="shares-row shares-head" role="row" aria-rowindex={1}>
          {heads.map((h) => (
            <span key={h.sort} class={h.class} role="columnheader" aria-sort={sort === h.sort ? "descending" : "none"}>
              {sorting ? (
                <a href={having(route, { sort: sort === h.sort ? "" : h.sort })} title={sort === h.sort ? "Back to the given order" : `Sort by ${h.text}`}>
                  {h.sort === "short" ? <span class="visually-hidden">lacks or borrows</span> : h.text}
                  {sort === h.sort && <span aria-hidden="true"> ↓</span>}
                </a>
              ) : h.sort === "short" ? <span class="visually-hidden">lacks or borrows</span> : h.text}
            </span>
          ))}
        </div>
      </div>
      <List
        label="Queues" role="rowgroup" count={shown.length} height={rowHeight} rowKey={(i) => String(shown[i]?.index)}
        first={selected === undefined ? undefined : shown.findIndex((row) => row.name === selected)}
        row={(i) => {
          const row = shown[i];
          if (row === undefined) {
            return null;
          }
          const n = numbers(row.share, dimension);
          const jobs = waiting?.get(row.index) ?? 0;
          const inner = row.children.length > 0 && filter === "";
          return (
            <div class={row.name === selected ? "shares-row selected" : "shares-row"} role="presentation">
              <span class="c-name" role="cell" style={{ paddingLeft: `${filter === "" ? Math.min(row.depth, 8) * 14 : 0}px` }}>
                {inner && (
                  <button
                    type="button" class="fold" aria-expanded={!folded.has(row.name)} aria-label={`Queues below ${row.name}`} onClick={() => toggle(row)}
                  >
                    {folded.has(row.name) ? "▸" : "▾"}
                  </button>
                )}
                {row.others === true ? <i title="You may see only their sums">{row.name}</i> : (
                  <a href={href(row)} aria-current={row.name === selected ? "true" : undefined} title={row.name}>{row.name}</a>
                )}
                {jobs > 0 && <small title={`${jobs} jobs wait`}> {jobs} {jobs === 1 ? "waits" : "wait"}</small>}
              </span>
              <span class="c-bar" role="cell"><QueueBar name={row.name} dimension={name} numbers={n} scale={scale} /></span>
              <span class="c-num" role="cell">{n.allocated === 0 ? "–" : textOf(name, n.allocated)}</span>
              <span class="c-num" role="cell">{n.deserved === 0 ? "–" : textOf(name, n.deserved)}</span>
              <span class="c-state" role="cell">{row.others !== true && <State n={n} dimension={name} />}</span>
            </div>
          );
        }}
      />
    </div>
  );
}
