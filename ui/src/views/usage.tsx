// Who used what over the last weeks, and what that changes.
import { Resources } from "../parts/resources.tsx";
import { Empty } from "../parts/states.tsx";
import { Budgets, UsagePlots, useUsage, WithMemory } from "../parts/usage.tsx";
import { usePage } from "../page.tsx";

const all: readonly string[] = [];

export function UsageView() {
  const { cluster, dimension, opened } = usePage();
  const answer = useUsage(all);
  return (
    <section class="panel" aria-labelledby="usage-title">
      <h1 id="usage-title">Who used what</h1>
      <Resources />
      {answer !== undefined ? <UsagePlots answer={answer} dimension={cluster.dimensions[dimension] ?? ""} /> : (
        <Empty>{opened.ledger === "" ? "No ledger is kept of this cluster." : "The ledger has no usage yet."}</Empty>
      )}
      <Budgets queues={all} />
      <WithMemory />
    </section>
  );
}
