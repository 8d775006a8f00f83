// The nodes as a map, coloured by use, by queue, or by where a task fits.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { alike, allSaid, labelOf, said } from "../core/amount.ts";
import { waits } from "../core/cluster.ts";
import type { StepJson } from "../core/contract.ts";
import { reserved } from "../core/nodes.ts";
import { having, to } from "../core/route.ts";
import { rows } from "../core/shares.ts";
import { Filter } from "../parts/filter.tsx";
import { hues, NodeCell, shadeOf, type Colouring, type Shade } from "../parts/nodemap.tsx";
import { Resources } from "../parts/resources.tsx";
import { Empty, Failed } from "../parts/states.tsx";
import { sharesSteps, usePage, useSteps } from "../page.tsx";
import { Sentence } from "../parts/sentence.tsx";

const colourings: readonly { by: Colouring; text: string }[] = [
  { by: "use", text: "Who borrows" }, { by: "queue", text: "Queues" }, { by: "fit", text: "What fits" },
];

export function NodesView() {
  const { cluster, dimension, policy, route } = usePage();
  const by = colourings.find((c) => c.by === route.query["by"])?.by ?? "use";
  const shares = useSteps(sharesSteps, policy).answer?.answers[0]?.shares;
  const all = useMemo(() => rows(cluster, shares), [cluster, shares]);
  const fit = useFitting(by === "fit" ? (route.query["job"] ?? "") : "");
  const shade = useMemo(() => shadeOf(cluster, all, dimension, by, { fitting: fit.nodes }), [cluster, all, dimension, by, fit.nodes]);
  const wanted = (route.query["q"] ?? "").trim().toLowerCase();
  const shown = useMemo(
    () => cluster.nodes.flatMap((node, i) => (
      node === undefined || cluster.capacity(i, dimension) === 0 || !(node.name ?? "").toLowerCase().includes(wanted) ? [] : [i])),
    [cluster, wanted, dimension],
  );
  const selected = cluster.nodes.findIndex((node) => node?.name === route.name);
  const name = cluster.dimensions[dimension] ?? "";
  return (
    <div class="columns">
      <section class="panel" aria-labelledby="nodes-title">
        <h1 id="nodes-title">{shown.length.toLocaleString("en-US")} {shown.length === 1 ? "node" : "nodes"} with {labelOf(name)}: {said(name, cluster.total(dimension))}</h1>
        <Resources />
        <nav class="tabs" aria-label="Colours">
          {colourings.map((c) => (
            <a key={c.by} href={having(route, { by: c.by })} aria-current={c.by === by ? "true" : undefined}>{c.text}</a>
          ))}
        </nav>
        {by === "fit" && <FitChoice text={fit.text} />}
        {fit.fault !== undefined && <Failed fault={fit.fault} />}
        {cluster.nodes.length > 24 && <Filter label="Find a node" />}
        <MapLegend by={by} shade={shade} />
        <Grid shown={shown} shade={shade} />
      </section>
      <aside class="panel" tabIndex={-1} aria-label="Details">
        {selected < 0 ? <Empty>Choose a node to see what runs on it.</Empty> : <NodePanel node={selected} />}
      </aside>
    </div>
  );
}

// useFitting asks on which nodes the first waiting task of a job fits.
function useFitting(job: string) {
  const { cluster, policy } = usePage();
  const index = cluster.jobIndex(job);
  const task = useMemo(() => (index === undefined ? undefined : cluster.tasksOf(index).find((t) => waits(t.json.status))), [cluster, index]);
  const steps = useMemo<StepJson[] | undefined>(
    () => (task === undefined ? undefined : [{ nodes: { tasks: { indices: [task.number] } } }]),
    [task],
  );
  const { answer, fault } = useSteps(steps, policy);
  const row = answer?.answers[0]?.nodes?.tasks?.[0];
  const nodes = useMemo(() => {
    const fits = row === undefined || row.task !== undefined && row.task !== task?.number ? [] : (row.nodes ?? []).filter((_, i) => row.fits?.[i]);
    return new Set(fits);
  }, [row, task]);
  const text = job === "" ? "" : task === undefined ? "No task of this job waits." :
    `${cluster.taskName(task.number)} fits on ${nodes.size} of ${cluster.nodes.length} nodes.`;
  return { nodes, fault, text };
}

function FitChoice({ text }: { text: string }) {
  const { cluster, route } = usePage();
  const waiting = useMemo(
    () => cluster.jobs.flatMap((j, i) => (j?.groups?.some((g) => g.tasks?.some((t) => waits(t.status))) ? [cluster.jobName(i)] : [])),
    [cluster],
  );
  const most = 200;
  return (
    <p class="choice">
      <label>
        A task of{" "}
        <select onChange={(event) => { location.hash = having(route, { job: event.currentTarget.value }); }}>
          <option value="">choose a job</option>
          {waiting.slice(0, most).map((job) => <option key={job} value={job} selected={job === route.query["job"]}>{job}</option>)}
        </select>
      </label>{" "}
      <span role="status"><Sentence text={text} /></span>
    </p>
  );
}

function MapLegend({ by, shade }: { by: Colouring; shade: Shade }) {
  const { cluster } = usePage();
  if (by === "use") {
    return (
      <ul class="legend" aria-label="Colours">
        <li><i class="key has" />a queue within what it deserves</li><li><i class="key borrowed" />a queue that borrows</li>
        <li><i class="key others" />others</li><li><i class="key free" />free</li>
      </ul>
    );
  }
  if (by === "fit") {
    return (
      <ul class="legend" aria-label="Colours">
        <li><i class="key good" />free, and the task fits</li><li><i class="key free" />free, but the task does not fit</li><li><i class="key others" />in use</li>
      </ul>
    );
  }
  const last = hues - 1;
  const more = [...shade.palette.values()].filter((hue) => hue === last).length;
  return (
    <ul class="legend" aria-label="Colours">
      {[...shade.palette].filter(([, hue]) => hue < last || more === 1).map(([queue, hue]) => (
        <li key={queue}><i class={`key hue${hue}`} /><bdi>{cluster.queueName(queue)}</bdi></li>
      ))}
      {more > 1 && <li><i class={`key hue${last}`} />{more} more queues</li>}
      <li><i class="key others" />others</li><li><i class="key free" />free</li>
    </ul>
  );
}

const cellWidth = 48;
const cellHeight = 62;

// Grid draws the visible nodes.
function Grid({ shown, shade }: { shown: readonly number[]; shade: Shade }) {
  const { cluster, dimension, route } = usePage();
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ columns: 12, from: 0, to: 12 });
  const look = (): void => {
    const element = box.current;
    if (element !== null) {
      const columns = Math.max(1, Math.floor(element.clientWidth / cellWidth));
      const from = Math.max(0, Math.floor(element.scrollTop / cellHeight) - 2);
      const to = Math.ceil((element.scrollTop + element.clientHeight) / cellHeight) + 2;
      setView((old) => (old.columns === columns && old.from === from && old.to === to ? old : { columns, from, to }));
    }
  };
  useEffect(() => {
    look();
    const observer = new ResizeObserver(look);
    if (box.current !== null) {
      observer.observe(box.current);
    }
    return () => observer.disconnect();
  }, []);
  if (shown.length === 0) {
    return <Empty>No node matches.</Empty>;
  }
  const lines = Math.ceil(shown.length / view.columns);
  const first = view.from * view.columns;
  return (
    <div class="map" ref={box} onScroll={look} role="list" aria-label="Nodes" tabIndex={0}>
      <div class="map-all" role="presentation" style={{ height: `${lines * cellHeight}px` }}>
        {shown.slice(first, view.to * view.columns).map((node, k) => {
          const at = first + k;
          const [x, y] = [(at % view.columns) * cellWidth, Math.floor(at / view.columns) * cellHeight];
          return (
            <div
              key={node} role="listitem" class={cluster.nodeName(node) === route.name ? "map-cell selected" : "map-cell"}
              aria-posinset={at + 1} aria-setsize={shown.length} style={{ transform: `translate(${x}px, ${y}px)` }}
            >
              <NodeCell
                cluster={cluster} node={node} dimension={dimension} shade={shade} href={to(route, "nodes", cluster.nodeName(node), keptOf(route.query))}
              />
            </div>
          );
        })}
      </div>
    </div>
  );
}

function keptOf(query: Readonly<Record<string, string>>): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const part of ["by", "q", "job"]) {
    const value = query[part];
    if (value !== undefined) {
      kept[part] = value;
    }
  }
  return kept;
}

function NodePanel({ node }: { node: number }) {
  const { cluster, route } = usePage();
  const json = cluster.nodes[node];
  const uses = cluster.uses(node);
  const kept = reserved(cluster, node);
  return (
    <section aria-labelledby="node-title">
      <h2 id="node-title" class="big"><bdi>{cluster.nodeName(node)}</bdi></h2>
      {json?.unschedulable !== undefined && (
        <p><span class="pill bad">takes no new tasks</span> {(json.unschedulable.cause ?? "").replace("UNSCHEDULABLE_CAUSE_", "").replace("_", " ").toLowerCase()} <Sentence text={json.unschedulable.detail} /></p>
      )}
      {kept.length > 0 && (
        <>
          <h3>Reserved</h3>
          <ul class="plain">{kept.map((text) => <li key={text}><Sentence text={text} /></li>)}</ul>
        </>
      )}
      <div class="scroll" tabIndex={0} role="region" aria-label="Resources of the node">
        <table class="grid">
          <thead><tr><th>Resource</th><th>in use</th><th>of</th><th>free</th></tr></thead>
          <tbody>
            {cluster.offered().filter((d) => cluster.capacity(node, d) > 0).map((d) => {
              const name = cluster.dimensions[d] ?? "";
              const [used, of] = [cluster.used(node, d), cluster.capacity(node, d)];
              return <tr key={d}><th scope="row">{labelOf(name)}</th>{alike(name, used, of, of - used).map((text, i) => <td key={i}>{text}</td>)}</tr>;
            })}
          </tbody>
        </table>
      </div>
      <h3>{uses.length === 0 ? "No job of the snapshot runs here" : `${uses.length} ${uses.length === 1 ? "job" : "jobs"}`}</h3>
      <ul class="plain">
        {uses.map((use) => (
          <li key={use.job} class="job-row">
            <span><a href={to(route, "job", cluster.jobName(use.job))}><bdi>{cluster.jobName(use.job)}</bdi></a> <small><bdi>{cluster.queueName(use.queue)}</bdi></small></span>
            <small>{use.tasks} {use.tasks === 1 ? "task" : "tasks"}{use.releasing > 0 ? `, ${use.releasing} releasing` : ""}: {allSaid(cluster.dimensions, { dimensions: [...use.amounts.keys()], amounts: [...use.amounts.values()] })}</small>
          </li>
        ))}
      </ul>
    </section>
  );
}
