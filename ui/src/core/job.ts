// A job that is not in the cluster yet, as its owner would write it: a Volcano Job, or the short form of `apportion whatif`.
import { load } from "js-yaml";

import { quantityOf, resourceOf } from "./amount.ts";
import type { JobJson, TaskGroupJson } from "./contract.ts";

type Fields = Record<string, unknown>;

const fields = (x: unknown): Fields => (typeof x === "object" && x !== null && !Array.isArray(x) ? (x as Fields) : {});
const list = (x: unknown): unknown[] => (Array.isArray(x) ? x : []);
const words = (x: unknown): string => (typeof x === "string" || typeof x === "number" ? String(x) : "");

function count(x: unknown, otherwise: number, path: string): number {
  if (x === undefined || x === null) {
    return otherwise;
  }
  if (typeof x !== "number" || !Number.isSafeInteger(x) || x < 0 || x > 100_000) {
    throw new Error(`${path}: not a number of tasks from 0 to 100,000`);
  }
  return x;
}

// amountsIn reads quantities by name. It adds unknown names to the dimensions of the cluster.
function amountsIn(x: unknown, dimensions: string[], path: string): Map<number, number> {
  const amounts = new Map<number, number>();
  for (const [name, text] of Object.entries(fields(x))) {
    const amount = typeof text === "string" || typeof text === "number" ? quantityOf(name, text) : undefined;
    if (amount === undefined) {
      throw new Error(`${path}.${name}: not a quantity such as 8, 500m or 64Gi`);
    }
    let d = dimensions.indexOf(name);
    if (d < 0) {
      d = dimensions.push(name) - 1;
    }
    amounts.set(d, amount);
  }
  return amounts;
}

function addAll(sum: Map<number, number>, amounts: ReadonlyMap<number, number>, times = 1): void {
  for (const [d, amount] of amounts) {
    sum.set(d, (sum.get(d) ?? 0) + times * amount);
  }
}

interface Role {
  readonly role: string;
  readonly replicas: number;
  readonly least: number | undefined;
  readonly request: Map<number, number>;
}

// jobOf reads a job and throws an error with the path of the fault. The job and all its tasks are pending.
export function jobOf(text: string, dimensions: string[], isQueue: (name: string) => boolean, isJob: (name: string) => boolean): JobJson {
  const document = parsed(text);
  const volcano = document["kind"] !== undefined;
  if (volcano && document["kind"] !== "Job") {
    throw new Error(`kind ${words(document["kind"])}: only a Job of batch.volcano.sh, or the short form without a kind, is supported`);
  }
  const metadata = volcano ? fields(document["metadata"]) : document;
  const spec = volcano ? fields(document["spec"]) : document;
  const name = words(metadata["name"]);
  const namespace = words(metadata["namespace"]) || "default";
  const queue = words(spec["queue"]) || "default";
  if (name === "") {
    throw new Error(`${volcano ? "metadata.name" : "name"}: the job needs a name`);
  }
  if (!isQueue(queue)) {
    throw new Error(`${volcano ? "spec.queue" : "queue"}: there is no queue ${queue}`);
  }
  if (isJob(`${namespace}/${name}`)) {
    throw new Error(`${volcano ? "metadata.name" : "name"}: the job ${namespace}/${name} exists already`);
  }
  const roles = volcano
    ? list(spec["tasks"]).map((t, i) => volcanoRole(fields(t), i, dimensions))
    : list(spec["groups"]).map((g, i) => shortRole(fields(g), i, dimensions));
  const all = roles.reduce((n, r) => n + r.replicas, 0);
  const least = count(spec["minAvailable"], all, "minAvailable");
  const minimum = spec["minResources"] === undefined ? minimumOf(roles, least) : amountsIn(spec["minResources"], dimensions, "minResources");
  const job: JobJson = {
    name, namespace, queue, phase: "JOB_PHASE_PENDING", minAvailable: least, minResources: resourceOf(minimum),
    groups: roles.map((r) => group(r, name)),
  };
  const priority = spec["priority"];
  if (typeof priority === "number" && Number.isSafeInteger(priority)) {
    job.priority = priority;
  }
  return job;
}

function parsed(text: string): Fields {
  const longest = 64 * 1024;
  if (text.length > longest) {
    throw new Error("The text is longer than 64 KiB.");
  }
  let document: unknown;
  try {
    document = load(text);
  } catch (error) {
    throw new Error(`Not YAML: ${error instanceof Error ? (error.message.split("\n")[0] ?? "") : ""}`);
  }
  if (typeof document !== "object" || document === null || Array.isArray(document)) {
    throw new Error("One job is expected, as YAML or JSON.");
  }
  return document as Fields;
}

function shortRole(g: Fields, i: number, dimensions: string[]): Role {
  const path = `groups[${i}]`;
  return {
    role: words(g["role"]), replicas: count(g["replicas"], 1, `${path}.replicas`),
    least: g["minAvailable"] === undefined ? undefined : count(g["minAvailable"], 0, `${path}.minAvailable`),
    request: amountsIn(g["request"], dimensions, `${path}.request`),
  };
}

// volcanoRole reads a task of a Volcano Job: its pod requests the sum of its containers, or the largest init container if that is more.
function volcanoRole(t: Fields, i: number, dimensions: string[]): Role {
  const path = `spec.tasks[${i}]`;
  const pod = fields(fields(t["template"])["spec"]);
  const request = new Map<number, number>();
  const of = (container: unknown, at: string): Map<number, number> => {
    const resources = fields(fields(container)["resources"]);
    const limits = amountsIn(resources["limits"], dimensions, `${at}.resources.limits`);
    const requests = amountsIn(resources["requests"], dimensions, `${at}.resources.requests`);
    return new Map([...limits, ...requests]);
  };
  list(pod["containers"]).forEach((c, k) => addAll(request, of(c, `${path}.template.spec.containers[${k}]`)));
  list(pod["initContainers"]).forEach((c, k) => {
    for (const [d, amount] of of(c, `${path}.template.spec.initContainers[${k}]`)) {
      request.set(d, Math.max(request.get(d) ?? 0, amount));
    }
  });
  const pods = dimensions.indexOf("pods");
  if (pods >= 0) {
    request.set(pods, 1);
  }
  return {
    role: words(t["name"]), replicas: count(t["replicas"], 1, `${path}.replicas`),
    least: t["minAvailable"] === undefined ? undefined : count(t["minAvailable"], 0, `${path}.minAvailable`), request,
  };
}

// minimumOf returns the sum of the requests of the first tasks, as many as the job needs.
function minimumOf(roles: readonly Role[], least: number): Map<number, number> {
  const sum = new Map<number, number>();
  let left = least;
  for (const role of roles) {
    const n = Math.min(left, role.replicas);
    addAll(sum, role.request, n);
    left -= n;
  }
  return sum;
}

function group(r: Role, job: string): TaskGroupJson {
  const g: TaskGroupJson = { role: r.role, request: resourceOf(r.request) };
  if (r.least !== undefined) {
    g.minAvailable = r.least;
  }
  g.tasks = Array.from({ length: r.replicas }, (_, i) => ({ name: [job, r.role, String(i)].filter((p) => p !== "").join("-"), index: i }));
  return g;
}
