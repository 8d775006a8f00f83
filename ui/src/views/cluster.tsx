// The cluster: what each queue has and deserves, and the details of the selected queue or job.
import { useMemo } from "preact/hooks";

import { labelOf } from "../core/amount.ts";
import { having, to } from "../core/route.ts";
import { say } from "../core/say.ts";
import { resting, rows, summary } from "../core/shares.ts";
import { remembers } from "../core/usage.ts";
import { Legend } from "../parts/bar.tsx";
import { Causes, useWaiting, useWaitingByQueue } from "../parts/causes.tsx";
import { Filter } from "../parts/filter.tsx";
import { JobPanel } from "../parts/job.tsx";
import { NodeCell, shadeOf } from "../parts/nodemap.tsx";
import { QueuePanel } from "../parts/queue.tsx";
import { Resources } from "../parts/resources.tsx";
import { Order, Shares } from "../parts/shares.tsx";
import { Empty, Failed, Loading } from "../parts/states.tsx";
import { Sentence } from "../parts/sentence.tsx";
import { sharesSteps, usePage, useSteps } from "../page.tsx";

export function ClusterView() {
  const page = usePage();
  const { cluster, dimension, route, wide } = page;
  const { answer, fault } = useSteps(sharesSteps, page.policy);
  const shares = answer?.answers[0]?.shares;
  const all = useMemo(() => rows(cluster, shares), [cluster, shares]);
  const causes = useWaiting().answer;
  const waiting = useWaitingByQueue(causes);
  const worst = useMemo(() => (causes === undefined ? undefined : new Map((causes.queues ?? []).map((q, i) => [q.queue ?? 0, i]))), [causes]);
  const { job = "", queue = "" } = route.query;
  const known = remembers(cluster);
  const select = (part: "job" | "queue", name: string): string =>
    wide ? having(route, { job: "", queue: "", [part]: name }) : to(route, part, name);
  return (
    <div class="columns">
      <section class="panel" aria-labelledby="cluster-title">
        <h1 id="cluster-title" class="visually-hidden">Cluster <bdi>{page.opened.title}</bdi></h1>
        <Resources />
        {fault !== undefined ? <Failed fault={fault} /> : shares === undefined ? <Loading what="Loading the shares" /> : all.length === 0 ? (
          <Empty>{say("noDivision")}, or no queue has jobs.</Empty>
        ) : (
          <>
            <p class="summary"><Sentence text={summary(cluster, all, dimension)} /></p>
            {all.length > 12 && <div class="filters"><Filter label="Find a queue" /><Order rows={all} /></div>}
            <Shares rows={all} href={(row) => select("queue", row.name)} selected={queue} waiting={waiting} worst={worst} />
            <Legend />
            {known !== undefined && <p class="note">{known} <a href={to(route, "usage")}>Who used what</a></p>}
            <Resting names={resting(cluster, shares)} />
          </>
        )}
        {cluster.listed && <NodesStrip rows={all} job={cluster.jobIndex(job)} />}
      </section>
      <aside class="panel" tabIndex={-1} aria-label="Details">
        {job !== "" && <JobPanel name={job} />}
        {job === "" && queue !== "" && <QueuePanel name={queue} job={(name) => select("job", name)} />}
        <Causes job={(name) => select("job", name)} />
      </aside>
    </div>
  );
}

function Resting({ names }: { names: readonly string[] }) {
  const few = 5;
  if (names.length === 0) {
    return null;
  }
  return (
    <p class="note">
      {say("noShare")}<Sentence text={names.slice(0, few).join(", ")} />
      {names.length > few && ` and ${names.length - few} more`}
    </p>
  );
}

// NodesStrip shows the first nodes, and links to the others.
function NodesStrip({ rows: all, job }: { rows: Parameters<typeof shadeOf>[1]; job: number | undefined }) {
  const { cluster, dimension, route } = usePage();
  const shade = useMemo(() => shadeOf(cluster, all, dimension, "use", { job }), [cluster, all, dimension, job]);
  const few = 96;
  const shown = useMemo(
    () => cluster.nodes.flatMap((node, i) => (node === undefined || cluster.capacity(i, dimension) === 0 ? [] : [i])),
    [cluster, dimension],
  );
  const without = cluster.nodes.filter((node) => node !== undefined).length - shown.length;
  const name = cluster.dimensions[dimension] ?? "";
  if (cluster.nodes.length === 0) {
    return null;
  }
  return (
    <section aria-labelledby="strip-title">
      <h2 id="strip-title">Nodes{name.includes("/") ? `, one square is one ${labelOf(name)}` : `: ${labelOf(name)} in use`}</h2>
      <ul class="nodes">
        {shown.slice(0, few).map((node) => (
          <li key={node}>
            <NodeCell cluster={cluster} node={node} dimension={dimension} shade={shade} href={to(route, "nodes", cluster.nodeName(node))} />
          </li>
        ))}
      </ul>
      <p class="note">
        {shown.length > few && <><a href={to(route, "nodes")}>{(shown.length - few).toLocaleString("en-US")} more nodes</a>. </>}
        {without > 0 && `${without.toLocaleString("en-US")} ${without === 1 ? "node has" : "nodes have"} no ${labelOf(name)}.`}
      </p>
    </section>
  );
}
