// The page: its head, and the view of its address.
import type { ComponentType } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { useRoute } from "./address.ts";
import { said } from "./core/amount.ts";
import { Fault } from "./core/ask.ts";
import { rough } from "./core/duration.ts";
import { format, having, to, type Route, type View } from "./core/route.ts";
import type { SnapshotViewJson } from "./core/contract.ts";
import { list } from "./core/kept.ts";
import { after, apply, kept, label, sign, title } from "./core/scheme.ts";
import { asOf, follow, type Opened, type Policy, type Source } from "./core/source.ts";
import { Patterns } from "./parts/bar.tsx";
import { useWaiting, waitingCount } from "./parts/causes.tsx";
import { Keys } from "./parts/keys.tsx";
import { Failed, Loading } from "./parts/states.tsx";
import { PageContext, prefetch, usePage, useWide, WithTasks, type Page } from "./page.tsx";
import { CertificateView } from "./views/certificate.tsx";
import { ClusterView } from "./views/cluster.tsx";
import { CompareView } from "./views/compare.tsx";
import { JobView } from "./views/job.tsx";
import { NodesView } from "./views/nodes.tsx";
import { QueueView } from "./views/queue.tsx";
import { WaitingView } from "./views/waiting.tsx";
import { UsageView } from "./views/usage.tsx";
import { WhatIfView } from "./views/whatif.tsx";
import { Sentence } from "./parts/sentence.tsx";

// Choice is what the view in which the reader chooses a cluster is given.
export interface Choice {
  readonly onOpen: (opened: Opened, policies?: readonly Policy[]) => void;
  // Names of the policies of the server, once they are known.
  readonly onPolicies: (names: readonly string[]) => void;
}

// Home is where clusters come from.
export interface Home {
  readonly open: () => Promise<Source>;
  readonly OpenView: ComponentType<Choice>;
  // What the head shows beside the views: how to open another cluster, and a question that takes long.
  readonly Beside?: ComponentType;
  // The view in which histories are rehearsed, if there is one.
  readonly Rehearse?: ComponentType;
}

export function App({ home }: { home: Home }) {
  const [source, setSource] = useState<Source | undefined>();
  const [fault, setFault] = useState<Fault | undefined>();
  const [chosen, setChosen] = useState<Opened | undefined>();
  const route = useRoute();
  const wide = useWide("(min-width: 900px)");
  useEffect(() => {
    home.open().then(setSource, (error: unknown) => setFault(error instanceof Fault ? error : new Fault("", String(error))));
  }, []);
  const live = useLive(chosen ?? source?.opened, setChosen);
  if (fault !== undefined) {
    return <main id="main" class="alone"><Failed fault={fault} /></main>;
  }
  if (source === undefined) {
    return <main id="main" class="alone"><Loading what="Opening the cluster" /></main>;
  }
  const opened = chosen ?? source.opened;
  if (opened === undefined || (home.Beside !== undefined && route.view === "open")) {
    const onOpen = (next: Opened, policies?: readonly Policy[]): void => {
      if (policies !== undefined) {
        setSource({ ...source, policies });
      }
      setChosen(next);
    };
    return <main id="main" class="alone"><home.OpenView onOpen={onOpen} onPolicies={(names) => setSource(offering(source, names))} /></main>;
  }
  return <Shown source={source} opened={opened} live={live} route={route} wide={wide} Beside={home.Beside} Rehearse={home.Rehearse} />;
}

// offering adds the policies of the server to a source.
function offering(source: Source, names: readonly string[]): Source {
  const more = names.flatMap((name) => named(`server:${name}`) ?? []).filter((p) => source.policies.every((q) => q.name !== p.name));
  return more.length === 0 ? source : { ...source, policies: [...source.policies, ...more] };
}

// Live is the state of a snapshot that the server maintains: its current age and completeness, or why they are not known.
interface Live {
  readonly view: SnapshotViewJson | undefined;
  readonly fault: Fault | undefined;
}

const interval = 3000;

// useLive asks for new versions of the displayed snapshot while the page is visible, and shows each once the current questions are
// answered.
function useLive(opened: Opened | undefined, show: (opened: Opened) => void): Live {
  const [live, set] = useState<Live>({ view: undefined, fault: undefined });
  const current = useRef(opened);
  current.current = opened;
  const name = opened?.name ?? "";
  useEffect(() => {
    if (name === "") {
      return undefined;
    }
    let gone = false;
    const look = async (): Promise<void> => {
      const snapshots = await list();
      const view = snapshots?.find((s) => s.name === name);
      if (view?.digest !== undefined && view.digest !== current.current?.digest) {
        const next = await follow(name);
        await prefetch(next);
        if (!gone && current.current?.name === name) {
          show({ ...next, title: current.current.title, warnings: current.current.warnings });
        }
      }
      if (!gone) {
        set({ view, fault: undefined });
      }
    };
    const again = async (): Promise<void> => {
      if (document.visibilityState === "visible") {
        try {
          await look();
        } catch (error) {
          if (!gone) {
            set((old) => ({ view: old.view, fault: error instanceof Fault ? error : new Fault("", String(error)) }));
          }
        }
      }
      if (!gone) {
        timer = setTimeout(() => void again(), interval);
      }
    };
    let timer = setTimeout(() => void again(), interval);
    return () => {
      gone = true;
      clearTimeout(timer);
    };
  }, [name, show]);
  return live;
}

interface Showing {
  readonly source: Source;
  readonly opened: Opened;
  readonly live: Live;
  readonly route: Route;
  readonly wide: boolean;
  readonly Beside: ComponentType | undefined;
  readonly Rehearse: ComponentType | undefined;
}

function Shown({ source, opened, live, route, wide, Beside, Rehearse }: Showing) {
  const page = useMemo<Page>(() => {
    const { cluster } = opened;
    const policy = named(route.query["policy"] ?? "") ?? source.policies.find((p) => p.name === route.query["policy"]) ?? source.policies[0] ?? none;
    const wanted = cluster.dimensions.indexOf(route.query["r"] ?? "");
    const dimension = wanted >= 0 ? wanted : (cluster.offered()[0] ?? 0);
    const policies = source.policies.includes(policy) ? source.policies : [policy, ...source.policies];
    return { opened, cluster, policies, policy, route, dimension, wide };
  }, [source, opened, route, wide]);
  const main = useRef<HTMLElement>(null);
  const view = `${route.view}/${route.name}`;
  const before = useRef(view);
  // What has the focus may go with this change.
  const held = main.current?.contains(document.activeElement) ?? false;
  useEffect(() => {
    document.title = `${titles[route.view]}${route.name === "" ? "" : ` ${route.name}`} · ${opened.title} · Apportion`;
    // The keyboard focus moves to the new view.
    if (before.current.split("/")[0] !== route.view) {
      main.current?.focus({ preventScroll: true });
      scrollTo(0, 0);
    } else if (held && document.activeElement === document.body) {
      (main.current?.querySelector("aside") ?? main.current)?.focus({ preventScroll: true });
    }
    before.current = view;
  }, [view, opened, route]);
  return (
    <PageContext.Provider value={page}>
      <Patterns />
      <Header live={live} Beside={Beside} rehearses={Rehearse !== undefined} onSkip={() => main.current?.focus()} />
      <main id="main" ref={main} tabIndex={-1}>
        {route.view === "rehearse" && Rehearse !== undefined ? <Rehearse /> : <ViewOf view={route.view} />}
      </main>
      <Keys />
    </PageContext.Provider>
  );
}

const none: Policy = { name: "none", title: "No policy" };

// named returns the policy with this name on the server.
function named(name: string): Policy | undefined {
  const policyName = /^server:(.+)$/.exec(name)?.[1];
  return policyName === undefined ? undefined : { name, title: `${policyName} (of the server)`, policyName };
}

const titles: Record<View, string> = {
  cluster: "Cluster", queue: "Queue", waiting: "Waiting", job: "Job", nodes: "Nodes", whatif: "What if", compare: "Compare",
  certificate: "Certificate", usage: "Usage", rehearse: "Rehearse", open: "Open",
};

function ViewOf({ view }: { view: View }) {
  switch (view) {
    case "queue":
      return <QueueView />;
    case "waiting":
      return <WaitingView />;
    case "job":
      return <WithTasks loading={<Loading what="Reading the tasks" />}><JobView /></WithTasks>;
    case "nodes":
      return <WithTasks loading={<Loading what="Reading the tasks" />}><NodesView /></WithTasks>;
    case "certificate":
      return <CertificateView />;
    case "usage":
      return <UsageView />;
    case "whatif":
      return <WhatIfView />;
    case "compare":
      return <CompareView />;
    default:
      return <ClusterView />;
  }
}

const places: readonly View[] = ["cluster", "waiting", "nodes", "usage", "whatif", "compare", "rehearse"];

function Header({ live, Beside, rehearses, onSkip }: { live: Live; Beside: ComponentType | undefined; rehearses: boolean; onSkip: () => void }) {
  const { opened, cluster, dimension, policies, policy, route } = usePage();
  const waiting = useWaiting();
  const count = waiting.answer === undefined ? "" : ` ${waitingCount(waiting.answer).toLocaleString("en-US")}`;
  const name = cluster.dimensions[dimension] ?? "";
  return (
    <header class="head">
      <a class="skip" href={format(route)} onClick={(event) => { event.preventDefault(); onSkip(); }}>Skip to the view</a>
      <p class="head-title"><b><bdi>{opened.title}</bdi></b> <span>{cluster.nodes.length.toLocaleString("en-US")} {cluster.nodes.length === 1 ? "node" : "nodes"}, {said(name, cluster.total(dimension))} · <Age opened={opened} live={live} /></span></p>
      <nav class="views" aria-label="Views">
        {places.filter((view) => (view !== "whatif" || !opened.restricted) && (view !== "rehearse" || rehearses) && (view !== "usage" || cluster.snapshot.memory !== undefined || opened.ledger !== "")).map((view) => (
          <a key={view} href={to(route, view)} aria-current={route.view === view ? "page" : undefined}>
            {titles[view]}{view === "waiting" && <span class="count">{count}</span>}
          </a>
        ))}
      </nav>
      <select class="policy" aria-label="Policy" onChange={(event) => { location.hash = having(route, { policy: event.currentTarget.value }); }}>
        {policies.map((p) => <option key={p.name} value={p.name} selected={p === policy}>{p.title}</option>)}
      </select>
      <Colours />
      {Beside !== undefined && <Beside />}
      {opened.restricted && <p class="head-note">You see your own queues and their jobs. Other queues are shown as sums.</p>}
      <Missing view={live.view ?? opened.view} fault={live.fault} />
    </header>
  );
}

// Age shows the age of the snapshot.
function Age({ opened, live }: { opened: Opened; live: Live }) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const every = opened.name === "" ? 10_000 : 1000;
    const timer = setInterval(() => setNow(Date.now()), every);
    return () => clearInterval(timer);
  }, [opened.name]);
  const read = Math.max(opened.read, live.view === undefined ? 0 : asOf(live.view));
  const seconds = Math.max(0, Math.round((now - read) / 1000));
  const [few, hour] = [10, 3600];
  const ago = seconds < few ? "just now" : seconds < hour ? `${rough(seconds)} ago` : new Date(read).toLocaleString();
  return <time dateTime={new Date(read).toISOString()}>{opened.name === "" ? "read" : "live, as of"} {ago}</time>;
}

// Missing lists the kinds of objects that a snapshot of the server lacks.
function Missing({ view, fault }: { view: SnapshotViewJson | undefined; fault: Fault | undefined }) {
  if (fault !== undefined) {
    return <p class="head-note" role="status"><span class="pill bad">not live</span> <Sentence text={fault.message} /></p>;
  }
  if (view === undefined || view.complete === true) {
    return null;
  }
  const faults = (view.kinds ?? []).filter((k) => k.read !== true || (k.fault ?? "") !== "");
  const kinds = new Map<string, string[]>();
  for (const k of faults) {
    const why = k.fault === undefined || k.fault === "" ? "not read yet" : k.fault;
    kinds.set(why, [...kinds.get(why) ?? [], k.resource ?? ""]);
  }
  const sentences = kinds.size === 0 ? ["the newest state could not become a version"] : [...kinds].map(([why, of]) => `${of.join(", ")}: ${why}`);
  return <p class="head-note" role="status"><span class="pill bad">not complete</span> <Sentence text={sentences.join("; ")} /></p>;
}

// Colours switches between light and dark.
function Colours() {
  const [scheme, set] = useState(kept());
  useEffect(() => apply(scheme), [scheme]);
  return (
    <button type="button" class="scheme" title={title(scheme)} aria-label={label(scheme)} onClick={() => set(after(scheme))}>
      <span aria-hidden="true">{sign(scheme)}</span>
    </button>
  );
}
