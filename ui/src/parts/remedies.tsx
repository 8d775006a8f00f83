// What would make a waiting job run: the smallest changes, each tried by the server and with a link to What if.
import { useMemo } from "preact/hooks";

import { useAsked } from "../asked.ts";
import type { Answers } from "../core/ask.ts";
import type { EditJson, RemedyJson, StepJson } from "../core/contract.ts";
import type { Cluster } from "../core/cluster.ts";
import { amountFields, argumentsOf, formatEdits, type Edit } from "../core/edit.ts";
import { isolated } from "../core/isolate.ts";
import { to } from "../core/route.ts";
import { count, say } from "../core/say.ts";
import { patchesOf } from "../core/source.ts";
import { usePage, useSteps } from "../page.tsx";
import { Command, quoted } from "./copy.tsx";
import { Sentence } from "./sentence.tsx";

const pause = 300;

export function RemediesPanel({ index }: { index: number }) {
  const { cluster, opened, policy, route } = usePage();
  const uid = cluster.jobs[index]?.uid || cluster.jobName(index);
  const steps = useMemo<StepJson[]>(() => [{ remedies: { job: { names: [uid] } } }], [uid]);
  const { answer, pending } = useSteps(steps, policy, undefined, pause);
  const path = pending || answer === undefined ? "" : opened.patches;
  const patches = useAsked(path === "" ? undefined : `patches ${opened.digest} ${policy.name} ${uid}`, (signal) => patchesOf(path, answer as Answers, signal)).answer;
  const remedies = pending ? undefined : answer?.answers[0]?.remedies;
  if (remedies === undefined) {
    return null;
  }
  return (
    <section class="remedies" aria-labelledby="remedies-title">
      <h2 id="remedies-title">{say("letsRun", { changes: count(remedies.remedies?.length ?? 0, "change") })}</h2>
      {(remedies.remedies ?? []).length === 0 ? <p><Sentence text={remedies.text} /></p> : (
        <ul class="plain">
          {(remedies.remedies ?? []).map((remedy, i) => {
            const edits = editsOf(cluster, remedy);
            const words = argumentsOf(cluster, remedy);
            const queue = edits?.flatMap((e) => ("queue" in e ? [e.queue] : []))[0] ?? "";
            return (
              <li key={i} class="job-row">
                <span>
                  <Sentence text={remedy.text} />
                  {words !== undefined && <Command text={quoted("apportion", "whatif", ...words)} />}
                  {patches?.[i]?.map((p, k) => (p.kubectl === undefined ? <small key={k}>{p.why}</small> : <Command key={k} text={quoted(...p.kubectl)} />))}
                </span>
                {edits !== undefined && <a class="button" aria-label={isolated(`Try it: ${remedy.text ?? ""}`)} href={to(route, "whatif", "", { edit: formatEdits(edits), queue })}>Try it</a>}
              </li>
            );
          })}
        </ul>
      )}
    </section>
  );
}

// editsOf returns the edits of What if that make the change of a remedy; undefined if What if cannot make a part of it.
export function editsOf(cluster: Cluster, remedy: RemedyJson): Edit[] | undefined {
  const edits = (remedy.edits ?? []).map((e) => editOf(cluster, e));
  return edits.length === 0 || edits.includes(undefined) ? undefined : (edits as Edit[]);
}

function editOf(cluster: Cluster, e: EditJson): Edit | undefined {
  const value = Number(e.amount ?? 0);
  const queue = e.queue?.name ?? "";
  const kind = amountFields.find((f) => e.kind === `EDIT_KIND_${f.toUpperCase()}`);
  const dimension = cluster.dimensions[e.dimension ?? -1];
  if (kind !== undefined && dimension !== undefined && Number.isFinite(value)) {
    return { kind, queue, dimension, value };
  }
  if (e.kind === "EDIT_KIND_WEIGHT") {
    return { kind: "weight", queue, value };
  }
  if (e.kind === "EDIT_KIND_NODES_LIKE") {
    return { kind: "add", like: e.node?.name ?? "", count: value };
  }
  if (e.kind === "EDIT_KIND_OPEN") {
    return { kind: "open", queue };
  }
  if (e.kind === "EDIT_KIND_UNCORDON") {
    return { kind: "uncordon", node: e.node?.name ?? "" };
  }
  if (e.kind === "EDIT_KIND_END" && e.job?.index !== undefined) {
    return { kind: "end", job: cluster.jobName(e.job.index) };
  }
  return undefined;
}
