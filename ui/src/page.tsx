// What all views share: the cluster, the policy, the address, and answers that were given before.
import { createContext, type ComponentChildren } from "preact";
import { useContext, useEffect, useMemo, useRef, useState } from "preact/hooks";

import { Fault, simulate, type Answers } from "./core/ask.ts";
import type { Cluster } from "./core/cluster.ts";
import type { InputJson, StepJson } from "./core/contract.ts";
import { applied, type Changed, type Edit } from "./core/edit.ts";
import { readTasks, withTasks } from "./core/kept.ts";
import { parse, type Route } from "./core/route.ts";
import type { Opened, Policy } from "./core/source.ts";

export interface Page {
  readonly opened: Opened;
  readonly cluster: Cluster;
  readonly policies: readonly Policy[];
  readonly policy: Policy;
  readonly route: Route;
  // Position of the resource that bars and maps show.
  readonly dimension: number;
  // There is room for a view and what is selected in it, side by side.
  readonly wide: boolean;
}

export const PageContext = createContext<Page | undefined>(undefined);

export function usePage(): Page {
  const page = useContext(PageContext);
  if (page === undefined) {
    throw new Error("a view outside the page");
  }
  return page;
}

// go shows another address. Replacing keeps the history short while something is typed or dragged.
export function go(address: string, replace = false): void {
  if (replace) {
    history.replaceState(null, "", address);
    dispatchEvent(new HashChangeEvent("hashchange"));
  } else {
    location.hash = address;
  }
}

export function useRoute(): Route {
  const [fragment, set] = useState(location.hash);
  useEffect(() => {
    const changed = (): void => set(location.hash);
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return useMemo(() => parse(fragment), [fragment]);
}

export function useWide(query: string): boolean {
  const media = useMemo(() => matchMedia(query), [query]);
  const [wide, set] = useState(media.matches);
  useEffect(() => {
    const changed = (): void => set(media.matches);
    media.addEventListener("change", changed);
    return () => media.removeEventListener("change", changed);
  }, [media]);
  return wide;
}

// inputOf is what a question is about.
export function inputOf(opened: Opened, policy: Policy, changed: Changed | undefined): InputJson {
  const input: InputJson = opened.digest === "" ? { snapshot: opened.cluster.snapshot } : { snapshotDigest: opened.digest };
  if (policy.policyName !== undefined) {
    input.policyName = policy.policyName;
  } else {
    input.policy = policy.policy ?? {};
  }
  if (changed !== undefined) {
    input.change = changed.change;
  }
  return input;
}

// Asked is the state of a question: the newest answer, that to an earlier question while a new one is under way, or a fault.
export interface Asked<A> {
  readonly answer: A | undefined;
  readonly fault: Fault | undefined;
  readonly pending: boolean;
}

const kept = new Map<string, unknown>();
const mostKept = 24;

function keep(key: string, answer: unknown): void {
  kept.delete(key);
  kept.set(key, answer);
  for (const oldest of kept.keys()) {
    if (kept.size <= mostKept) {
      break;
    }
    kept.delete(oldest);
  }
}

interface Flight {
  readonly promise: Promise<unknown>;
  readonly abort: AbortController;
  users: number;
}

// Questions under way, so that what several parts of a view ask is asked once. A question whose answer is no longer needed is cancelled.
const flights = new Map<string, Flight>();

function join<A>(key: string, ask: (signal: AbortSignal) => Promise<A>): { promise: Promise<A>; leave: () => void } {
  let flight = flights.get(key);
  if (flight === undefined) {
    const abort = new AbortController();
    const promise = ask(abort.signal).then((answer) => {
      keep(key, answer);
      return answer;
    }).finally(() => {
      if (flights.get(key)?.abort === abort) {
        flights.delete(key);
      }
    });
    flight = { promise, abort, users: 0 };
    flights.set(key, flight);
  }
  const joined = flight;
  joined.users++;
  return {
    promise: joined.promise as Promise<A>,
    leave: () => {
      joined.users--;
      if (joined.users === 0 && flights.get(key) === joined) {
        flights.delete(key);
        joined.abort.abort();
      }
    },
  };
}

// useAsked asks when the key changes, after a pause in which it may change again. Without a key nothing is asked.
// An answer about another version of the cluster is never shown in place of one that is under way.
export function useAsked<A>(key: string | undefined, ask: (signal: AbortSignal) => Promise<A>, pause = 0, version = ""): Asked<A> {
  const [state, set] = useState<{ key?: string; answer?: A; fault?: Fault }>({});
  const asking = useRef(ask);
  asking.current = ask;
  useEffect(() => {
    if (key === undefined || kept.has(key)) {
      return undefined;
    }
    let gone = false;
    let leave = (): void => undefined;
    const begin = (): void => {
      const joined = join(key, (signal) => asking.current(signal));
      leave = joined.leave;
      joined.promise.then(
        (answer) => {
          if (!gone) {
            set({ key, answer });
          }
        },
        (error: unknown) => {
          if (!gone) {
            const fault = error instanceof Fault ? error : new Fault("", error instanceof Error ? error.message : String(error));
            set((old) => (old.answer === undefined ? { key, fault } : { key, fault, answer: old.answer }));
          }
        },
      );
    };
    const timer = pause > 0 ? setTimeout(begin, pause) : undefined;
    if (timer === undefined) {
      begin();
    }
    return () => {
      gone = true;
      clearTimeout(timer);
      leave();
    };
  }, [key, pause]);
  // An answer that was kept stays at hand as the one before the next.
  const answer = key === undefined ? undefined : (kept.get(key) as A | undefined);
  const last = useRef<{ answer?: A; version: string }>({ version });
  if (answer !== undefined) {
    last.current = { answer, version };
    return { answer, fault: undefined, pending: false };
  }
  const current = state.key === key;
  const before = last.current.version === version ? (last.current.answer ?? state.answer) : undefined;
  return { answer: key === undefined ? undefined : before, fault: current ? state.fault : undefined, pending: key !== undefined && !current };
}

// A snapshot that stays as it is has no digest where it is sent with each question; then the time tells it from another one.
const keyOf = (opened: Opened, policy: Policy, steps: readonly StepJson[], changed: Changed | undefined): string =>
  JSON.stringify([opened.title, opened.digest === "" ? opened.read : "", opened.digest, policy.name, changed?.change ?? null, steps]);

// useSteps asks steps about the cluster by a policy, changed by edits.
export function useSteps(steps: readonly StepJson[] | undefined, policy: Policy, changed?: Changed, pause = 0): Asked<Answers> {
  const { opened } = usePage();
  const key = useMemo(() => (steps === undefined ? undefined : keyOf(opened, policy, steps, changed)), [steps, opened.title, opened.digest, policy, changed]);
  useEffect(() => {
    if (steps === undefined || changed !== undefined) {
      return undefined;
    }
    const question = { steps, policy };
    shown.add(question);
    return () => shown.delete(question);
  }, [steps, policy, changed]);
  return useAsked(key, (signal) => simulate(inputOf(opened, policy, changed), steps ?? [], signal), pause, opened.digest);
}

// Questions that what is shown now asks about the cluster as it is.
const shown = new Set<{ readonly steps: readonly StepJson[]; readonly policy: Policy }>();

// prefetch asks about a new version what is shown of the one before it, so that nothing that is shown goes away for a while. Positions
// differ between versions: what names things by position is asked anew when it is drawn.
export async function prefetch(opened: Opened): Promise<void> {
  await Promise.allSettled([...shown].filter(({ steps }) => !JSON.stringify(steps).includes('"index"')).map(async ({ steps, policy }) => {
    keep(keyOf(opened, policy, steps, undefined), await simulate(inputOf(opened, policy, undefined), steps));
  }));
}

// WithTasks shows a view of the cluster with its tasks, which are read first if they are not known yet.
export function WithTasks({ children, loading }: { children: ComponentChildren; loading: ComponentChildren }) {
  const page = usePage();
  const { cluster, opened } = page;
  const { answer, fault } = useAsked(cluster.listed ? undefined : `tasks ${opened.digest}`, (signal) => readTasks(opened.digest, signal), 0, opened.digest);
  const full = useMemo(() => (answer === undefined || cluster.listed ? cluster : withTasks(cluster, answer)), [cluster, answer]);
  const value = useMemo(() => (full === cluster ? page : { ...page, cluster: full }), [page, full, cluster]);
  if (!full.listed && fault === undefined) {
    return <>{loading}</>;
  }
  return <PageContext.Provider value={value}>{children}</PageContext.Provider>;
}

// useChanged makes what edits make of the cluster; undefined without edits.
export function useChanged(cluster: Cluster, edits: readonly Edit[]): Changed | undefined {
  return useMemo(() => (edits.length === 0 ? undefined : applied(cluster, edits)), [cluster, edits]);
}

// Questions that several views ask, so that they are answered once.
export const sharesSteps: readonly StepJson[] = [{ shares: {} }];
export const waitingSteps: readonly StepJson[] = [{ explain: { groupsOnly: true } }];
export const explainedSteps: readonly StepJson[] = [{ explain: {} }];
