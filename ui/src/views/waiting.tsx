// Waiting jobs, grouped by cause, with the selected one explained beside them.
import { useMemo } from "preact/hooks";

import type { ExplanationJson, LeftOutExplanationJson } from "../core/contract.ts";
import { cause, headline } from "../core/explain.ts";
import { having, to } from "../core/route.ts";
import { waitingCount } from "../parts/causes.tsx";
import { Filter } from "../parts/filter.tsx";
import { JobPanel } from "../parts/job.tsx";
import { List } from "../parts/list.tsx";
import { Empty, Failed, Loading } from "../parts/states.tsx";
import { explainedSteps, usePage, useSteps } from "../page.tsx";

const rowHeight = 52;

export function WaitingView() {
  const { cluster, policy, route, wide } = usePage();
  const asked = useSteps(explainedSteps, policy);
  const [answer, fault] = [asked.answer?.answers[0]?.explain, asked.fault];
  const { cause: chosen = "", q = "", job: selected = "" } = route.query;
  const jobs = useMemo(() => {
    const byJob = new Map((answer?.jobs ?? []).map((e) => [e.job ?? 0, e]));
    const group = chosen === "" ? undefined : answer?.groups?.[Number(chosen)];
    const all = group === undefined ? (answer?.jobs ?? []) : (group.jobs ?? []).flatMap((j) => byJob.get(j) ?? []);
    const wanted = q.trim().toLowerCase();
    return wanted === "" ? all : all.filter((e) => `${e.name ?? ""} ${cluster.queueName(e.queue)}`.toLowerCase().includes(wanted));
  }, [answer, chosen, q, cluster]);
  if (fault !== undefined) {
    return <section class="panel"><h1>Waiting jobs</h1><Failed fault={fault} /></section>;
  }
  if (answer === undefined) {
    return <section class="panel"><h1>Waiting jobs</h1><Loading what="Loading the causes" /></section>;
  }
  const count = waitingCount(answer);
  const href = (name: string): string => (wide ? having(route, { job: name }) : to(route, "job", name));
  return (
    <div class="columns">
      <section class="panel" aria-labelledby="waiting-title">
        <h1 id="waiting-title">{count === 0 ? "No job waits" : `${count.toLocaleString("en-US")} ${count === 1 ? "job waits" : "jobs wait"}`}</h1>
        <nav class="groups" aria-label="Causes">
          <Cause at="" text="every cause" count={count} chosen={chosen} />
          {(answer.groups ?? []).map((group, i) => (
            <Cause key={i} at={String(i)} text={cause(group)} count={group.jobs?.length ?? 0} chosen={chosen} />
          ))}
          {(answer.leftOut ?? []).length > 0 && (
            <Cause at="left" text="not considered by the scheduler" count={answer.leftOut?.length ?? 0} chosen={chosen} />
          )}
        </nav>
        {count > 12 && chosen !== "left" && <Filter label="Find a job or a queue" />}
        {chosen === "left" ? <LeftOut list={answer.leftOut ?? []} /> : jobs.length === 0 ? <Empty>{count === 0 ? "Every job runs or has ended." : "No waiting job matches."}</Empty> : (
          <List
            label="Waiting jobs" count={jobs.length} height={rowHeight} rowKey={(i) => String(jobs[i]?.job ?? 0)}
            first={selected === "" ? undefined : jobs.findIndex((e) => cluster.jobName(e.job) === selected)}
            row={(i) => <Waiting e={jobs[i]} selected={selected} href={href} />}
          />
        )}
      </section>
      <aside class="panel" aria-label="Details">
        {selected === "" ? <Empty>Choose a job to see why it waits.</Empty> : <JobPanel name={selected} />}
      </aside>
    </div>
  );
}

function Cause({ at, text, count, chosen }: { at: string; text: string; count: number; chosen: string }) {
  const { route } = usePage();
  return (
    <a href={having(route, { cause: at })} aria-current={at === chosen ? "true" : undefined} class="cause">
      <b>{count.toLocaleString("en-US")}</b> <span>{text}</span>
    </a>
  );
}

function Waiting({ e, selected, href }: { e: ExplanationJson | undefined; selected: string; href: (name: string) => string }) {
  const { cluster } = usePage();
  if (e === undefined) {
    return null;
  }
  const name = cluster.jobName(e.job);
  const blocking = e.blocking === undefined ? undefined : e.findings?.[e.blocking];
  return (
    <div class={name === selected ? "waiting-row selected" : "waiting-row"}>
      <a href={href(name)} aria-current={name === selected ? "true" : undefined}>{name}</a>
      <span class="waiting-queue">{cluster.queueName(e.queue)}</span>
      <span class="waiting-why" title={blocking?.text ?? e.text}>{blocking?.text ?? headline(e)}</span>
    </div>
  );
}

function LeftOut({ list }: { list: readonly LeftOutExplanationJson[] }) {
  return (
    <List
      label="Not considered" count={list.length} height={rowHeight} rowKey={(i) => String(i)}
      row={(i) => {
        const l = list[i];
        const name = [l?.leftOut?.namespace, l?.leftOut?.name].filter((p) => p).join("/");
        return (
          <div class="waiting-row">
            <b>{name}</b>
            <span class="waiting-queue">{l?.similarQueue ? `did you mean ${l.similarQueue}?` : ""}</span>
            <span class="waiting-why" title={l?.text}>{l?.text}</span>
          </div>
        );
      }}
    />
  );
}
