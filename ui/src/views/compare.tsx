// Policies side by side on the same cluster.
import { having } from "../core/route.ts";
import { Resources } from "../parts/resources.tsx";
import { Sides } from "../parts/sides.tsx";
import { Empty, Failed, Loading } from "../parts/states.tsx";
import { sharesSteps, usePage, useSteps, waitingSteps } from "../page.tsx";

export function CompareView() {
  const { cluster, policies, policy, route } = usePage();
  const other = policies.find((p) => p.name === route.query["with"] && p !== policy) ?? policies.find((p) => p !== policy);
  const was = useSteps(sharesSteps, policy);
  const wasWaiting = useSteps(waitingSteps, policy);
  const is = useSteps(other === undefined ? undefined : sharesSteps, other ?? policy);
  const isWaiting = useSteps(other === undefined ? undefined : waitingSteps, other ?? policy);
  const fault = was.fault ?? is.fault ?? wasWaiting.fault ?? isWaiting.fault;
  return (
    <section class="panel" aria-labelledby="compare-title">
      <h1 id="compare-title">{policy.title}, and another policy</h1>
      {other === undefined ? <Empty>There is no other policy to compare with.</Empty> : (
        <>
          <p class="choice">
            <label>
              Compare with{" "}
              <select onChange={(event) => { location.hash = having(route, { with: event.currentTarget.value }); }}>
                {policies.filter((p) => p !== policy).map((p) => <option key={p.name} value={p.name} selected={p === other}>{p.title}</option>)}
              </select>
            </label>
          </p>
          <Resources />
          {fault !== undefined ? <Failed fault={fault} /> : was.answer === undefined || is.answer === undefined ? <Loading what="Loading the shares of both policies" /> : (
            <Sides
              before={{ label: policy.title, cluster, shares: was.answer.answers[0]?.shares, waiting: wasWaiting.answer?.answers[0]?.explain }}
              after={{ label: other.title, cluster, shares: is.answer.answers[0]?.shares, waiting: isWaiting.answer?.answers[0]?.explain }}
              busy={is.pending || was.pending}
            />
          )}
        </>
      )}
    </section>
  );
}
