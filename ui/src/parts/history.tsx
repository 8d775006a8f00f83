// What a job waited for as a strip of times, and what a queue held as a line.
import { useEffect, useMemo, useState } from "preact/hooks";

import { useAsked } from "../asked.ts";
import { alike, labelOf } from "../core/amount.ts";
import type { GetHistoryRequestJson, GetHistoryResponseJson, StepJson } from "../core/contract.ts";
import { rough } from "../core/duration.ts";
import { forecast, rest } from "../core/explain.ts";
import { clock, history, queueSince, reaches, series, spans, waited, type Point, type Span } from "../core/history.ts";
import { to } from "../core/route.ts";
import { isolated } from "../core/isolate.ts";
import { say } from "../core/say.ts";
import { usePage, useSteps } from "../page.tsx";
import { Sentence } from "./sentence.tsx";

// refresh is the time in milliseconds after which the history of a version that stays is asked for again.
const refresh = 30_000;

// useHistory asks for the history of a job or a queue; undefined: the server keeps none, or has not answered yet.
function useHistory(request: GetHistoryRequestJson): GetHistoryResponseJson | undefined {
  const { opened } = usePage();
  const [turn, next] = useState(0);
  // A version is in the history some time after it is shown.
  useEffect(() => {
    const soon = setTimeout(() => next((n) => n + 1), refresh / 10);
    const again = setInterval(() => next((n) => n + 1), refresh);
    return () => {
      clearTimeout(soon);
      clearInterval(again);
    };
  }, [opened.digest]);
  const key = opened.name === "" ? undefined : `history ${opened.name} ${JSON.stringify(request)} ${opened.digest} ${turn}`;
  const { answer } = useAsked(key, (signal) => history({ ...request, name: opened.name }, signal));
  return answer === undefined || answer.begins === undefined ? undefined : answer;
}

const toneClass = (span: Span): string => (span.tone < 0 ? "tone-idle" : `tone-${span.tone}`);

// Strip draws times beside each other. The list below it says the same in words.
function Strip({ list }: { list: readonly Span[] }) {
  const first = list[0]?.from ?? 0;
  const whole = Math.max((list.at(-1)?.until ?? 0) - first, 1);
  return (
    <svg class="strip" aria-hidden="true" viewBox="0 0 1000 20" preserveAspectRatio="none">
      {list.map((span, i) => (
        <rect key={i} class={toneClass(span)} x={(1000 * (span.from - first)) / whole} y="0" width={Math.max((1000 * (span.until - span.from)) / whole, 3)} height="20" />
      ))}
    </svg>
  );
}

// JobHistory says since when a job waits, and for what in turn.
export function JobHistory({ uid }: { uid: string }) {
  const request = useMemo(() => ({ jobs: [uid] }), [uid]);
  const answer = useHistory(request);
  const job = answer?.jobs?.[0];
  if (answer === undefined || job === undefined) {
    return null;
  }
  const now = Date.now();
  const list = spans(job);
  return (
    <section class="past" aria-labelledby="job-past">
      <h2 id="job-past">{waited(job, answer.begins, now)}</h2>
      <Strip list={list} />
      <ol class="spans" aria-label="What it waited for">
        {list.map((span, i) => (
          <li key={i}>
            <i class={`swatch ${toneClass(span)}`} aria-hidden="true" />
            <span class="span-time">{clock(span.from, now)} – {span.lasts ? "now" : clock(span.until, now)} <small>{rough((span.until - span.from) / 1000)}</small></span>
            <span><Sentence text={span.text} /></span>
          </li>
        ))}
      </ol>
      <p class="note">{reaches(answer, now)}</p>
    </section>
  );
}

// path draws values of points from left to right, each as long as its time.
function path(points: readonly Point[], value: (p: Point) => number, most: number, closed: boolean): string {
  const first = points[0]?.from ?? 0;
  const whole = Math.max((points.at(-1)?.until ?? 0) - first, 1);
  const x = (at: number): string => ((600 * (at - first)) / whole).toFixed(1);
  const y = (p: Point): string => (46 - (44 * value(p)) / most).toFixed(1);
  const steps = points.map((p, i) => `${i === 0 ? "M" : "L"}${x(p.from)} ${y(p)}L${x(points[i + 1]?.from ?? p.until)} ${y(p)}`).join("");
  return closed ? `${steps}L600 46L0 46Z` : steps;
}

// Sparkline draws what a queue held of a resource against what it deserved.
function Sparkline({ points, dimension }: { points: readonly Point[]; dimension: string }) {
  const now = Date.now();
  const first = points[0];
  const last = points.at(-1);
  const most = Math.max(...points.map((p) => Math.max(p.allocated, p.deserved)));
  if (first === undefined || last === undefined || most === 0) {
    return null;
  }
  const held = points.map((p) => p.allocated);
  const [least, largest, has, deserves] = alike(dimension, Math.min(...held), Math.max(...held), last.allocated, last.deserved);
  const label = `${labelOf(dimension)}: held ${least === largest ? least : `${least} to ${largest}`} since ${clock(first.from, now)}; ` +
    `now ${has} of ${deserves} deserved`;
  return (
    <figure class="spark">
      <svg role="img" aria-label={label} viewBox="0 0 600 48" preserveAspectRatio="none">
        <title>{isolated(label)}</title>
        <path class="spark-has" d={path(points, (p) => p.allocated, most, true)} />
        <path class="spark-deserves" d={path(points, (p) => p.deserved, most, false)} />
      </svg>
      <figcaption><Sentence text={label} /></figcaption>
    </figure>
  );
}

// seldom are resources that few people ask about.
const seldom = ["pods", "ephemeral-storage"];

// QueueHistory says since when jobs of a queue wait, and shows what it held over time.
export function QueueHistory({ name }: { name: string }) {
  const { cluster } = usePage();
  const request = useMemo(() => ({ queues: [name] }), [name]);
  const answer = useHistory(request);
  const queue = answer?.queues?.[0];
  if (answer === undefined || queue === undefined) {
    return null;
  }
  const now = Date.now();
  return (
    <section class="past" aria-labelledby="queue-past">
      <h2 id="queue-past">{queueSince(queue, now)}</h2>
      {cluster.offered().map((d) => cluster.dimensions[d] ?? "").filter((dimension) => !seldom.includes(dimension)).map((dimension) => (
        <Sparkline key={dimension} points={series(queue, dimension)} dimension={dimension} />
      ))}
      <p class="note">{reaches(answer, now)}</p>
    </section>
  );
}

// mostForeseen is the number of waiting jobs whose start is foreseen; a question about more of them has no forecasts.
const mostForeseen = 4;

// QueueNext says which waiting jobs come next, and when they could start where the ends of running jobs are known.
export function QueueNext({ waiting }: { waiting: readonly number[] }) {
  const { cluster, policy, route } = usePage();
  const first = waiting.slice(0, mostForeseen).map((j) => cluster.jobs[j]?.uid || cluster.jobName(j));
  const steps = useMemo<StepJson[] | undefined>(() => (first.length === 0 ? undefined : [{ explain: { jobs: { names: first } } }]), [first.join("\n")]);
  const jobs = useSteps(steps, policy).answer?.answers[0]?.explain?.jobs ?? [];
  if (jobs.length === 0) {
    return null;
  }
  return (
    <section class="next" aria-labelledby="queue-next">
      <h2 id="queue-next">{say("comesNext")}</h2>
      <ol>
        {jobs.map((e) => {
          const start = forecast(e);
          const name = cluster.jobName(e.job ?? 0);
          return (
            <li key={name}>
              <a href={to(route, "job", name)}><bdi>{name}</bdi></a>
              <span><Sentence text={start === undefined ? rest(e) : `${start.start} ${start.basis}`} /></span>
            </li>
          );
        })}
      </ol>
    </section>
  );
}
