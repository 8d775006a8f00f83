// One job: the answer first, the checks below it.
import { useMemo } from "preact/hooks";

import { allSaid } from "../core/amount.ts";
import type { ExplanationJson, StepJson } from "../core/contract.ts";
import { forecast, mark, rest } from "../core/explain.ts";
import { to } from "../core/route.ts";
import { plain } from "../core/say.ts";
import { usePage, useSteps } from "../page.tsx";
import { Command, quoted } from "./copy.tsx";
import { JobHistory } from "./history.tsx";
import { JobOdds } from "./odds.tsx";
import { Empty, Failed, Loading } from "./states.tsx";
import { Sentence } from "./sentence.tsx";

export function Checks({ e }: { e: ExplanationJson }) {
  return (
    <ul class="checks" aria-label="Checks">
      {(e.findings ?? []).map((f, i) => {
        const m = mark(f.outcome);
        return (
          <li key={i} class={i === e.blocking ? "blocking" : ""}>
            <span class={`sign ${m.tone}`} role="img" aria-label={m.word}>{m.sign}</span>
            <span class="check-name">{plain(f.check, "CHECK_KIND_")}</span>
            <span class="check-text"><Sentence text={f.text} /></span>
          </li>
        );
      })}
    </ul>
  );
}

// Verdict is why a job waits, and when it could start if that is known.
export function Verdict({ e }: { e: ExplanationJson }) {
  const start = forecast(e);
  return (
    <>
      <p class="verdict">
        <Sentence text={rest(e)} />
      </p>
      {start !== undefined && <p class="forecast"><strong><Sentence text={start.start} /></strong> <Sentence text={start.basis} /></p>}
    </>
  );
}

// JobPanel explains a job of the cluster by name.
export function JobPanel({ name, heading = "h2" }: { name: string; heading?: "h1" | "h2" }) {
  const { cluster, policy, route } = usePage();
  const index = cluster.jobIndex(name);
  const uid = cluster.jobs[index ?? -1]?.uid || name;
  const steps = useMemo<StepJson[] | undefined>(() => (index === undefined ? undefined : [{ explain: { jobs: { names: [uid] } } }]), [index, uid]);
  const { answer, fault } = useSteps(steps, policy);
  const Heading = heading;
  if (index === undefined) {
    return <Empty>There is no job <bdi>{name}</bdi> in this cluster.</Empty>;
  }
  const job = cluster.jobs[index];
  const queue = job?.queue ?? "";
  const e = answer?.answers[0]?.explain?.jobs?.[0];
  return (
    <section class="job" aria-label={`Job ${name}`}>
      <Heading class="crumb">
        <a href={to(route, "job", name)}><bdi>{name}</bdi></a> <small>in queue <a href={to(route, "queue", queue)}><bdi>{queue}</bdi></a></small>
      </Heading>
      {fault !== undefined ? <Failed fault={fault} /> : e === undefined || (e.job ?? 0) !== index ? <Loading what="Loading the explanation" /> : (
        <>
          <Verdict e={e} />
          <JobOdds uid={e.uid ?? name} />
          <JobHistory uid={e.uid ?? name} />
          <Checks e={e} />
          <Command text={quoted("apportion", "explain", name)} />
        </>
      )}
      <dl class="facts">
        <div><dt>needs at least</dt><dd><Sentence text={job?.minResources === undefined ? "not specified" : allSaid(cluster.dimensions, job.minResources)} /></dd></div>
        <div><dt>phase</dt><dd>{plain(job?.phase ?? "JOB_PHASE_PENDING", "JOB_PHASE_")}</dd></div>
        <div><dt>priority</dt><dd>{job?.priority ?? 0}</dd></div>
        {cluster.listed && <div><dt>tasks</dt><dd>{taskCounts(cluster.tasksOf(index).map((t) => t.json.status)) || "counted, not listed"}</dd></div>}
      </dl>
    </section>
  );
}

export function taskCounts(statuses: readonly (string | undefined)[]): string {
  const counts = new Map<string, number>();
  for (const status of statuses) {
    const name = plain(status ?? "TASK_STATUS_PENDING", "TASK_STATUS_");
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts].map(([name, n]) => `${n} ${name}`).join(", ");
}
