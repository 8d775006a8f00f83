// What all views share: the cluster, the policy, the address, and answers that were given before.
import { createContext, type ComponentChildren } from "preact";
import { useContext, useEffect, useMemo, useState } from "preact/hooks";

import { keep, useAsked, type Asked, type Pace } from "./asked.ts";
import { simulate, type Answers } from "./core/ask.ts";
import type { Cluster } from "./core/cluster.ts";
import type { InputJson, StepJson } from "./core/contract.ts";
import { sent, type Change, type Changed } from "./core/edit.ts";
import { readTasks, withTasks } from "./core/kept.ts";
import type { Route } from "./core/route.ts";
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
    input.events = changed.events;
    input.edits = changed.edits;
  }
  return input;
}

// A snapshot that stays as it is has no digest where it is sent with each question; then the time tells it from another one.
const keyOf = (opened: Opened, policy: Policy, steps: readonly StepJson[], changed: Changed | undefined): string =>
  JSON.stringify([opened.title, opened.digest === "" ? opened.read : "", opened.digest, policy.name, changed === undefined ? null : [changed.events, changed.edits], steps]);

// useSteps asks steps about the cluster by a policy, changed by edits.
export function useSteps(steps: readonly StepJson[] | undefined, policy: Policy, changed?: Changed, pace: Pace = 0): Asked<Answers> {
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
  return useAsked(key, (signal) => simulate(inputOf(opened, policy, changed), steps ?? [], signal), pace, opened.digest);
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

// useChanged returns what a request says of changes; undefined without any.
export function useChanged(cluster: Cluster, changes: readonly Change[]): Changed | undefined {
  return useMemo(() => (changes.length === 0 ? undefined : sent(cluster, changes)), [cluster, changes]);
}

// Questions that several views ask, so that they are answered once.
export const sharesSteps: readonly StepJson[] = [{ shares: {} }];
// What of it bars and numbers show. An answer to this says nothing of parents and children.
export const flatSharesSteps: readonly StepJson[] = [{
  shares: {
    fields: ["SHARE_FIELD_GUARANTEE", "SHARE_FIELD_DESERVED", "SHARE_FIELD_ALLOCATED", "SHARE_FIELD_REQUEST", "SHARE_FIELD_REAL_CAPABILITY"],
  },
}];
export const waitingSteps: readonly StepJson[] = [{ explain: { groupsOnly: true } }];
export const explainedSteps: readonly StepJson[] = [{ explain: {} }];
