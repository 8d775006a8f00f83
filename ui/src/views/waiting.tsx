// Waiting jobs, grouped by cause, with the selected one explained beside them.
import { useMemo } from "preact/hooks";

import type { ExplanationJson, LeftOutExplanationJson } from "../core/contract.ts";
import { found } from "../core/explain.ts";
import { isolated } from "../core/isolate.ts";
import { go } from "../address.ts";
import type { Marks } from "../core/marks.ts";
import { having, to } from "../core/route.ts";
import { fares, say } from "../core/say.ts";
import { kindJobs, waitingCount } from "../parts/causes.tsx";
import { Filter } from "../parts/filter.tsx";
import { JobPanel } from "../parts/job.tsx";
import { List } from "../parts/list.tsx";
import { Changed, Changes, useMarks } from "../parts/marks.tsx";
import { Empty, Failed, Loading } from "../parts/states.tsx";
import { explainedSteps, usePage, useSteps } from "../page.tsx";
import { Sentence } from "../parts/sentence.tsx";

const rowHeight = 52;

export function WaitingView() {
  const { cluster, policy, route, wide } = usePage();
  const asked = useSteps(explainedSteps, policy);
  const [answer, fault] = [asked.answer?.answers[0]?.explain, asked.fault];
  const { cause: chosen = "", q = "", job: selected = "", queue = "", ns: namespace = "", short = "" } = route.query;
  const jobs = useMemo(() => {
    const byJob = new Map((answer?.jobs ?? []).map((e) => [e.job ?? 0, e]));
    const kind = chosen === "" ? undefined : answer?.kinds?.[Number(chosen)];
    const all = answer === undefined ? [] : (kind === undefined ? answer.kinds ?? [] : [kind]).flatMap((k) => kindJobs(answer, k)).flatMap((j) => byJob.get(j) ?? []);
    const wanted = q.trim().toLowerCase();
    return all.filter((e) =>
      (wanted === "" || `${e.name ?? ""} ${cluster.queueName(e.queue)}`.toLowerCase().includes(wanted)) &&
      (queue === "" || cluster.queueName(e.queue) === queue) &&
      (namespace === "" || cluster.jobs[e.job ?? 0]?.namespace === namespace) &&
      (short === "" || cluster.dimensions[shortOf(e) ?? -1] === short));
  }, [answer, chosen, q, queue, namespace, short, cluster]);
  const said = useMemo(() => answer && new Map((answer.jobs ?? []).map((e) => [cluster.jobName(e.job), found(e) || fares(e)])), [answer]);
  const marks = useMarks(policy.name, said);
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
        <Changes marks={marks} />
        <nav class="groups" aria-label="Causes">
          <Cause at="" text="every cause" count={count} chosen={chosen} />
          {(answer.kinds ?? []).map((kind, i) => (
            <Cause key={i} at={String(i)} text={kind.text ?? ""} count={kind.jobCount ?? 0} queues={kind.queues?.length ?? 0} chosen={chosen} />
          ))}
          {(answer.leftOuts ?? []).length > 0 && (
            <Cause at="left" text={say("notConsidered")} count={answer.leftOuts?.length ?? 0} chosen={chosen} />
          )}
        </nav>
        {count > 12 && chosen !== "left" && (
          <div class="filters">
            <Filter label="Find a job or a queue" />
            <Choice label="Queue" part="queue" values={(answer.queues ?? []).map((w) => cluster.queueName(w.queue))} />
            <Choice label="Namespace" part="ns" values={[...new Set((answer.jobs ?? []).map((e) => cluster.jobs[e.job ?? 0]?.namespace ?? ""))].sort()} />
            <Choice label="Short of" part="short" values={[...new Set((answer.jobs ?? []).flatMap((e) => cluster.dimensions[shortOf(e) ?? -1] ?? []))].sort()} />
          </div>
        )}
        {chosen === "left" ? <LeftOut list={answer.leftOuts ?? []} /> : jobs.length === 0 ? <Empty>{count === 0 ? "Every job runs or has ended." : "No waiting job matches."}</Empty> : (
          <List
            label="Waiting jobs" count={jobs.length} height={rowHeight} rowKey={(i) => cluster.jobName(jobs[i]?.job)}
            first={selected === "" ? undefined : jobs.findIndex((e) => cluster.jobName(e.job) === selected)}
            row={(i) => <Waiting e={jobs[i]} selected={selected} href={href} marks={marks} />}
          />
        )}
      </section>
      <aside class="panel" tabIndex={-1} aria-label="Details">
        {selected === "" ? <Empty>Choose a job to see why it waits.</Empty> : <JobPanel name={selected} />}
      </aside>
    </div>
  );
}

// shortOf returns the resource of the first cause of the check that blocks.
const shortOf = (e: ExplanationJson): number | undefined => (e.blocking === undefined ? undefined : e.findings?.[e.blocking]?.causes?.[0]?.dimensions?.[0]);

// Choice filters by one value, which the address contains.
function Choice({ label, part, values }: { label: string; part: string; values: readonly string[] }) {
  const { route } = usePage();
  const chosen = route.query[part] ?? "";
  const offered = values.filter((v) => v !== "");
  if (offered.length < 2 && chosen === "") {
    return null;
  }
  return (
    <select aria-label={label} onChange={(event) => go(having(route, { [part]: event.currentTarget.value }))}>
      <option value="" selected={chosen === ""}>{label}: all</option>
      {offered.map((v) => <option key={v} value={v} selected={v === chosen}>{v}</option>)}
    </select>
  );
}

function Cause({ at, text, count, queues = 0, chosen }: { at: string; text: string; count: number; queues?: number; chosen: string }) {
  const { route } = usePage();
  return (
    <a href={having(route, { cause: at })} aria-current={at === chosen ? "true" : undefined} class="cause">
      <b>{count.toLocaleString("en-US")}</b> <span>{queues > 1 && <small>in {queues.toLocaleString("en-US")} queues </small>}<Sentence text={text} /></span>
    </a>
  );
}

function Waiting({ e, selected, href, marks }: { e: ExplanationJson | undefined; selected: string; href: (name: string) => string; marks: Marks }) {
  const { cluster } = usePage();
  if (e === undefined) {
    return null;
  }
  const name = cluster.jobName(e.job);
  const why = found(e);
  return (
    <div class={name === selected ? "waiting-row selected" : "waiting-row"}>
      <a href={href(name)} aria-current={name === selected ? "true" : undefined}><bdi>{name}</bdi></a>
      <span class="waiting-queue"><Changed marks={marks} name={name} /><bdi>{cluster.queueName(e.queue)}</bdi></span>
      <span class="waiting-why" title={isolated(why || (e.text ?? ""))}><Sentence text={why || fares(e)} /></span>
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
            <b><bdi>{name}</bdi></b>
            <span class="waiting-queue"><bdi>{l?.leftOut?.queue ?? ""}</bdi></span>
            <span class="waiting-why" title={isolated(l?.text ?? "")}><Sentence text={l?.text} /></span>
          </div>
        );
      }}
    />
  );
}
