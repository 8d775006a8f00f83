// One queue: its numbers in every resource, and its jobs in order.
import { useMemo } from "preact/hooks";

import { causesOf } from "../core/explain.ts";
import { labelOf, textOf, unitFor } from "../core/amount.ts";
import type { StepJson } from "../core/contract.ts";
import { to } from "../core/route.ts";
import { plain, say } from "../core/say.ts";
import { numbers, rows } from "../core/shares.ts";
import { sharesSteps, usePage, useSteps } from "../page.tsx";
import { amountsOf, QueueBar } from "./bar.tsx";
import { useWaiting } from "./causes.tsx";
import { QueueNext } from "./history.tsx";
import { List } from "./list.tsx";
import { State, StatePill } from "./shares.tsx";
import { Empty, Failed, Loading } from "./states.tsx";

// QueueNumbers is a table of a queue's resources.
export function QueueNumbers({ name }: { name: string }) {
  const { cluster, policy } = usePage();
  const { answer, fault } = useSteps(sharesSteps, policy);
  const shares = answer?.answers[0]?.shares;
  const row = useMemo(() => rows(cluster, shares).find((r) => r.name === name), [cluster, shares, name]);
  if (fault !== undefined) {
    return <Failed fault={fault} />;
  }
  if (shares === undefined) {
    return <Loading what="Loading the numbers" />;
  }
  if (row === undefined) {
    return <Empty>The queue takes no part: it has no jobs, or the policy divides nothing among queues.</Empty>;
  }
  const standing = row.standing;
  return (
    <>
      <p class="note">
        {[
          ...(row.share.weight ? [`Weight ${row.share.weight}`] : []),
          ...(standing?.rank === undefined ? [] : [say("inQueueOrder", { rank: String(standing.rank + 1) })]),
          ...(standing?.overused === true ? [say("notServed")] : []),
        ].join(", ")} <StatePill state={cluster.snapshot.queues?.[row.index]?.state} />
      </p>
      <div class="scroll numbers" tabIndex={0} role="region" aria-label={`Resources of ${name}`}>
        <table class="grid">
          <thead>
            <tr><th>Resource</th><th class="w-bar"><span class="visually-hidden">Bar</span></th><th class="guaranteed">guaranteed</th><th>has</th><th>wants</th><th>deserves</th><th>at most</th></tr>
          </thead>
          <tbody>
            {cluster.offered().map((d) => {
              const dimension = cluster.dimensions[d] ?? "";
              const n = numbers(row.share, d);
              if (n.allocated === 0 && n.request === 0 && n.deserved === 0 && n.guarantee === 0) {
                return null;
              }
              const scale = Math.max(Number.isFinite(n.limit) ? n.limit : 0, n.allocated, n.deserved, Math.min(n.request, cluster.total(d)));
              const unit = unitFor(dimension, amountsOf(n));
              return (
                <tr key={d}>
                  <th scope="row" title={dimension}>{labelOf(dimension)} <State n={n} dimension={dimension} unit={unit} /></th>
                  <td class="w-bar"><QueueBar name={name} dimension={dimension} numbers={n} scale={scale} unit={unit} /></td>
                  <td class="guaranteed">{textOf(dimension, n.guarantee, unit)}</td><td>{textOf(dimension, n.allocated, unit)}</td><td>{textOf(dimension, n.request, unit)}</td>
                  <td>{textOf(dimension, n.deserved, unit)}</td><td>{textOf(dimension, n.limit, unit)}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </>
  );
}

const jobHeight = 34;

// QueueJobs lists the jobs of a queue in the order in which they are served, and says what comes next if that is asked for.
export function QueueJobs({ name, job, selected, next }: { name: string; job: (name: string) => string; selected?: string; next?: boolean }) {
  const { cluster, policy } = usePage();
  const index = cluster.queueIndex(name);
  const own = useMemo(() => cluster.jobs.flatMap((j, i) => (j?.queue === name ? [i] : [])), [cluster, name]);
  // If the server refuses to order that many jobs, they are shown as in the snapshot.
  const steps = useMemo<StepJson[] | undefined>(() => (own.length === 0 ? undefined : [{ order: { jobs: { names: own.map((j) => cluster.jobs[j]?.uid || cluster.jobName(j)) } } }]), [own.map((j) => cluster.jobName(j)).join("\n")]);
  const { answer } = useSteps(steps, policy);
  const waiting = useWaiting().answer;
  const explained = useMemo(() => new Map(causesOf(waiting).map((e) => [e.job ?? 0, e])), [waiting]);
  if (index === undefined) {
    return <Empty>There is no queue <bdi>{name}</bdi> in this cluster.</Empty>;
  }
  if (own.length === 0) {
    return <Empty>The queue has no jobs.</Empty>;
  }
  const sorted = answer?.answers[0]?.order?.items ?? own;
  const jobs = sorted.length === own.length && sorted.every((j) => cluster.jobs[j]?.queue === name) ? sorted : own;
  return (
    <>
      {next && <QueueNext waiting={jobs.filter((j) => explained.has(j))} />}
      <h2>{own.length} {own.length === 1 ? "job" : "jobs"}, in the order in which they are served</h2>
      <List
        label={`Jobs of ${name}`} count={jobs.length} height={jobHeight} rowKey={(i) => cluster.jobName(jobs[i])}
        row={(i) => {
          const j = jobs[i] ?? 0;
          const text = cluster.jobName(j);
          const e = explained.get(j);
          const phase = plain(cluster.jobs[j]?.phase ?? "JOB_PHASE_PENDING", "JOB_PHASE_");
          return (
            <div class={text === selected ? "job-row selected" : "job-row"}>
              <a href={job(text)}><bdi>{text}</bdi></a>
              {e === undefined ? <span class="pill">{phase}</span> : <span class="pill bad">waits</span>}
            </div>
          );
        }}
      />
    </>
  );
}

export function QueuePanel({ name, job }: { name: string; job: (name: string) => string }) {
  const { route } = usePage();
  return (
    <section class="queue" aria-labelledby="queue-panel-title">
      <h2 id="queue-panel-title" class="big"><bdi>{name}</bdi></h2>
      <p class="actions"><a class="button" href={to(route, "queue", name)}>How its share is computed</a></p>
      <QueueNumbers name={name} />
      <QueueJobs name={name} job={job} />
    </section>
  );
}
