// How a waiting job could be placed: the nodes of its tasks, and the tasks to evict.
import { useMemo } from "preact/hooks";

import { allSaid } from "../core/amount.ts";
import type { StepJson } from "../core/contract.ts";
import { to } from "../core/route.ts";
import { count, word } from "../core/say.ts";
import { usePage, useSteps } from "../page.tsx";
import { NodeCell, shadeOf } from "./nodemap.tsx";
import { Failed } from "./states.tsx";
import { Sentence } from "./sentence.tsx";

const most = 50;

export function PlanPanel({ index }: { index: number }) {
  const { cluster, dimension, policy, route } = usePage();
  const uid = cluster.jobs[index]?.uid || cluster.jobName(index);
  const steps = useMemo<StepJson[]>(() => [{ plan: { job: { names: [uid] } } }], [uid]);
  const { answer, fault, pending } = useSteps(steps, policy);
  const plan = pending ? undefined : answer?.answers[0]?.plan;
  const shade = useMemo(() => shadeOf(cluster, [], dimension, "use"), [cluster, dimension]);
  if (plan === undefined) {
    return fault === undefined ? null : <Failed fault={fault} />;
  }
  const nodes = new Map<number, number>();
  for (const p of plan.placements ?? []) {
    nodes.set(p.node ?? 0, (nodes.get(p.node ?? 0) ?? 0) + 1);
  }
  const victims = plan.victims ?? [];
  return (
    <section class="plan" aria-labelledby="plan-title">
      <h2 id="plan-title">How it could be placed</h2>
      <p><Sentence text={plan.text} /></p>
      {nodes.size > 0 && (
        <ul class="nodes" aria-label="Nodes of the plan">
          {[...nodes].slice(0, most).map(([node, tasks]) => (
            <li key={node}>
              <NodeCell cluster={cluster} node={node} dimension={dimension} shade={shade} href={to(route, "nodes", cluster.nodeName(node))} />
              <small><bdi>{cluster.nodeName(node)}</bdi>{tasks > 1 && `: ${tasks} tasks`}</small>
            </li>
          ))}
        </ul>
      )}
      {victims.length > 0 && (
        <>
          <h3>{count(victims.length, "eviction")}, in this order</h3>
          <ol class="plain">
            {victims.slice(0, most).map((v) => (
              <li key={v.task ?? 0} class="job-row">
                <span><bdi>{cluster.task(v.task ?? 0) === undefined ? v.uid : cluster.taskName(v.task ?? 0)}</bdi> <small>of <bdi>{cluster.queueName(v.queue)}</bdi>{v.node !== undefined && <>, on <bdi>{cluster.nodeName(v.node)}</bdi></>}</small></span>
                <small>frees {allSaid(cluster.dimensions, v.freed)}{word(v.returns) !== undefined && `; ${word(v.returns) ?? ""}`}</small>
              </li>
            ))}
          </ol>
          {victims.length > most && <p class="note">{victims.length - most} more are not listed.</p>}
        </>
      )}
    </section>
  );
}
