// One job, with the nodes that its tasks are on.
import { useMemo } from "preact/hooks";

import { allSaid } from "../core/amount.ts";
import { requestOf, waits } from "../core/cluster.ts";
import { to } from "../core/route.ts";
import { plain } from "../core/say.ts";
import { rows } from "../core/shares.ts";
import { JobPanel } from "../parts/job.tsx";
import { List } from "../parts/list.tsx";
import { NodeCell, shadeOf } from "../parts/nodemap.tsx";
import { PlanPanel } from "../parts/plan.tsx";
import { RemediesPanel } from "../parts/remedies.tsx";
import { Resources } from "../parts/resources.tsx";
import { Shares } from "../parts/shares.tsx";
import { Empty } from "../parts/states.tsx";
import { sharesSteps, usePage, useSteps } from "../page.tsx";

export function JobView() {
  const { route, cluster, opened } = usePage();
  const index = cluster.jobIndex(route.name);
  if (index === undefined) {
    return <section class="panel"><h1><bdi>{route.name || "No job"}</bdi></h1><Empty>This cluster has no job of this name.</Empty></section>;
  }
  return (
    <div class="columns even">
      <section class="panel">
        <JobPanel name={route.name} heading="h1" />
        {!opened.restricted && cluster.tasksOf(index).some((t) => waits(t.json.status)) && <RemediesPanel index={index} />}
        {!opened.restricted && (
          <p class="actions"><a class="button" href={to(route, "whatif", "", { queue: cluster.jobs[index]?.queue ?? "" })}>Change its queue in What if</a></p>
        )}
      </section>
      <aside class="panel" tabIndex={-1} aria-label="Its queue, its plan and its tasks">
        <Resources />
        <Own index={index} />
        {!opened.restricted && cluster.tasksOf(index).some((t) => waits(t.json.status)) && <PlanPanel index={index} />}
        <Tasks index={index} />
      </aside>
    </div>
  );
}

// Own shows the job's queue, and where it runs.
function Own({ index }: { index: number }) {
  const { cluster, dimension, policy, route } = usePage();
  const shares = useSteps(sharesSteps, policy).answer?.answers[0]?.shares;
  const all = useMemo(() => rows(cluster, shares), [cluster, shares]);
  const own = all.filter((row) => row.index === cluster.queueOf(index)).map((row) => ({ ...row, depth: 0, children: [] }));
  const nodes = useMemo(() => [...new Set(cluster.tasksOf(index).flatMap((t) => t.json.node ?? []))], [cluster, index]);
  const shade = useMemo(() => shadeOf(cluster, all, dimension, "use", { job: index }), [cluster, all, dimension, index]);
  return (
    <>
      {own.length > 0 && <Shares rows={own} href={(row) => to(route, "queue", row.name)} sorting={false} />}
      {nodes.length > 0 && (
        <section aria-labelledby="job-nodes">
          <h2 id="job-nodes">Runs on {nodes.length} {nodes.length === 1 ? "node" : "nodes"}; its own part is marked</h2>
          <ul class="nodes">
            {nodes.slice(0, 96).map((node) => (
              <li key={node}>
                <NodeCell cluster={cluster} node={node} dimension={dimension} shade={shade} href={to(route, "nodes", cluster.nodeName(node))} />
              </li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}

const taskHeight = 48;

function Tasks({ index }: { index: number }) {
  const { cluster, route } = usePage();
  const tasks = useMemo(() => cluster.tasksOf(index), [cluster, index]);
  if (tasks.length === 0) {
    return null;
  }
  return (
    <section aria-labelledby="job-tasks">
      <h2 id="job-tasks">{tasks.length} {tasks.length === 1 ? "task" : "tasks"}</h2>
      <List
        label="Tasks" count={tasks.length} height={taskHeight} rowKey={(i) => String(tasks[i]?.number)}
        row={(i) => {
          const task = tasks[i];
          if (task === undefined) {
            return null;
          }
          const status = plain(task.json.status ?? "TASK_STATUS_PENDING", "TASK_STATUS_");
          return (
            <div class="task-row">
              <b><bdi>{cluster.taskName(task.number)}</bdi></b>
              <span class="task-where">
                {task.json.node === undefined ? status : <>{status} on <a href={to(route, "nodes", cluster.nodeName(task.json.node))}><bdi>{cluster.nodeName(task.json.node)}</bdi></a></>}
              </span>
              <small>{allSaid(cluster.dimensions, requestOf(task))}</small>
            </div>
          );
        }}
      />
    </section>
  );
}
