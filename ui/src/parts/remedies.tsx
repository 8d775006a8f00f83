// What would make a waiting job run: the smallest changes, each tried by the server and with a link to What if.
import { useMemo } from "preact/hooks";

import { useAsked } from "../asked.ts";
import type { Answers } from "../core/ask.ts";
import type { StepJson } from "../core/contract.ts";
import { argumentsOf, editsOf, formatEdits } from "../core/edit.ts";
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
            const queue = edits.find((e) => e.object === "queue")?.name ?? "";
            return (
              <li key={i} class="job-row">
                <span>
                  <Sentence text={remedy.text} />
                  {edits.length > 0 && <Command text={quoted("apportion", "whatif", ...argumentsOf(edits))} />}
                  {patches?.[i]?.map((p, k) => (p.kubectl === undefined ? <small key={k}>{p.why}</small> : <Command key={k} text={quoted(...p.kubectl)} />))}
                </span>
                {edits.length > 0 && <a class="button" aria-label={isolated(`Try it: ${remedy.text ?? ""}`)} href={to(route, "whatif", "", { edit: formatEdits(edits), queue })}>Try it</a>}
              </li>
            );
          })}
        </ul>
      )}
    </section>
  );
}
