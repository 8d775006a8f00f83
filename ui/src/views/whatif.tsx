// What if: changes of queues, nodes and jobs, with the state before and after side by side.
import { useMemo, useRef, useState } from "preact/hooks";

import { go } from "../address.ts";
import { amountOf, fieldOf, labelOf, said, unitsOf } from "../core/amount.ts";
import type { Cluster } from "../core/cluster.ts";
import type { StepJson } from "../core/contract.ts";
import { amountFields, amountKind, editOf, formatEdits, isJob, parseEdits, saidEdit, withEdit, withoutEdit, type Change, type Edit } from "../core/edit.ts";
import { having } from "../core/route.ts";
import { isFlat } from "../core/shares.ts";
import { Checks, Verdict } from "../parts/job.tsx";
import { Resources } from "../parts/resources.tsx";
import { Sentence } from "../parts/sentence.tsx";
import { Sides } from "../parts/sides.tsx";
import { Failed, Loading } from "../parts/states.tsx";
import { flatSharesSteps, sharesSteps, useChanged, usePage, useSteps, waitingSteps } from "../page.tsx";

// Pause in milliseconds before the page asks why jobs wait, which costs much more than shares.
const later = 250;

export function WhatIfView() {
  const { route } = usePage();
  const edits = useMemo(() => parseEdits(route.query["edit"]), [route.query["edit"]]);
  const set = (next: readonly Change[]): void => go(having(route, { edit: formatEdits(next) }), true);
  return (
    <div class="columns even">
      <section class="panel" aria-labelledby="whatif-title">
        <h1 id="whatif-title">What if …</h1>
        <Edits edits={edits} set={set} />
        <Resources />
        <QueueFields edits={edits} set={set} />
        <NodeFields edits={edits} set={set} />
        <JobField edits={edits} set={set} />
      </section>
      <section class="panel" aria-label="Before and after"><Result edits={edits} /></section>
    </div>
  );
}

interface Props {
  readonly edits: readonly Change[];
  readonly set: (edits: readonly Change[]) => void;
}

function Edits({ edits, set }: Props) {
  if (edits.length === 0) {
    return <p class="note first">Change a setting to see its effects. The address of this page contains all changes.</p>;
  }
  return (
    <ul class="chips" aria-label="Changes">
      {edits.map((edit, i) => {
        const text = saidEdit(edit, said);
        return <li key={i}><Sentence text={text} /> <button type="button" aria-label={`Take back: ${text}`} onClick={() => set(withoutEdit(edits, edit))}>×</button></li>;
      })}
      {edits.length > 1 && <li><button type="button" onClick={() => set([])}>Take back all</button></li>}
    </ul>
  );
}

function QueueFields({ edits, set }: Props) {
  const { cluster, dimension, policy, route } = usePage();
  const shares = useSteps(sharesSteps, policy).answer?.answers[0]?.shares;
  const named = useMemo(() => cluster.queues.flatMap((q) => (q?.name && q.name !== "root" ? [q.name] : [])), [cluster]);
  const busy = useMemo(() => new Set(cluster.jobs.map((j) => j?.queue)), [cluster]);
  const name = cluster.queueIndex(route.query["queue"] ?? "") === undefined ? (named.find((n) => busy.has(n)) ?? named[0] ?? "") : (route.query["queue"] ?? "");
  // The long list is built once, not for each step of a slider.
  const names = useMemo(() => named.map((n) => <option key={n} value={n} selected={n === name}>{n}</option>), [named, name]);
  const queue = cluster.queues[cluster.queueIndex(name) ?? -1];
  const d = cluster.dimensions[dimension] ?? "";
  const units = unitsOf(d);
  if (queue === undefined) {
    return null;
  }
  const weight = editOf(edits, "EDIT_KIND_WEIGHT", name);
  // A policy that does not go by weights states none.
  const weighted = weight !== undefined || shares?.plugins?.some((plugin) => plugin.queues?.some((q) => q.weight)) !== false;
  const total = Math.max(1, Math.ceil(cluster.total(dimension) / units));
  return (
    <fieldset>
      <legend>A queue</legend>
      <label class="row">
        <span>Queue</span>
        <select onChange={(event) => { location.hash = having(route, { queue: event.currentTarget.value }); }}>
          {names}
        </select>
      </label>
      {weighted && (
        <Slider
          label={`Weight of ${name}`} text="Weight" most={Math.max(20, 2 * (queue.weight ?? 1))} step={1} written={String(queue.weight ?? 1)}
          value={String(weight?.amount ?? queue.weight ?? 1)}
          onValue={(text) => {
            const value = Number(text);
            if (text !== "" && Number.isSafeInteger(value) && value >= 0) {
              const next: Edit = { kind: "EDIT_KIND_WEIGHT", object: "queue", name, amount: value };
              set(value === (queue.weight ?? 1) ? withoutEdit(edits, next) : withEdit(edits, next));
            }
          }}
        />
      )}
      {amountFields.map((field) => {
        const was = amountOf(queue[field], dimension);
        const kind = amountKind(field);
        const edit = editOf(edits, kind, name, d);
        const is = edit !== undefined ? edit.amount : was;
        return (
          <Slider
            key={field} label={`${field} of ${name} in ${d}`} text={`${field[0]?.toUpperCase()}${field.slice(1)}`} unit={labelOf(d)} most={total}
            step={total > 400 ? Math.ceil(total / 400) : 1} value={fieldOf(d, is)} written={was === undefined ? "none" : fieldOf(d, was)}
            onValue={(text) => {
              const value = text === "" ? undefined : Math.round(Number(text) * units);
              if (value === undefined || (Number.isFinite(value) && value >= 0)) {
                const next: Edit = { kind, object: "queue", name, dimension: d, ...(value === undefined ? {} : { amount: value }) };
                set(value === was ? withoutEdit(edits, next) : withEdit(edits, next));
              }
            }}
          />
        );
      })}
    </fieldset>
  );
}

function Slider(p: {
  label: string; text: string; unit?: string; most: number; step: number; value: string; written: string; onValue: (text: string) => void;
}) {
  const changed = p.value !== (p.written === "none" ? "" : p.written);
  return (
    <div class={changed ? "row changed" : "row"}>
      <span>{p.text}{p.unit !== undefined && <small> {p.unit}</small>}</span>
      <input
        type="range" min="0" max={Math.max(p.most, Number(p.value))} step={p.step} value={p.value === "" ? "0" : p.value} aria-label={`${p.label}, slider`}
        onInput={(event) => p.onValue(event.currentTarget.value)}
      />
      <input
        type="number" min="0" step="any" value={p.value} placeholder="none" aria-label={p.label}
        onInput={(event) => p.onValue(event.currentTarget.value)}
      />
      <small>{changed ? `was ${p.written}` : ""}</small>
    </div>
  );
}

function NodeFields({ edits, set }: Props) {
  const { cluster } = usePage();
  const shapes = useMemo(() => {
    const seen = new Map<string, string>();
    for (const node of cluster.nodes) {
      const key = JSON.stringify([node?.allocatable ?? null, node?.group ?? null]);
      if (node?.name && !seen.has(key)) {
        seen.set(key, node.name);
      }
    }
    return [...seen.values()].slice(0, 50);
  }, [cluster]);
  const removed = edits.flatMap((e) => (!isJob(e) && e.kind === "EDIT_KIND_REMOVE" ? [e.name] : []));
  const most = 500;
  const left = useMemo(
    () => cluster.nodes.slice(0, most).map((n) => n?.name && !removed.includes(n.name) && <option key={n.name} value={n.name}>{n.name}</option>),
    [cluster, removed.join("\n")],
  );
  if (shapes.length === 0) {
    return null;
  }
  return (
    <fieldset>
      <legend>Nodes</legend>
      {shapes.slice(0, 6).map((like) => {
        const value = editOf(edits, "EDIT_KIND_NODES_LIKE", like)?.amount ?? 0;
        return (
          <Slider
            key={like} label={`More nodes like ${like}`} text={`More like ${like}`} most={16} step={1} value={String(value)} written="0"
            onValue={(text) => {
              const count = Number(text);
              if (Number.isSafeInteger(count) && count >= 0 && count <= 1000) {
                const next: Edit = { kind: "EDIT_KIND_NODES_LIKE", object: "node", name: like, amount: count };
                set(count === 0 ? withoutEdit(edits, next) : withEdit(edits, next));
              }
            }}
          />
        );
      })}
      <label class="row">
        <span>Without</span>
        <select
          onChange={(event) => {
            const node = event.currentTarget.value;
            if (node !== "") {
              set(withEdit(edits, { kind: "EDIT_KIND_REMOVE", object: "node", name: node }));
            }
          }}
        >
          <option value="" selected>choose a node</option>
          {left}
        </select>
      </label>
    </fieldset>
  );
}

const example = `name: train
namespace: ml
queue: QUEUE
minAvailable: 2
groups:
- {role: worker, replicas: 2, request: {cpu: "8", memory: 64Gi, nvidia.com/gpu: "4"}}
`;

function JobField({ edits, set }: Props) {
  const { cluster, route } = usePage();
  const submitted = edits.find(isJob);
  const queue = route.query["queue"] ?? cluster.jobs.find((j) => j)?.queue ?? "default";
  const [text, setText] = useState(submitted?.job ?? example.replace("QUEUE", queue));
  return (
    <fieldset>
      <legend>A job</legend>
      <textarea
        rows={7} spellcheck={false} aria-label="A job to submit, as YAML or JSON" value={text} onInput={(event) => setText(event.currentTarget.value)}
      />
      <p class="actions">
        <button type="button" onClick={() => set(withEdit(edits, { job: text }))}>{submitted === undefined ? "Submit it" : "Submit the changed job"}</button>
      </p>
      <p class="note">A Job of batch.volcano.sh, or the short form as in this example.</p>
    </fieldset>
  );
}

function Result({ edits }: { edits: readonly Change[] }) {
  const { cluster, policy } = usePage();
  const changed = useChanged(cluster, edits);
  const before = useSteps(sharesSteps, policy);
  const beforeWaiting = useSteps(waitingSteps, policy);
  const was = before.answer?.answers[0]?.shares;
  // A smaller answer arrives sooner. Without edits it is the answer before the changes.
  const flat = useMemo(() => was !== undefined && isFlat(was), [was]);
  const steps = changed === undefined || !flat ? sharesSteps : flatSharesSteps;
  const after = useSteps(was === undefined ? undefined : steps, policy, changed, "in turn");
  const afterWaiting = useSteps(waitingSteps, policy, changed, changed === undefined ? 0 : later);
  const jobSteps = useMemo<StepJson[] | undefined>(() => (changed?.job === undefined ? undefined : [{ explain: { jobs: { indices: [changed.job] } } }]), [changed?.job]);
  const job = useSteps(jobSteps, policy, changed, "in turn");
  // The cluster to which the answer refers. It lacks the newest edits while their answer is being computed.
  const about = useRef<{ answer: unknown; cluster: Cluster }>({ answer: undefined, cluster });
  if (about.current.answer !== after.answer || !after.pending) {
    about.current = { answer: after.answer, cluster: changed?.cluster ?? cluster };
  }
  const fault = before.fault ?? after.fault ?? job.fault;
  if (before.answer === undefined || after.answer === undefined) {
    return fault === undefined ? <Loading what="Loading the shares" /> : <Failed fault={fault} />;
  }
  const explained = job.answer?.answers[0]?.explain?.jobs?.[0];
  return (
    <>
      {(changed?.faults ?? []).map((text) => <p key={text} class="state failed" role="alert">{text}</p>)}
      {fault !== undefined && <Failed fault={fault} />}
      {changed?.job !== undefined && explained !== undefined && (
        <section class="job" aria-label="The job that is submitted">
          <h2 class="crumb"><bdi>{changed.cluster.jobName(changed.job)}</bdi></h2>
          <Verdict e={explained} />
          <Checks e={explained} />
        </section>
      )}
      <Sides
        before={{ label: "before", cluster, shares: was, waiting: beforeWaiting.answer?.answers[0]?.explain }}
        after={{ label: "after", cluster: about.current.cluster, shares: after.answer.answers[0]?.shares, waiting: afterWaiting.answer?.answers[0]?.explain }}
        busy={after.pending || afterWaiting.pending}
      />
    </>
  );
}
