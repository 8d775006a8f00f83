// One queue: its numbers, its jobs, and how its share is computed.
import { useMemo } from "preact/hooks";

import { Derivation } from "../parts/derivation.tsx";
import { Resources } from "../parts/resources.tsx";
import { to } from "../core/route.ts";
import { QueueHistory } from "../parts/history.tsx";
import { QueueJobs, QueueNumbers } from "../parts/queue.tsx";
import { Empty } from "../parts/states.tsx";
import { Budgets, UsagePlots, useUsage, WithMemory } from "../parts/usage.tsx";
import { usePage } from "../page.tsx";

// QueueUsage says what past usage changes for a queue, and draws it.
function QueueUsage({ name }: { name: string }) {
  const { cluster, dimension } = usePage();
  const only = useMemo(() => new Set([name]), [name]);
  const queues = useMemo(() => [name], [name]);
  const answer = useUsage(queues);
  if (cluster.snapshot.memory === undefined && answer === undefined) {
    return null;
  }
  return (
    <section aria-labelledby="queue-used">
      <h2 id="queue-used">What it used</h2>
      {answer !== undefined && <UsagePlots answer={answer} dimension={cluster.dimensions[dimension] ?? ""} only={only} />}
      <Budgets queues={queues} />
      <WithMemory names={only} />
    </section>
  );
}

export function QueueView() {
  const { cluster, opened, route } = usePage();
  if (cluster.queueIndex(route.name) === undefined) {
    return <section class="panel"><h1><bdi>{route.name || "No queue"}</bdi></h1><Empty>This cluster has no queue of this name.</Empty></section>;
  }
  return (
    <div class="columns even">
      <section class="panel" aria-labelledby="queue-title">
        <h1 id="queue-title"><bdi>{route.name}</bdi></h1>
        <QueueNumbers name={route.name} />
        <QueueUsage name={route.name} />
        <QueueHistory name={route.name} />
        <QueueJobs name={route.name} job={(name) => to(route, "job", name)} next />
      </section>
      <section class="panel" aria-labelledby="derivation-title">
        <h2 id="derivation-title" class="big">How its share is computed</h2>
        <Resources />
        {opened.restricted ? <Empty>This needs the numbers of all queues, and you may see only your own.</Empty> : <Derivation name={route.name} />}
      </section>
    </div>
  );
}
