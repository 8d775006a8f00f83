// The certificate of `fair`: every number with what proves it, checked here by the page's own code.
import { useMemo } from "preact/hooks";

import { useAsked } from "../asked.ts";
import type { Fault } from "../core/ask.ts";
import { check, unchecked } from "../core/certificate.ts";
import type { FairJson, PolicyJson, SnapshotJson, StepJson } from "../core/contract.ts";
import { download } from "../core/download.ts";
import { having } from "../core/route.ts";
import { Division } from "../parts/derivation.tsx";
import { Resources } from "../parts/resources.tsx";
import { Empty, Failed, Loading } from "../parts/states.tsx";
import { usePage, useSteps } from "../page.tsx";

// fairOf are the settings of plugin fair in a policy.
export function fairOf(policy: PolicyJson | undefined): FairJson | undefined {
  return policy?.tiers?.flatMap((tier) => tier.plugins ?? []).find((plugin) => plugin.fair !== undefined)?.fair;
}

// useWhole returns the snapshot with all of its tasks. Of one that the server maintains, the page holds what views need, and downloads the
// version, if the server still holds it.
function useWhole(wanted: boolean): { snapshot: SnapshotJson | undefined; fault: Fault | undefined } {
  const { cluster, opened } = usePage();
  const kept = opened.name !== "";
  const { answer, fault } = useAsked(
    wanted && kept ? `whole ${opened.name} ${opened.digest}` : undefined, (signal) => download(opened.digest, signal), 0, opened.digest,
  );
  return { snapshot: kept ? answer : cluster.snapshot, fault };
}

const steps: readonly StepJson[] = [{ shares: { explain: {} } }];

export function CertificateView() {
  const { cluster, opened, policies, policy, route, dimension } = usePage();
  const settings = fairOf(policy.policy);
  const asked = settings !== undefined && !opened.restricted;
  const { answer, fault: refused } = useSteps(asked ? steps : undefined, policy);
  const { snapshot, fault: unread } = useWhole(asked);
  const fault = refused ?? unread;
  const shares = answer?.answers[0]?.shares?.plugins?.find((p) => p.fair !== undefined);
  const fair = shares?.fair;
  const checked = useMemo(
    () => (shares === undefined || settings === undefined || snapshot === undefined ? undefined : check(snapshot, settings, answer?.basis.dimensions ?? cluster.dimensions, shares)),
    [shares, settings, cluster, snapshot, answer],
  );
  const other = policies.find((p) => fairOf(p.policy) !== undefined);
  const divisions = (fair?.divisions ?? []).filter((x) => (x.dimension ?? 0) === dimension && (x.children ?? []).length > 0);
  const few = 30;
  return (
    <section class="panel" aria-labelledby="certificate-title">
      <h1 id="certificate-title">Certificate</h1>
      {settings === undefined ? (
        <Empty>
          Only policy fair proves its numbers.{" "}
          {other !== undefined && <a href={having(route, { policy: other.name })}>Look at {other.title}</a>}
        </Empty>
      ) : opened.restricted ? (
        <Empty>This needs the numbers of all queues, and you may see only your own.</Empty>
      ) : fault !== undefined ? <Failed fault={fault} /> : checked === undefined ? <Loading what="Asking for the certificate" /> : (
        <>
          <p class="summary" role="status">
            {checked.wrong === 0 ? <span class="pill good">true</span> : <span class="pill bad">not true</span>}{" "}
            {checked.wrong === 0
              ? `This page has checked ${checked.compared.toLocaleString("en-US")} numbers of the answer: each is what the rules make of the snapshot.`
              : `${checked.wrong.toLocaleString("en-US")} of ${checked.compared.toLocaleString("en-US")} numbers are not what the rules make of the snapshot.`}
          </p>
          <p class="note">Not checked: {unchecked.join(", ")}. The command <code>apportion verify</code> checks the same, and plans too.</p>
          {checked.faults.length > 0 && <ul>{checked.faults.map((text) => <li key={text}>{text}</li>)}</ul>}
          <Resources />
          {divisions.slice(0, few).map((x, i) => <Division key={i} x={x} quantum={Number(fair?.quanta?.[dimension] ?? 1)} />)}
          {divisions.length > few && <p class="note">{divisions.length - few} more divisions were checked and are not drawn.</p>}
        </>
      )}
    </section>
  );
}
