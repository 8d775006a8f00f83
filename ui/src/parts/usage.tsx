// What queues used over weeks, as a plot, and what past usage changes for them, as a table.
import { useMemo } from "preact/hooks";

import { useAsked } from "../asked.ts";
import { labelOf, textOf, unitFor, type Unit } from "../core/amount.ts";
import type { GetUsageResponseJson, StepJson } from "../core/contract.ts";
import { halfLife, remembered, remembers, said, series, spent, usage, type Point, type Remembered, type Series } from "../core/usage.ts";
import { dividing } from "../core/shares.ts";
import { usePage, useSteps } from "../page.tsx";

// useUsage asks what queues used each day; undefined: no ledger is kept, or the answer is not there yet. No queues: all.
export function useUsage(queues: readonly string[]): GetUsageResponseJson | undefined {
  const { opened } = usePage();
  const key = opened.ledger === "" ? undefined : `usage ${opened.ledger} ${JSON.stringify(queues)} ${opened.digest}`;
  const { answer } = useAsked(key, (signal) => usage({ name: opened.ledger, queues: [...queues], period: "USAGE_PERIOD_DAY" }, signal));
  return answer === undefined || answer.begins === undefined ? undefined : answer;
}

// useBudgets asks who spent which budget; undefined: no ledger is kept, or the answer is not there yet. No queues: all.
function useBudgets(queues: readonly string[]): GetUsageResponseJson | undefined {
  const { opened } = usePage();
  const key = opened.ledger === "" ? undefined : `budgets ${opened.ledger} ${JSON.stringify(queues)} ${opened.digest}`;
  return useAsked(key, (signal) => usage({ name: opened.ledger, queues: [...queues], budgets: true }, signal)).answer;
}

const width = 600;
const height = 80;

const dayOf = (at: number): string => new Date(at).toLocaleDateString("en-CA", { timeZone: "UTC" });

// weeks returns the Mondays between two times.
function weeks(from: number, until: number): number[] {
  const week = 7 * 86_400_000;
  // 1970-01-05 was a Monday.
  const monday = 4 * 86_400_000;
  const out: number[] = [];
  for (let at = Math.ceil((from - monday) / week) * week + monday; at < until; at += week) {
    out.push(at);
  }
  return out;
}

function path(points: readonly Point[], x: (at: number) => number, y: (value: number) => number, value: (p: Point) => number): string {
  return points.map((p, i) => `${i === 0 ? "M" : "L"}${x(p.from).toFixed(1)} ${y(value(p)).toFixed(1)}L${x(p.until).toFixed(1)} ${y(value(p)).toFixed(1)}`).join("");
}

// UsagePlot draws what a queue used each day, and as a line what of it counts.
export function UsagePlot({ one, dimension, most, unit }: { one: Series; dimension: string; most: number; unit: Unit }) {
  const first = one.points[0];
  const last = one.points.at(-1);
  if (first === undefined || last === undefined || most <= 0) {
    return null;
  }
  const whole = Math.max(last.until - first.from, 1);
  const x = (at: number): number => (width * (at - first.from)) / whole;
  const y = (value: number): number => height - 2 - ((height - 4) * value) / most;
  const hours = one.hours.toLocaleString("en-US", { maximumFractionDigits: 1 });
  const label = `${one.queue}: ${hours} hours of ${labelOf(dimension)} from ${dayOf(first.from)} to ${dayOf(last.until)}; ` +
    `${textOf(dimension, last.decayed, unit)} count at the end`;
  return (
    <figure class="spark usage">
      <svg role="img" aria-label={label} viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none">
        {weeks(first.from, last.until).map((at) => <line key={at} class="usage-week" x1={x(at)} x2={x(at)} y1="0" y2={height} />)}
        <path class="usage-area" d={`${path(one.points, x, y, (p) => p.used)}L${width} ${height}L0 ${height}Z`} />
        <path class="usage-decayed" d={path(one.points, x, y, (p) => p.decayed)} />
      </svg>
      <figcaption><bdi>{one.queue}</bdi> <span>{hours} {labelOf(dimension)} hours; {textOf(dimension, last.decayed, unit)} count now</span></figcaption>
    </figure>
  );
}

// UsagePlots draws what queues used of a resource, on one scale.
export function UsagePlots({ answer, dimension, only }: { answer: GetUsageResponseJson; dimension: string; only?: ReadonlySet<string> }) {
  const all = useMemo(() => series(answer, dimension, only), [answer, dimension, only]);
  const few = 40;
  const most = Math.max(0, ...all.map((s) => Math.max(0, ...s.points.map((p) => Math.max(p.used, p.decayed)))));
  const unit = unitFor(dimension, [most, ...all.map((s) => s.points.at(-1)?.decayed)]);
  const begins = all[0]?.points[0]?.from;
  const half = halfLife(answer.epochSeconds, answer.halfLifeEpochs);
  if (begins === undefined) {
    return <p class="note">No {labelOf(dimension)} was used.</p>;
  }
  return (
    <>
      {all.slice(0, few).map((one) => <UsagePlot key={one.queue} one={one} dimension={dimension} most={most} unit={unit} />)}
      {all.length > few && <p class="note">{all.length - few} queues that used less are not drawn.</p>}
      <p class="note">
        From {dayOf(begins)} to {dayOf(all[0]?.points.at(-1)?.until ?? begins)}, up to {textOf(dimension, most, unit)} {labelOf(dimension)}; a vertical line is a Monday.
        Areas: the mean of each day. Lines: what counts, with a half-life of {half ?? "no time"}.
      </p>
    </>
  );
}

// timeOf is the day of a time, with the time of the day unless it is midnight.
function timeOf(at: number | undefined): string {
  if (at === undefined) {
    return "–";
  }
  const [day, clock] = new Date(at).toISOString().split("T");
  return clock?.startsWith("00:00:") === true ? `${day}` : `${day} ${clock?.slice(0, 5)}`;
}

const hoursOf = (hours: number): string => hours.toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 });

// Budgets says what each period of a budget granted, and who spent it, in the words of `apportion usage --by budget`. No queues: all.
export function Budgets({ queues }: { queues: readonly string[] }) {
  const { cluster, dimension } = usePage();
  const answer = useBudgets(queues);
  const name = cluster.dimensions[dimension] ?? "";
  if ((answer?.budgets ?? []).length === 0) {
    return null;
  }
  const rows = spent(answer, name);
  if (rows.length === 0) {
    return <p class="note">No budget bounds {labelOf(name)}.</p>;
  }
  return (
    <section class="budgets" aria-label="Budgets">
      <div class="scroll" tabIndex={0} role="region" aria-label={`Budgets of ${labelOf(name)}`}>
        <table class="grid">
          <caption>Budgets, in hours of {labelOf(name)}</caption>
          <thead>
            <tr>
              <th>budget</th><th class="roomy">from</th><th>until</th><th>hours</th><th class="roomy">of budget</th><th class="roomy">granted</th><th>left</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((r) => {
              const whole = r.user === "";
              return (
                <tr key={`${r.queue} ${r.from} ${r.user}`}>
                  <th scope="row" class={whole ? "" : "user"}><bdi>{whole ? r.queue : r.user}</bdi>{whole ? `, ${r.kind}` : ""}</th>
                  <td class="roomy">{whole ? timeOf(r.from) : ""}</td><td>{whole ? timeOf(r.until) : ""}</td><td>{hoursOf(r.used)}</td>
                  <td class="roomy">{r.granted > 0 ? `${Math.round((100 * r.used) / r.granted)}%` : "–"}</td>
                  <td class="roomy">{whole ? hoursOf(r.granted) : ""}</td><td>{whole ? hoursOf(Math.max(0, r.granted - r.used)) : ""}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </section>
  );
}

// The derivation has the weights.
const steps: readonly StepJson[] = [{ shares: { explain: {} } }];

// useRemembered returns what past usage changes for queues, by position; undefined without a memory.
function useRemembered(): ReadonlyMap<number, Remembered> | undefined {
  const { cluster, opened, policy, dimension } = usePage();
  const asked = cluster.snapshot.memory === undefined || opened.restricted ? undefined : steps;
  const { answer } = useSteps(asked, policy);
  const plugin = dividing(answer?.answers[0]?.shares);
  const all = useMemo(() => remembered(plugin, dimension), [plugin, dimension]);
  return all.size === 0 ? undefined : all;
}

const percent = (part: number | undefined): string => (part === undefined ? "new" : `${Math.round(100 * part)}%`);

// WithMemory says what past usage changes for queues; without names: for all.
export function WithMemory({ names }: { names?: ReadonlySet<string> }) {
  const { cluster, dimension } = usePage();
  const all = useRemembered();
  const name = cluster.dimensions[dimension] ?? "";
  if (all === undefined) {
    return cluster.snapshot.memory === undefined ? null : <p class="note">{remembers(cluster)} This policy does not heed it.</p>;
  }
  const unit = unitFor(name, [...all.values()].flatMap((r) => [r.deserved, r.first]));
  const rows = [...all].filter(([queue]) => names === undefined || names.has(cluster.queueName(queue)));
  return (
    <section class="memory" aria-label="With memory">
      <p class="note">{said(cluster)} What may be taken back is decided by weight, as without memory.</p>
      <div class="scroll" tabIndex={0} role="region" aria-label={`What past usage of ${labelOf(name)} changes`}>
        <table class="grid">
          <thead>
            <tr><th>{labelOf(name)}</th><th>used</th><th>its part</th><th>weight</th><th>with memory</th><th>entitled</th><th>first up to</th></tr>
          </thead>
          <tbody>
            {rows.map(([queue, r]) => (
              <tr key={queue}>
                <th scope="row"><bdi>{cluster.queueName(queue)}</bdi></th><td>{percent(r.used)}</td><td>{percent(r.part)}</td><td>{r.weight}</td>
                <td>{r.effective.toLocaleString("en-US", { maximumSignificantDigits: 3 })}</td>
                <td>{textOf(name, r.deserved, unit)}</td><td>{textOf(name, r.first, unit)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
