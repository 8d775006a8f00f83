// The view that runs a history of jobs on the cluster under several policies.
import { useEffect, useRef, useState } from "preact/hooks";

import { Fault } from "../core/ask.ts";
import { rough } from "../core/duration.ts";
import type { Policy } from "../core/source.ts";
import { usePage } from "../page.tsx";
import { Failed } from "../parts/states.tsx";
import { rehearse, traceOf, type Rehearsed } from "./engine.ts";

interface Row {
  readonly policy: Policy;
  readonly found?: Rehearsed;
  readonly fault?: Fault;
}

interface State {
  readonly rows: readonly Row[];
  // What is being done, for which policy, and what part of it is done.
  readonly doing?: string;
  readonly part?: number | undefined;
}

const minutes = 60;
const longestMinutes = 1440;
const percent = (part: number): string => `${(100 * part).toFixed(1)} %`;

// useRehearsal rehearses under one policy after the other; each row is shown as soon as it is known.
function useRehearsal() {
  const [state, set] = useState<State>({ rows: [] });
  const running = useRef<AbortController | undefined>(undefined);
  const cancel = (): void => {
    running.current?.abort();
    running.current = undefined;
    set(({ rows }) => ({ rows }));
  };
  const begin = async (trace: File, policies: readonly Policy[], every: number): Promise<void> => {
    cancel();
    const abort = new AbortController();
    running.current = abort;
    const rows: Row[] = [];
    for (const policy of policies) {
      const show = (doing: string, part?: number): void => {
        if (!abort.signal.aborted) {
          set({ rows: [...rows], doing: `${doing} under ${policy.title}`, part });
        }
      };
      show("Starting");
      try {
        rows.push({ policy, found: await rehearse(trace, policy, every, abort.signal, show) });
      } catch (error) {
        if (abort.signal.aborted) {
          return;
        }
        rows.push({ policy, fault: error instanceof Fault ? error : new Fault("", error instanceof Error ? error.message : String(error)) });
      }
    }
    if (running.current === abort) {
      running.current = undefined;
      set({ rows });
    }
  };
  useEffect(() => () => running.current?.abort(), []);
  return { state, begin, cancel };
}

export function RehearseView() {
  const { policies, policy, route, opened } = usePage();
  const known = policies.filter((p) => p.policy !== undefined);
  const [chosen, choose] = useState<readonly string[]>([...new Set([policy.name, "fair"])].filter((name) => known.some((p) => p.name === name)));
  const [every, setEvery] = useState(5);
  const [trace, setTrace] = useState<File | undefined>();
  const { state, begin, cancel } = useRehearsal();
  const sample = /^sample:(.+)$/.exec(route.query["from"] ?? "")?.[1] ?? "";
  const [offered, offer] = useState<File | undefined>();
  useEffect(() => {
    offer(undefined);
    traceOf(sample).then(offer, () => undefined);
  }, [sample]);
  useEffect(() => {
    const take = (event: Event): void => setTrace((event as CustomEvent<File>).detail);
    addEventListener("trace", take);
    return () => removeEventListener("trace", take);
  }, []);
  // Results are about one cluster.
  useEffect(() => cancel, [opened]);
  const file = trace ?? offered;
  const ready = file !== undefined && chosen.length > 0 && state.doing === undefined;
  return (
    <section class="panel" aria-labelledby="rehearse-title">
      <h1 id="rehearse-title">Rehearse a history of jobs</h1>
      <p class="verdict">Run the jobs of a trace on the nodes and queues of this cluster, in simulated time, under several policies: how long would they have waited?</p>
      <form onSubmit={(event) => {
        event.preventDefault();
        if (ready) {
          void begin(file, known.filter((p) => chosen.includes(p.name)), every * minutes);
        }
      }}>
        <fieldset>
          <legend>Trace</legend>
          <p class="actions trace">
            <label class="button">
              Choose a file
              <input class="visually-hidden" type="file" accept=".csv,.gz" onChange={(event) => setTrace(event.currentTarget.files?.[0] ?? trace)} />
            </label>
            <span>{file === undefined ? "None yet: choose one, or drop it here." : <bdi>{file.name}</bdi>}{file !== undefined && file === offered && ", the week that comes with the sample"}</span>
          </p>
          <p class="note">A .csv with a line for each job: <code>arrival</code>, <code>queue</code>, <code>seconds</code>, and what each task asks for, as <a href="docs/rehearse.html#traces">its document</a> describes. It stays in your browser.</p>
        </fieldset>
        <fieldset>
          <legend>Policies</legend>
          <div class="boxes">
            {known.map((p) => (
              <label key={p.name}><input type="checkbox" checked={chosen.includes(p.name)} onChange={(event) => {
                choose(event.currentTarget.checked ? [...chosen, p.name] : chosen.filter((name) => name !== p.name));
              }} /> {p.title}</label>
            ))}
          </div>
        </fieldset>
        <p class="actions rounds">
          <label>Decide at most every <input type="number" min={1} max={longestMinutes} value={every} onChange={(event) => {
            setEvery(Math.min(longestMinutes, Math.max(1, Math.round(Number(event.currentTarget.value)) || 1)));
          }} /> minutes</label>
          <button type="submit" disabled={!ready}>Rehearse</button>
        </p>
      </form>
      {state.doing !== undefined && (
        <div class="state" role="status">
          <p><span class="spinner" aria-hidden="true" /> {state.doing} {state.part !== undefined && <progress value={state.part} aria-label={state.doing} />}</p>
          <button type="button" onClick={cancel}>Cancel</button>
        </div>
      )}
      <Results rows={state.rows} />
    </section>
  );
}

function Results({ rows }: { rows: readonly Row[] }) {
  const found = rows.flatMap(({ policy, found: of }) => (of === undefined ? [] : [{ policy, of }]));
  const first = found[0]?.of;
  const queues = (first?.run.queues ?? []).filter((q) => q.jobs > 0);
  return (
    <>
      {rows.map(({ policy, fault }) => fault !== undefined && <div key={policy.name}><p class="crumb">{policy.title}</p><Failed fault={fault} /></div>)}
      {first !== undefined && (
        <>
          <p class="note">
            {first.trace.jobs.toLocaleString("en-US")} jobs that arrive within {rough(first.trace.lastArrival - first.trace.firstArrival)}. In use: the part of <bdi>{first.resource}</bdi> in
            use while jobs arrive. Entitled: the part of the time in which queues had what {first.entitledBy} says that they deserve.
          </p>
          <div class="scroll" tabIndex={0} role="group" aria-label="Results by policy">
            <table class="grid rehearsed">
              <caption>By policy</caption>
              <thead><tr><th scope="col">Policy</th><th scope="col">In use</th><th scope="col">Mean wait</th><th scope="col">Longest wait</th><th scope="col">Evicted tasks</th><th scope="col">Entitled</th><th scope="col">Fairness</th><th scope="col">Never run</th></tr></thead>
              <tbody>
                {found.map(({ policy, of: { run } }) => (
                  <tr key={policy.name}>
                    <th scope="row">{policy.title}</th><td>{percent(run.use[0]?.arriving ?? 0)}</td><td>{rough(run.waits.mean)}</td><td>{rough(run.waits.longest)}</td>
                    <td>{run.evictions.total.toLocaleString("en-US")}</td><td>{percent(run.entitlementKept)}</td><td>{run.fairness.toFixed(3)}</td><td>{run.unfinished}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          <div class="scroll" tabIndex={0} role="group" aria-label="Waits by queue">
            <table class="grid rehearsed">
              <caption>Mean wait, longest wait, by queue</caption>
              <thead><tr><th scope="col">Queue</th><th scope="col">Jobs</th>{found.map(({ policy }) => <th key={policy.name} scope="col">{policy.title}</th>)}</tr></thead>
              <tbody>
                {queues.map((queue) => (
                  <tr key={queue.name}>
                    <th scope="row"><bdi>{queue.name}</bdi></th><td>{queue.jobs.toLocaleString("en-US")}</td>
                    {found.map(({ policy, of: { run } }) => {
                      const waits = run.queues.find((q) => q.name === queue.name)?.waits;
                      return <td key={policy.name}>{waits === undefined ? "–" : `${rough(waits.mean)}, ${rough(waits.longest)}`}</td>;
                    })}
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          {first.trace.notes.map((note) => <p key={note} class="note">{note}</p>)}
        </>
      )}
    </>
  );
}
