// Waiting jobs in groups by cause.
import { useMemo } from "preact/hooks";

import { type Asked } from "../asked.ts";
import type { ExplainAnswerJson, PendingKindJson } from "../core/contract.ts";
import { causesOf } from "../core/explain.ts";
import { to } from "../core/route.ts";
import { say } from "../core/say.ts";
import { usePage, useSteps, waitingSteps } from "../page.tsx";
import { Empty, Failed, Loading } from "./states.tsx";
import { Sentence } from "./sentence.tsx";

// useWaiting asks why jobs wait.
export function useWaiting(): Asked<ExplainAnswerJson> {
  const { policy } = usePage();
  const { answer, fault, pending } = useSteps(waitingSteps, policy);
  return { answer: answer?.answers[0]?.explain, fault, pending };
}

// useWaitingByQueue counts them.
export function useWaitingByQueue(answer: ExplainAnswerJson | undefined): ReadonlyMap<number, number> {
  const { cluster } = usePage();
  return useMemo(() => {
    const counts = new Map<number, number>();
    for (const { job } of causesOf(answer)) {
      const queue = cluster.queueOf(job ?? 0);
      counts.set(queue, (counts.get(queue) ?? 0) + 1);
    }
    return counts;
  }, [answer, cluster]);
}

export const waitingCount = (answer: ExplainAnswerJson | undefined): number => (answer?.groups ?? []).reduce((n, group) => n + (group.jobs?.length ?? 0), 0);

// kindJobs returns the jobs of a kind, group by group.
export const kindJobs = (answer: ExplainAnswerJson, kind: PendingKindJson | undefined): number[] => (kind?.groups ?? []).flatMap((g) => answer.groups?.[g]?.jobs ?? []);

// Kind is a kind of cause with the first of its jobs, or of several queues with those in which most of its jobs wait.
function Kind({ at, kind, jobs, job }: { at: number; kind: PendingKindJson; jobs: readonly number[]; job: (name: string) => string }) {
  const { cluster, route } = usePage();
  const few = 3;
  const href = to(route, "waiting", "", { cause: String(at) });
  const queues = kind.queues ?? [];
  const crowded = jobs.length > 2 * few && queues.length > 1;
  const more = (crowded ? queues : jobs).length - few;
  return (
    <li>
      <a class="cause" href={href}>
        <b>{jobs.length.toLocaleString("en-US")}</b>
        <span>{queues.length > 1 && `in ${queues.length.toLocaleString("en-US")} queues `}<Sentence text={kind.text} /></span>
      </a>
      <span class="cause-jobs">
        {crowded
          ? queues.slice(0, few).map((q) => (
            <a key={q.queue} href={to(route, "queue", cluster.queueName(q.queue))}><bdi>{cluster.queueName(q.queue)}</bdi> ({q.jobCount ?? 0})</a>
          ))
          : jobs.slice(0, few).map((j) => <a key={j} href={job(cluster.jobName(j))}><bdi>{cluster.jobName(j)}</bdi></a>)}
        {more > 0 && <a href={href}>{more.toLocaleString("en-US")} more{crowded ? " queues" : ""}</a>}
      </span>
    </li>
  );
}

export function Causes({ job }: { job: (name: string) => string }) {
  const { route } = usePage();
  const { answer, fault } = useWaiting();
  if (fault !== undefined) {
    return <Failed fault={fault} />;
  }
  if (answer === undefined) {
    return <Loading what="Loading the causes" />;
  }
  const count = waitingCount(answer);
  return (
    <section class="causes" aria-labelledby="causes-title">
      <h2 id="causes-title">{count === 0 ? "No job waits" : `${count.toLocaleString("en-US")} ${count === 1 ? "job waits" : "jobs wait"}`}</h2>
      {count === 0 && <Empty>Every job that you may see runs or has ended.</Empty>}
      {(answer.otherJobs ?? 0) > 0 && <p class="note">{answer.otherJobs} more {answer.otherJobs === 1 ? "waits" : "wait"} in other queues.</p>}
      <ul>
        {(answer.kinds ?? []).map((kind, i) => (
          <Kind key={i} at={i} kind={kind} jobs={kindJobs(answer, kind)} job={job} />
        ))}
        {(answer.leftOuts ?? []).length > 0 && (
          <li>
            <a class="cause" href={to(route, "waiting", "", { cause: "left" })}>
              <b>{answer.leftOuts?.length}</b> <span>{say("notConsidered")}</span>
            </a>
          </li>
        )}
      </ul>
    </section>
  );
}
