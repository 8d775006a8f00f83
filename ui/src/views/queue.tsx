// One queue on a page of its own: its numbers, its jobs, and how its share comes about.
import { Derivation } from "../parts/derivation.tsx";
import { Resources } from "../parts/resources.tsx";
import { to } from "../core/route.ts";
import { QueueJobs, QueueNumbers } from "../parts/queue.tsx";
import { Empty } from "../parts/states.tsx";
import { usePage } from "../page.tsx";

export function QueueView() {
  const { cluster, opened, route } = usePage();
  if (cluster.queueIndex(route.name) === undefined) {
    return <section class="panel"><h1>{route.name || "No queue"}</h1><Empty>There is no queue of this name in this cluster.</Empty></section>;
  }
  return (
    <div class="columns even">
      <section class="panel" aria-labelledby="queue-title">
        <h1 id="queue-title">{route.name}</h1>
        <QueueNumbers name={route.name} />
        <QueueJobs name={route.name} job={(name) => to(route, "job", name)} />
      </section>
      <section class="panel" aria-labelledby="derivation-title">
        <h2 id="derivation-title" class="big">How its share comes about</h2>
        <Resources />
        {opened.restricted ? <Empty>It takes the numbers of all queues to show that, and you see your own.</Empty> : <Derivation name={route.name} />}
      </section>
    </div>
  );
}
