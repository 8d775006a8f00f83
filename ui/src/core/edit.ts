// What if: the changes in the address of a view, the message that they become, and the cluster that they produce.
import { amountsOf, resourceOf, writtenOf } from "./amount.ts";
import { Cluster } from "./cluster.ts";
import type { ChangeJson, EditJson, NodeJson, QueueJson, RemedyJson, SnapshotJson } from "./contract.ts";
import { jobOf } from "./job.ts";

export const amountFields = ["guarantee", "deserved", "capability"] as const;

export type AmountField = (typeof amountFields)[number];

// Edit is one change. The value undefined removes an amount.
export type Edit =
  | { readonly kind: "weight"; readonly queue: string; readonly value: number }
  | { readonly kind: AmountField; readonly queue: string; readonly dimension: string; readonly value: number | undefined }
  | { readonly kind: "add"; readonly like: string; readonly count: number }
  | { readonly kind: "remove" | "uncordon"; readonly node: string }
  | { readonly kind: "open"; readonly queue: string }
  | { readonly kind: "end"; readonly job: string }
  | { readonly kind: "job"; readonly text: string };

// Limits of what is read from an address: number of edits, and bytes of a job.
const most = 200;

const isAmount = (kind: unknown): kind is AmountField => amountFields.some((f) => f === kind);

// parseEdits reads the edits in an address. It ignores unknown ones.
export function parseEdits(text: string | undefined): Edit[] {
  let list: unknown;
  try {
    list = JSON.parse(text ?? "[]");
  } catch {
    return [];
  }
  return Array.isArray(list) ? list.slice(0, most).flatMap(parseEdit) : [];
}

function parseEdit(item: unknown): Edit[] {
  if (!Array.isArray(item)) {
    return [];
  }
  const [kind, a, b, c] = item as unknown[];
  const counted = (x: unknown): x is number => typeof x === "number" && Number.isSafeInteger(x) && x >= 0;
  if (kind === "weight" && typeof a === "string" && counted(b)) {
    return [{ kind, queue: a, value: b }];
  }
  if (isAmount(kind) && typeof a === "string" && typeof b === "string" && (c === null || (typeof c === "number" && c >= 0))) {
    return [{ kind, queue: a, dimension: b, value: c ?? undefined }];
  }
  if (kind === "add" && typeof a === "string" && counted(b) && b <= 10_000) {
    return [{ kind, like: a, count: b }];
  }
  if ((kind === "remove" || kind === "uncordon") && typeof a === "string") {
    return [{ kind, node: a }];
  }
  if (kind === "open" && typeof a === "string") {
    return [{ kind, queue: a }];
  }
  if (kind === "end" && typeof a === "string") {
    return [{ kind, job: a }];
  }
  if (kind === "job" && typeof a === "string") {
    return [{ kind, text: a }];
  }
  return [];
}

// formatEdits is the inverse of parseEdits.
export function formatEdits(edits: readonly Edit[]): string {
  if (edits.length === 0) {
    return "";
  }
  return JSON.stringify(
    edits.map((e) => {
      switch (e.kind) {
        case "weight":
          return [e.kind, e.queue, e.value];
        case "add":
          return [e.kind, e.like, e.count];
        case "remove":
        case "uncordon":
          return [e.kind, e.node];
        case "open":
          return [e.kind, e.queue];
        case "end":
          return [e.kind, e.job];
        case "job":
          return [e.kind, e.text];
        default:
          return [e.kind, e.queue, e.dimension, e.value ?? null];
      }
    }),
  );
}

const subject = (e: Edit): string => {
  switch (e.kind) {
    case "weight":
      return `weight ${e.queue}`;
    case "add":
      return `add ${e.like}`;
    case "remove":
    case "uncordon":
      return `${e.kind} ${e.node}`;
    case "open":
      return `open ${e.queue}`;
    case "end":
      return `end ${e.job}`;
    case "job":
      return "job";
    default:
      return `${e.kind} ${e.queue} ${e.dimension}`;
  }
};

// withEdit adds an edit and replaces an earlier one of the same setting.
export const withEdit = (edits: readonly Edit[], edit: Edit): Edit[] => [...withoutEdit(edits, edit), edit];

export const withoutEdit = (edits: readonly Edit[], edit: Edit): Edit[] => edits.filter((e) => subject(e) !== subject(edit));

export interface Changed {
  readonly change: ChangeJson;
  readonly cluster: Cluster;
  // Position of the job that was submitted.
  readonly job: number | undefined;
  // Sentences about the edits that could not be made.
  readonly faults: readonly string[];
}

// applied returns the change that edits make, and the cluster after it, with the positions and numbers that answers about it use.
export function applied(cluster: Cluster, edits: readonly Edit[]): Changed {
  const faults: string[] = [];
  const dimensions = [...cluster.dimensions];
  const queues = new Map<number, QueueJson>();
  const queueOf = (name: string): QueueJson | undefined => {
    const index = cluster.queueIndex(name);
    if (index === undefined) {
      faults.push(`There is no queue ${name}.`);
      return undefined;
    }
    const queue = queues.get(index) ?? { ...cluster.queues[index] };
    queues.set(index, queue);
    return queue;
  };
  const added: NodeJson[] = [];
  const joined = new Map<number, number[]>();
  const removed = new Set<number>();
  const uncordoned = new Map<number, NodeJson>();
  const ended = new Set<number>();
  const nodeIndex = (name: string): number => {
    const index = cluster.nodes.findIndex((n) => n?.name === name);
    if (index < 0) {
      faults.push(`There is no node ${name}.`);
    }
    return index;
  };
  const jobs: NonNullable<ChangeJson["jobs"]> = [];
  for (const edit of edits) {
    switch (edit.kind) {
      case "weight": {
        const queue = queueOf(edit.queue);
        if (queue) {
          queue.weight = edit.value;
        }
        break;
      }
      case "add":
        for (const node of copies(cluster, edit.like, edit.count, faults)) {
          joinSets(cluster, edit.like, cluster.nodes.length + added.length, joined);
          added.push(node);
        }
        break;
      case "remove": {
        const index = nodeIndex(edit.node);
        if (index >= 0) {
          removed.add(index);
        }
        break;
      }
      case "uncordon": {
        const index = nodeIndex(edit.node);
        if (index >= 0) {
          const { unschedulable: _, ...node } = cluster.nodes[index] as NodeJson;
          uncordoned.set(index, node);
        }
        break;
      }
      case "open": {
        const queue = queueOf(edit.queue);
        if (queue) {
          queue.state = "QUEUE_STATE_OPEN";
        }
        break;
      }
      case "end": {
        const index = cluster.jobIndex(edit.job);
        if (index === undefined) {
          faults.push(`There is no job ${edit.job}.`);
        } else {
          ended.add(index);
        }
        break;
      }
      case "job":
        try {
          jobs.push(jobOf(edit.text, dimensions, (name) => cluster.queueIndex(name) !== undefined, (name) => cluster.jobIndex(name) !== undefined));
        } catch (error) {
          faults.push(error instanceof Error ? error.message : String(error));
        }
        break;
      default: {
        const queue = queueOf(edit.queue);
        if (queue) {
          setAmount(queue, edit.kind, dimensions.indexOf(edit.dimension), edit.value);
        }
      }
    }
  }
  const change: ChangeJson = { dimensions };
  if (queues.size > 0) {
    change.queues = [...queues.values()];
  }
  removed.forEach((index) => uncordoned.delete(index));
  if (uncordoned.size + added.length > 0) {
    change.nodes = [...uncordoned.values(), ...added];
  }
  const sets = (cluster.snapshot.nodeSets ?? []).map((set, i) => (joined.has(i) ? { ...set, nodes: [...(set.nodes ?? []).filter((n) => !removed.has(n)), ...(joined.get(i) ?? [])] } : set));
  if (joined.size > 0) {
    change.nodeSets = sets.filter((_, i) => joined.has(i));
  }
  if (ended.size > 0) {
    change.removeJobs = [...ended].map((i) => cluster.jobs[i]?.uid || cluster.jobName(i));
  }
  if (removed.size > 0) {
    change.removeNodes = [...removed].map((i) => cluster.nodeName(i));
  }
  if (jobs.length > 0) {
    change.jobs = jobs;
  }
  const nodes = [...cluster.nodes.map((n, i) => (removed.has(i) ? undefined : (uncordoned.get(i) ?? n))), ...added];
  const snapshot = {
    ...cluster.snapshot, dimensions, nodes, nodeSets: sets,
    queues: cluster.queues.map((q, i) => queues.get(i) ?? q),
    jobs: [...cluster.jobs.map((j, i) => (ended.has(i) ? undefined : j)), ...jobs],
  } as SnapshotJson;
  return { change, cluster: new Cluster(snapshot, cluster.firstTasks, cluster.given), job: jobs.length > 0 ? cluster.jobs.length : undefined, faults };
}

function setAmount(queue: QueueJson, field: AmountField, dimension: number, value: number | undefined): void {
  if (dimension < 0) {
    return;
  }
  const amounts = amountsOf(queue[field]);
  if (value === undefined) {
    amounts.delete(dimension);
  } else {
    amounts.set(dimension, value);
  }
  if (amounts.size > 0) {
    queue[field] = resourceOf(amounts);
  } else {
    delete queue[field];
  }
}

// copies returns new nodes like an existing one.
function copies(cluster: Cluster, like: string, count: number, faults: string[]): NodeJson[] {
  const node = cluster.nodes.find((n) => n?.name === like);
  if (node === undefined) {
    faults.push(`There is no node ${like}.`);
    return [];
  }
  const taken = new Set(cluster.nodes.map((n) => n?.name));
  const { unschedulable: _, usedByOthers: __, leavingPods: ___, reservations: ____, ...shape } = node;
  // Pods that every node has, as those of a DaemonSet, are on a new node too.
  const everywhere = (node.otherPods ?? []).filter((pod) => cluster.nodes.every((n) => n === undefined || n.otherPods?.includes(pod)));
  const out: NodeJson[] = [];
  for (let i = 1; out.length < count; i++) {
    const name = `${like}-new-${i}`;
    if (!taken.has(name)) {
      out.push({ ...shape, name, ...(node.otherPods === undefined ? {} : { otherPods: [...new Set(everywhere)] }) });
    }
  }
  return out;
}

// joinSets adds a new node to the sets of the node that it is like, but for those that name their nodes.
function joinSets(cluster: Cluster, like: string, position: number, joined: Map<number, number[]>): void {
  const of = cluster.nodes.findIndex((n) => n?.name === like);
  cluster.snapshot.nodeSets?.forEach((set, i) => {
    if (set.fixed !== true && set.nodes?.includes(of) === true) {
      joined.set(i, [...(joined.get(i) ?? []), position]);
    }
  });
}

// saidEdit describes an edit.
export function saidEdit(edit: Edit, text: (dimension: string, amount: number) => string): string {
  switch (edit.kind) {
    case "weight":
      return `Weight of ${edit.queue}: ${edit.value}`;
    case "add":
      return `${edit.count} more ${edit.count === 1 ? "node" : "nodes"} like ${edit.like}`;
    case "remove":
      return `Without node ${edit.node}`;
    case "uncordon":
      return `Node ${edit.node} takes new tasks`;
    case "open":
      return `Queue ${edit.queue} is open`;
    case "end":
      return `${edit.job} has ended`;
    case "job":
      return "A job is submitted";
    default:
      return `${edit.kind[0]?.toUpperCase()}${edit.kind.slice(1)} of ${edit.queue}: ${edit.value === undefined ? "none" : text(edit.dimension, edit.value)}`;
  }
}

// argumentsOf returns the arguments of `apportion whatif` that make the edits of a remedy; undefined if it cannot make one of them.
export function argumentsOf(cluster: Cluster, remedy: RemedyJson): string[] | undefined {
  const list = (remedy.edits ?? []).map((e) => (remedy.kueue !== undefined && e.role !== undefined ? undefined : argumentOf(cluster, e)));
  return list.length === 0 || list.includes(undefined) ? undefined : (list as string[][]).flat();
}

// settings are the words of `--set` for kinds of edits, by the object that they follow.
const settings: Partial<Record<NonNullable<EditJson["kind"]>, string>> = {
  EDIT_KIND_CAPABILITY: "capability.", EDIT_KIND_GUARANTEE: "guarantee.", EDIT_KIND_DESERVED: "deserved.", EDIT_KIND_WEIGHT: "weight",
  EDIT_KIND_NOMINAL: "nominal.", EDIT_KIND_BORROWING_LIMIT: "borrowingLimit.", EDIT_KIND_LENDING_LIMIT: "lendingLimit.", EDIT_KIND_OPEN: "state",
  EDIT_KIND_PRIORITY: "priority", EDIT_KIND_QUEUE: "queue", EDIT_KIND_MINIMUM: "minAvailable", EDIT_KIND_MIN_RESOURCES: "minResources.",
  EDIT_KIND_REQUEST: "request.", EDIT_KIND_ALLOWED_NODE: "otherNode",
};

function argumentOf(cluster: Cluster, e: EditJson): string[] | undefined {
  const amount = Number(e.amount ?? 0);
  const job = e.job?.index === undefined ? "" : cluster.jobName(e.job.index);
  switch (e.kind) {
    case "EDIT_KIND_END":
      return ["--finish", job];
    case "EDIT_KIND_NODES_LIKE":
      return ["--add-nodes", String(amount), "--like", e.node?.name ?? ""];
    case "EDIT_KIND_UNCORDON":
      return ["--uncordon", e.node?.name ?? ""];
    default:
  }
  const setting = e.kind === undefined ? undefined : settings[e.kind];
  const quota = e.kind === "EDIT_KIND_NOMINAL" || e.kind === "EDIT_KIND_BORROWING_LIMIT" || e.kind === "EDIT_KIND_LENDING_LIMIT";
  if (setting === undefined || (quota && cluster.queues[e.queue?.index ?? 0]?.kueue?.cohort === true)) {
    return undefined;
  }
  let dimension = cluster.dimensions[e.dimension ?? -1] ?? "";
  const text = writtenOf(dimension, amount);
  if (quota) {
    dimension = `${name(dimension)}@${name(e.nodeSet ?? "")}`;
  }
  const of = e.queue === undefined ? `job/${name(job)}` : `${quota ? "cluster" : ""}queue/${name(e.queue.name ?? "")}`;
  const role = e.role === undefined ? "" : `.role.${name(e.role)}`;
  const value = e.kind === "EDIT_KIND_OPEN" ? "open" : e.to !== undefined ? name(e.to.name ?? "") : setting.endsWith(".") ? text : String(amount);
  return ["--set", `${of}${role}.${setting}${setting.endsWith(".") ? dimension : ""}=${value}`];
}

// name writes a name as `--set` reads it: in quotation marks if a part of it could be taken for a setting.
const name = (text: string): string => (/[="]/.test(text) || (text.includes(".") && !text.includes("/")) ? JSON.stringify(text) : text);
