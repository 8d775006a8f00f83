// Snapshots that the server maintains: their list, and the parts of one that views need.
import { call, simulate } from "./ask.ts";
import { Cluster, type Task } from "./cluster.ts";
import type { GetServerInfoResponseJson, InspectAnswerJson, InspectedTaskJson, JobJson, ListSnapshotsResponseJson, NodeJson, QueueJson, SnapshotViewJson } from "./contract.ts";

export type View = SnapshotViewJson;

// list returns the snapshots that the reader may ask about.
export async function list(): Promise<readonly View[]> {
  const views: View[] = [];
  let pageToken = "";
  do {
    const page = await call<ListSnapshotsResponseJson>("ListSnapshots", { pageToken });
    views.push(...(page.snapshots ?? []));
    pageToken = page.nextPageToken ?? "";
  } while (pageToken !== "");
  return views;
}

// policyNames returns the names of the policies that the server has.
export async function policyNames(): Promise<readonly string[]> {
  const { policies } = await call<GetServerInfoResponseJson>("GetServerInfo", {});
  return (policies ?? []).map((policy) => policy.name ?? "");
}

// Up to this number, tasks are read with the cluster; otherwise when a view needs them.
export const mostTasks = 30_000;

export interface Read {
  readonly digest: string;
  readonly cluster: Cluster;
  readonly view: View;
  // The reader may see some queues with their jobs, and the sums of the others.
  readonly restricted: boolean;
}

// read reads the newest version of a snapshot.
export async function read(name: string): Promise<Read> {
  const steps = [{ inspect: { nodes: true, queues: true, jobs: true } }];
  const { basis, answers } = await simulate({ snapshotName: name, policy: {} }, steps);
  const inspect = answers[0]?.inspect ?? {};
  const digest = basis.snapshotDigest ?? "";
  const cluster = clusterOf(basis.dimensions ?? [], inspect);
  const restricted = basis.restricted === true;
  const tasks = (inspect.taskCount ?? 0) <= mostTasks ? await readTasks(digest) : undefined;
  return { digest, restricted, view: basis.view ?? {}, cluster: tasks === undefined ? cluster : withTasks(cluster, tasks) };
}

// readTasks reads the tasks of a version.
export async function readTasks(digest: string, signal?: AbortSignal): Promise<readonly InspectedTaskJson[]> {
  const { answers } = await simulate({ snapshotDigest: digest, policy: {} }, [{ inspect: { tasks: true } }], signal);
  return answers[0]?.inspect?.tasks ?? [];
}

function clusterOf(dimensions: readonly string[], inspect: InspectAnswerJson): Cluster {
  const queues: (QueueJson | undefined)[] = [];
  for (const q of inspect.queues ?? []) {
    queues[q.queue ?? 0] = q.settings ?? {};
  }
  const jobs: (JobJson | undefined)[] = [];
  for (const j of inspect.jobs ?? []) {
    jobs[j.job ?? 0] = {
      uid: j.uid, name: j.name, namespace: j.namespace, queue: queues[j.queue ?? 0]?.name, priority: j.priority, phase: j.phase,
      minAvailable: j.minAvailable, minResources: j.minResources,
    } as JobJson;
  }
  const nodes: (NodeJson | undefined)[] = [];
  for (const n of inspect.nodes ?? []) {
    nodes[n.node ?? 0] = { name: n.name, allocatable: n.allocatable, usedByOthers: n.used, group: n.group, unschedulable: n.unschedulable } as NodeJson;
  }
  const snapshot = { dimensions, total: inspect.total, queues: filled(queues), jobs: filled(jobs), nodes: filled(nodes), ...(inspect.memory === undefined ? {} : { memory: inspect.memory }) };
  // Entities that the reader may not see are missing from the lists, which messages cannot express.
  return new Cluster(snapshot as ConstructorParameters<typeof Cluster>[0], new Map(), null);
}

const filled = <A>(list: (A | undefined)[]): (A | undefined)[] => Array.from(list);

// withTasks returns the cluster with its inspected tasks. The rest of a node's usage belongs to others.
export function withTasks(cluster: Cluster, list: readonly InspectedTaskJson[]): Cluster {
  const tasks: (Task | undefined)[] = [];
  for (const t of list) {
    const detail = { request: t.request, preemptable: t.preemptable === true };
    const json = { uid: t.uid, name: t.name, status: t.status, node: t.node, priority: t.priority, detail };
    tasks[t.task ?? 0] = { number: t.task ?? 0, job: t.job ?? 0, group: { role: t.role }, json } as Task;
  }
  return cluster.listing(filled(tasks));
}
