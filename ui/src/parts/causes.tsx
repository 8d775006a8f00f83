// Waiting jobs in groups by cause.
import { useMemo } from "preact/hooks";

import { type Asked } from "../asked.ts";
import type { ExplainAnswerJson } from "../core/contract.ts";
import { cause, causesOf } from "../core/explain.ts";
import { to } from "../core/route.ts";
import { usePage, useSteps, waitingSteps } from "../page.tsx";
import { Empty, Failed, Loading } from "./states.tsx";

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

export function Causes({ job }: { job: (name: string) => string }) {
  const { cluster, route } = usePage();
  const { answer, fault } = useWaiting();
  if (fault !== undefined) {
    return <Failed fault={fault} />;
  }
  if (answer === undefined) {
    return <Loading what="Loading the causes" />;
  }
  const count = waitingCount(answer);
  const few = 3;
  return (
    <section class="causes" aria-labelledby="causes-title">
      <h2 id="causes-title">{count === 0 ? "No job waits" : `${count} ${count === 1 ? "job waits" : "jobs wait"}`}</h2>
      {count === 0 && <Empty>Every job that you may see runs or has ended.</Empty>}
      {(answer.otherJobs ?? 0) > 0 && <p class="note">{answer.otherJobs} more {answer.otherJobs === 1 ? "waits" : "wait"} in other queues.</p>}
      <ul>
        {(answer.groups ?? []).map((group, i) => (
          <li key={i}>
            <a class="cause" href={to(route, "waiting", "", { cause: String(i) })}>
              <b>{group.jobs?.length ?? 0}</b> <span>{cause(group)}</span>
            </a>
            <span class="cause-jobs">
              {(group.jobs ?? []).slice(0, few).map((j) => (
                <a key={j} href={job(cluster.jobName(j))}>{cluster.jobName(j)}</a>
              ))}
              {(group.jobs ?? []).length > few && <a href={to(route, "waiting", "", { cause: String(i) })}>{(group.jobs ?? []).length - few} more</a>}
            </span>
          </li>
        ))}
        {(answer.leftOut ?? []).length > 0 && (
          <li>
            <a class="cause" href={to(route, "waiting", "", { cause: "left" })}>
              <b>{answer.leftOut?.length}</b> <span>not considered by the scheduler</span>
            </a>
          </li>
        )}
      </ul>
    </section>
  );
}
