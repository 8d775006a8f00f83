// Before and after, or one policy and another, side by side.
import { useMemo } from "preact/hooks";

import { textOf, unitFor } from "../core/amount.ts";
import type { Cluster } from "../core/cluster.ts";
import type { ExplainAnswerJson, SharesAnswerJson } from "../core/contract.ts";
import { to } from "../core/route.ts";
import { fares, say } from "../core/say.ts";
import { rows } from "../core/shares.ts";
import { better, pairs, saidChange, turns, worse } from "../core/sides.ts";
import { usePage } from "../page.tsx";
import { QueueBar } from "./bar.tsx";
import { List } from "./list.tsx";
import { Sentence } from "./sentence.tsx";

export interface Side {
  readonly label: string;
  readonly cluster: Cluster;
  readonly shares: SharesAnswerJson | undefined;
  readonly waiting: ExplainAnswerJson | undefined;
}

const pairHeight = 66;
const turnHeight = 52;

export function Sides({ before, after, busy }: { before: Side; after: Side; busy: boolean }) {
  const { dimension, route } = usePage();
  const name = after.cluster.dimensions[dimension] ?? "";
  const was = useMemo(() => rows(before.cluster, before.shares), [before.cluster, before.shares]);
  const is = useMemo(() => rows(after.cluster, after.shares), [after.cluster, after.shares]);
  const all = useMemo(() => pairs(was, is, dimension), [was, is, dimension]);
  const known = before.waiting !== undefined && after.waiting !== undefined;
  const moved = useMemo(() => (known ? turns(before.waiting, after.waiting) : []), [known, before.waiting, after.waiting]);
  const scale = useMemo(() => {
    const of = (n: (typeof all)[number]["before"]): number => (n === undefined ? 0 : Math.max(Number.isFinite(n.limit) ? n.limit : 0, n.allocated, n.deserved));
    return all.reduce((m, p) => Math.max(m, of(p.before), of(p.after)), 0);
  }, [all]);
  const unit = useMemo(() => unitFor(name, all.flatMap((p) => [p.before?.deserved, p.after?.deserved, p.change])), [all, name]);
  // The parts of the address that links copy.
  const address = to(route, "queue");
  // The rows are drawn again when they change, not at each step of a slider.
  const shown = useMemo(() => (
    <>
      <p class="summary" role="status"><Sentence text={saidChange(all, name, moved)} /></p>
      <div class="pair pair-head" aria-hidden="true"><span>Queue</span><span>{before.label} above, {after.label} below</span><span>deserves</span></div>
      <List
        label={`Queues, ${before.label} and ${after.label}`} count={all.length} height={pairHeight} rowKey={(i) => String(all[i]?.index)}
        row={(i) => {
          const p = all[i];
          if (p === undefined) {
            return null;
          }
          return (
            <div class="pair">
              <a href={to(route, "queue", p.name)}><bdi>{p.name}</bdi></a>
              <span class="pair-bars">
                {p.before === undefined ? <small>takes no part</small> : <QueueBar name={`${before.label}: ${p.name}`} dimension={name} numbers={p.before} scale={scale} unit={unit} />}
                {p.after === undefined ? <small>takes no part</small> : <QueueBar name={`${after.label}: ${p.name}`} dimension={name} numbers={p.after} scale={scale} unit={unit} />}
              </span>
              <span class="pair-numbers">
                <span>{textOf(name, p.before?.deserved ?? 0, unit)}</span>
                <span>
                  {p.change !== 0 && <span class={p.change > 0 ? "pill good" : "pill warn"}>{p.change > 0 ? "+" : "−"}{textOf(name, Math.abs(p.change), unit)}</span>}
                  {" "}{textOf(name, p.after?.deserved ?? 0, unit)}
                </span>
              </span>
            </div>
          );
        }}
      />
      <h2>{!known ? "Asking which jobs would wait" : moved.length === 0 ? "No job's cause changes" : `${moved.length} ${moved.length === 1 ? "job waits" : "jobs wait"} for something else`}</h2>
      {moved.length > 0 && (
        <List
          label="Jobs that change" count={moved.length} height={turnHeight} rowKey={(i) => String(moved[i]?.job)}
          row={(i) => {
            const t = moved[i];
            if (t === undefined) {
              return null;
            }
            const job = after.cluster.jobName(t.job);
            const known = before.cluster.jobs[t.job] !== undefined;
            return (
              <div class="waiting-row">
                {known ? <a href={to(route, "job", job)}><bdi>{job}</bdi></a> : <b><bdi>{job}</bdi></b>}
                {better(t) ? <span class="pill good">no longer blocked</span> : worse(t) ? <span class="pill bad">newly blocked</span> : <span class="pill">still waits</span>}
                <span class="waiting-why">
                  {t.before === undefined ? (known ? say("PENDING_VERDICT_COMPLETE") : "not submitted") : fares(t.before)} → {t.after === undefined ? say("PENDING_VERDICT_COMPLETE") : fares(t.after)}
                </span>
              </div>
            );
          }}
        />
      )}
    </>
  ), [all, scale, unit, moved, known, before.cluster, after.cluster, before.label, after.label, address]);
  return <div class={busy ? "sides busy" : "sides"} aria-busy={busy}>{shown}</div>;
}
