// The table of queues with their bars: a tree if the policy has one.
import { useMemo } from "preact/hooks";

import { go } from "../address.ts";
import { textOf, unitFor, type Unit } from "../core/amount.ts";
import type { QueueStateJson } from "../core/contract.ts";
import { having } from "../core/route.ts";
import { plain } from "../core/say.ts";
import { arrange, numbers, sorts, type Numbers, type Row, type Sort } from "../core/shares.ts";
import { usePage } from "../page.tsx";
import { QueueBar } from "./bar.tsx";
import { List } from "./list.tsx";
import { Changed, Changes, useMarks } from "./marks.tsx";

// StatePill marks a queue that takes no jobs.
export function StatePill({ state }: { state: QueueStateJson | undefined }) {
  const word = { QUEUE_STATE_CLOSED: "closed", QUEUE_STATE_CLOSING: "closing", QUEUE_STATE_UNKNOWN: "not open" }[state as string];
  return word === undefined ? null : <span class="pill bad">{word}</span>;
}

export function State({ n, dimension, unit }: { n: Numbers; dimension: string; unit: Unit }) {
  if (n.borrowed > 0) {
    return <span class="pill warn">borrows {textOf(dimension, n.borrowed, unit)}</span>;
  }
  if (n.short > 0) {
    return <span class="pill bad">short {textOf(dimension, n.short, unit)}</span>;
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
  // Position of a queue among those in which jobs wait, the worst first.
  readonly worst?: ReadonlyMap<number, number> | undefined;
  readonly sorting?: boolean;
}

export const sortOf = (query: Readonly<Record<string, string>>): Sort => sorts.find((s) => s === query["sort"]) ?? "tree";

const rowHeight = 36;

// crowd is the number of queues above which one does not see all of them.
const crowd = 24;

// Order switches the order and the scale of the bars.
export function Order({ rows }: { rows: readonly Row[] }) {
  const { route } = usePage();
  if (rows.length <= crowd) {
    return null;
  }
  const { sort = "", scale = "" } = route.query;
  return (
    <>
      <select aria-label="Order" onChange={(event) => go(having(route, { sort: event.currentTarget.value }))}>
        <option value="" selected={sort === "" || sort === "wrong"}>What is wrong first</option>
        {words.map(([value, text]) => <option key={value} value={value} selected={sort === value}>{text}</option>)}
      </select>
      <select aria-label="Scale of the bars" onChange={(event) => go(having(route, { scale: event.currentTarget.value }))}>
        <option value="" selected={scale !== "own"}>One scale for all</option>
        <option value="own" selected={scale === "own"}>Each bar full at its most</option>
      </select>
    </>
  );
}

const words: readonly (readonly [Sort, string])[] = [
  ["tree", "As given"], ["name", "By name"], ["short", "By what they lack"], ["borrowed", "By what they borrow"], ["has", "By what they have"],
  ["wants", "By what they want"], ["order", "In queue order"],
];

export function Shares({ rows, href, selected, waiting, worst, sorting = true }: Props) {
  const { cluster, dimension, policy, route } = usePage();
  const name = cluster.dimensions[dimension] ?? "";
  // Of many queues those come first in which something is wrong.
  const sort = route.query["sort"] === undefined && sorting && worst !== undefined && rows.length > crowd ? "wrong" : sortOf(route.query);
  const own = route.query["scale"] === "own";
  const filter = route.query["q"] ?? "";
  const fold = route.query["fold"] ?? "";
  const folded = useMemo(() => new Set(fold === "" ? [] : fold.split("|")), [fold]);
  const shown = useMemo(() => arrange(rows, dimension, sort, filter, folded, worst), [rows, dimension, sort, filter, folded, worst]);
  const most = (row: Row): number => {
    const n = numbers(row.share, dimension);
    // Many queues may each hold the whole cluster: then that is no scale.
    const limit = Number.isFinite(n.limit) && (rows.length <= crowd || own) ? n.limit : 0;
    return Math.max(limit, n.allocated, Math.min(n.request, cluster.total(dimension)), n.deserved);
  };
  const scale = useMemo(() => {
    return shown.reduce((m, row) => Math.max(m, most(row)), 0);
  }, [shown, dimension, cluster, own]);
  // What a queue asks for, and may have, is much more than all have: it is no part of the columns.
  const unit = useMemo(() => unitFor(name, rows.flatMap((row) => {
    const n = numbers(row.share, dimension);
    return [n.allocated, n.deserved];
  })), [rows, dimension]);
  const said = useMemo(() => new Map(rows.map((row) => {
    const n = numbers(row.share, dimension);
    const state = row.index < 0 ? undefined : cluster.snapshot.queues?.[row.index]?.state;
    return [row.name, `has ${textOf(name, n.allocated, unit)}, deserves ${textOf(name, n.deserved, unit)}, ${plain(state ?? "QUEUE_STATE_OPEN", "QUEUE_STATE_")}`];
  })), [rows, dimension, unit]);
  const marks = useMarks(`${policy.name} ${name}`, said);
  const toggle = (row: Row): void => {
    const next = new Set(folded);
    if (!next.delete(row.name)) {
      next.add(row.name);
    }
    go(having(route, { fold: [...next].join("|") }), true);
  };
  return (
    <>
      <Changes marks={marks} />
      <div class="shares" role="table" aria-label={`Queues and their ${name}`} aria-rowcount={shown.length + 1}>
        <div role="rowgroup">
          <div class="shares-row shares-head" role="row" aria-rowindex={1}>
            {heads.map((h) => (
              <span key={h.sort} class={h.class} role="columnheader" aria-sort={sort === h.sort ? "descending" : "none"}>
                {sorting ? (
                  <a href={having(route, { sort: sort === h.sort ? "" : h.sort })} title={sort === h.sort ? "Back to the given order" : `Sort by ${h.text}`}>
                    {h.sort === "short" ? <><span aria-hidden="true">±</span><span class="visually-hidden">lacks or borrows</span></> : h.text}
                    {sort === h.sort && <span aria-hidden="true"> ↓</span>}
                  </a>
                ) : h.sort === "short" ? <span class="visually-hidden">lacks or borrows</span> : h.text}
              </span>
            ))}
          </div>
        </div>
        <List
          label="Queues" role="rowgroup" count={shown.length} height={rowHeight} rowKey={(i) => shown[i]?.name ?? ""}
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
                  {row.others === true ? <i title="You may see only their sums"><bdi>{row.name}</bdi></i> : (
                    <a href={href(row)} aria-current={row.name === selected ? "true" : undefined} title={row.name}><bdi>{row.name}</bdi></a>
                  )}
                  {" "}<Changed marks={marks} name={row.name} /><StatePill state={row.index < 0 ? undefined : cluster.snapshot.queues?.[row.index]?.state} />
                  {jobs > 0 && <small title={`${jobs} jobs wait`}> {jobs} {jobs === 1 ? "waits" : "wait"}</small>}
                </span>
                <span class="c-bar" role="cell"><QueueBar name={row.name} dimension={name} numbers={n} scale={own ? most(row) : scale} unit={unit} /></span>
                <span class="c-num" role="cell">{n.allocated === 0 ? "–" : textOf(name, n.allocated, unit)}</span>
                <span class="c-num" role="cell">{n.deserved === 0 ? "–" : textOf(name, n.deserved, unit)}</span>
                <span class="c-state" role="cell">{row.others !== true && <State n={n} dimension={name} unit={unit} />}</span>
              </div>
            );
          }}
        />
      </div>
    </>
  );
}
