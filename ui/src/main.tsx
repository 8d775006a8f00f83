// The page: its head, and the view of its address.
import { render } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { said } from "./core/amount.ts";
import { Fault } from "./core/ask.ts";
import { format, having, to, type Route, type View } from "./core/route.ts";
import { open, type Opened, type Policy, type Source } from "./core/source.ts";
import { Patterns } from "./parts/bar.tsx";
import { useWaiting, waitingCount } from "./parts/causes.tsx";
import { Failed, Loading } from "./parts/states.tsx";
import { PageContext, usePage, useRoute, useWide, type Page } from "./page.tsx";
import { CertificateView } from "./views/certificate.tsx";
import { ClusterView } from "./views/cluster.tsx";
import { CompareView } from "./views/compare.tsx";
import { JobView } from "./views/job.tsx";
import { NodesView } from "./views/nodes.tsx";
import { OpenView } from "./views/open.tsx";
import { QueueView } from "./views/queue.tsx";
import { WaitingView } from "./views/waiting.tsx";
import { WhatIfView } from "./views/whatif.tsx";

function App() {
  const [source, setSource] = useState<Source | undefined>();
  const [fault, setFault] = useState<Fault | undefined>();
  const [chosen, setChosen] = useState<Opened | undefined>();
  const route = useRoute();
  const wide = useWide("(min-width: 900px)");
  useEffect(() => {
    open().then(setSource, (error: unknown) => setFault(error instanceof Fault ? error : new Fault("", String(error))));
  }, []);
  if (fault !== undefined) {
    return <main id="main" class="alone"><Failed fault={fault} /></main>;
  }
  if (source === undefined) {
    return <main id="main" class="alone"><Loading what="Opening the cluster" /></main>;
  }
  const opened = chosen ?? source.opened;
  if (opened === undefined) {
    return <main id="main" class="alone"><OpenView onOpen={setChosen} /></main>;
  }
  return <Shown source={source} opened={opened} route={route} wide={wide} />;
}

function Shown({ source, opened, route, wide }: { source: Source; opened: Opened; route: Route; wide: boolean }) {
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
  useEffect(() => {
    document.title = `${titles[route.view]}${route.name === "" ? "" : ` ${route.name}`} · ${opened.title} · Apportion`;
    // A reader who goes on by keyboard starts at the new view.
    if (before.current.split("/")[0] !== route.view) {
      main.current?.focus({ preventScroll: true });
      scrollTo(0, 0);
    }
    before.current = view;
  }, [view, opened, route]);
  return (
    <PageContext.Provider value={page}>
      <Patterns />
      <Header onSkip={() => main.current?.focus()} />
      <main id="main" ref={main} tabIndex={-1}>
        <ViewOf view={route.view} />
      </main>
    </PageContext.Provider>
  );
}

const none: Policy = { name: "none", title: "No policy" };

// named is a policy that the server has under a name.
function named(name: string): Policy | undefined {
  const policyName = /^server:(.+)$/.exec(name)?.[1];
  return policyName === undefined ? undefined : { name, title: `${policyName} (of the server)`, policyName };
}

const titles: Record<View, string> = {
  cluster: "Cluster", queue: "Queue", waiting: "Waiting", job: "Job", nodes: "Nodes", whatif: "What if", compare: "Compare",
  certificate: "Certificate", open: "Open",
};

function ViewOf({ view }: { view: View }) {
  switch (view) {
    case "queue":
      return <QueueView />;
    case "waiting":
      return <WaitingView />;
    case "job":
      return <JobView />;
    case "nodes":
      return <NodesView />;
    case "certificate":
      return <CertificateView />;
    case "whatif":
      return <WhatIfView />;
    case "compare":
      return <CompareView />;
    default:
      return <ClusterView />;
  }
}

const places: readonly View[] = ["cluster", "waiting", "nodes", "whatif", "compare"];

function Header({ onSkip }: { onSkip: () => void }) {
  const { opened, cluster, dimension, policies, policy, route } = usePage();
  const waiting = useWaiting();
  const count = waiting.answer === undefined ? "" : ` ${waitingCount(waiting.answer).toLocaleString("en-US")}`;
  const name = cluster.dimensions[dimension] ?? "";
  return (
    <header class="head">
      <a class="skip" href={format(route)} onClick={(event) => { event.preventDefault(); onSkip(); }}>Skip to the view</a>
      <p class="head-title"><b>{opened.title}</b> <span>{cluster.nodes.length.toLocaleString("en-US")} nodes, {said(name, cluster.total(dimension))} · <Age read={opened.read} /></span></p>
      <nav class="views" aria-label="Views">
        {places.map((view) => (
          <a key={view} href={to(route, view)} aria-current={route.view === view ? "page" : undefined}>
            {titles[view]}{view === "waiting" && <span class="count">{count}</span>}
          </a>
        ))}
      </nav>
      <select class="policy" aria-label="Policy" onChange={(event) => { location.hash = having(route, { policy: event.currentTarget.value }); }}>
        {policies.map((p) => <option key={p.name} value={p.name} selected={p === policy}>{p.title}</option>)}
      </select>
    </header>
  );
}

// Age says how old the view of the cluster is.
function Age({ read }: { read: number }) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const every = 10_000;
    const timer = setInterval(() => setNow(Date.now()), every);
    return () => clearInterval(timer);
  }, []);
  const seconds = Math.max(0, Math.round((now - read) / 1000));
  const minute = 60;
  const ago = seconds < minute ? "just now" : seconds < 60 * minute ? `${Math.floor(seconds / minute)} min ago` : new Date(read).toLocaleString();
  return <time dateTime={new Date(read).toISOString()}>read {ago}</time>;
}

const root = document.getElementById("app");
if (root !== null) {
  render(<App />, root);
}
