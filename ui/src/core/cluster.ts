// A cluster as a snapshot describes it, with the lookups that views need.
import { amountOf, amountsOf, numberOf, resourceOf } from "./amount.ts";
import type { JobJson, NodeJson, QueueJson, ResourceJson, SnapshotJson, TaskGroupJson, TaskJson } from "./contract.ts";

// Task is a task with its number.
export interface Task {
  readonly number: number;
  readonly job: number;
  readonly group: TaskGroupJson;
  readonly json: TaskJson;
}

// Use contains the resources of one job on one node.
export interface Use {
  readonly job: number;
  readonly queue: number;
  tasks: number;
  releasing: number;
  readonly amounts: Map<number, number>;
}

const holding = new Set(["TASK_STATUS_ALLOCATED", "TASK_STATUS_BINDING", "TASK_STATUS_BOUND", "TASK_STATUS_RUNNING"]);

export const occupies = (status: string | undefined): boolean => holding.has(status ?? "") || status === "TASK_STATUS_RELEASING";

export const waits = (status: string | undefined): boolean =>
  status === undefined || status === "TASK_STATUS_PENDING" || status === "TASK_STATUS_UNSPECIFIED";

export class Cluster {
  readonly dimensions: readonly string[];
  readonly queues: readonly (QueueJson | undefined)[];
  readonly jobs: readonly (JobJson | undefined)[];
  readonly nodes: readonly (NodeJson | undefined)[];
  #queuesByName: ReadonlyMap<string, number> | undefined;
  #jobsByName: ReadonlyMap<string, number> | undefined;
  #tasks: (Task | undefined)[] | undefined;
  #uses: Use[][] | undefined;
  readonly #totals: number[] = [];
  #offered: readonly number[] | undefined;

  // Numbers of the first tasks of jobs that a change has set, which do not follow from their position. Tasks by their numbers, where groups
  // do not hold them; null: they are not read yet.
  constructor(
    readonly snapshot: SnapshotJson,
    readonly firstTasks: ReadonlyMap<number, number> = new Map(),
    readonly given: readonly (Task | undefined)[] | null | undefined = undefined,
  ) {
    const dimensions = [...(snapshot.dimensions ?? [])];
    for (const name of ["cpu", "memory"]) {
      if (!dimensions.includes(name)) {
        dimensions.push(name);
      }
    }
    this.dimensions = dimensions;
    this.queues = snapshot.queues ?? [];
    this.jobs = snapshot.jobs ?? [];
    this.nodes = snapshot.nodes ?? [];
  }

  // listed reports whether the tasks are known.
  get listed(): boolean {
    return this.given !== null;
  }

  // listing returns the cluster with tasks. The usage of its nodes is then only that of others.
  listing(tasks: readonly (Task | undefined)[]): Cluster {
    const cluster = new Cluster(this.snapshot, this.firstTasks, tasks);
    const nodes = this.nodes.map((node, n): NodeJson | undefined => {
      if (node === undefined) {
        return undefined;
      }
      const rest = amountsOf(node.usedByOthers);
      for (const use of cluster.uses(n)) {
        use.amounts.forEach((amount, d) => rest.set(d, Math.max(0, (rest.get(d) ?? 0) - amount)));
      }
      return { ...node, usedByOthers: resourceOf(rest) };
    });
    return new Cluster({ ...this.snapshot, nodes: nodes as NodeJson[] }, this.firstTasks, tasks);
  }

  queueName(index: number | undefined): string {
    return this.queues[index ?? 0]?.name ?? "another queue";
  }

  queueIndex(name: string): number | undefined {
    return this.#queueByName().get(name);
  }

  // Names are indexed at the first lookup, because What if creates a cluster at every step of a slider.
  #queueByName(): ReadonlyMap<string, number> {
    if (this.#queuesByName === undefined) {
      const byName = new Map<string, number>();
      this.queues.forEach((queue, i) => queue && byName.set(queue.name ?? "", i));
      this.#queuesByName = byName;
    }
    return this.#queuesByName;
  }

  jobName(index: number | undefined): string {
    const job = this.jobs[index ?? 0];
    if (job === undefined) {
      return "a job of another queue";
    }
    if (!job.name) {
      return job.uid ?? "";
    }
    return job.namespace ? `${job.namespace}/${job.name}` : job.name;
  }

  jobIndex(name: string): number | undefined {
    return this.#jobByName().get(name);
  }

  #jobByName(): ReadonlyMap<string, number> {
    if (this.#jobsByName === undefined) {
      const byName = new Map<string, number>();
      this.jobs.forEach((job, i) => job && byName.set(this.jobName(i), i));
      this.jobs.forEach((job, i) => job?.uid && !byName.has(job.uid) && byName.set(job.uid, i));
      this.#jobsByName = byName;
    }
    return this.#jobsByName;
  }

  // queueOf is the position of a job's queue.
  queueOf(job: number): number {
    return this.#queueByName().get(this.jobs[job]?.queue ?? "") ?? 0;
  }

  nodeName(index: number | undefined): string {
    return this.nodes[index ?? 0]?.name ?? `node ${index ?? 0}`;
  }

  // task looks a task up by its number.
  task(number: number): Task | undefined {
    return this.#numbered()[number];
  }

  taskName(number: number): string {
    const task = this.task(number);
    if (task === undefined) {
      return `task ${number}`;
    }
    const namespace = this.jobs[task.job]?.namespace;
    const name = task.json.name || task.json.uid || `task ${number}`;
    return namespace && task.json.name ? `${namespace}/${name}` : name;
  }

  #numbered(): readonly (Task | undefined)[] {
    if (this.given !== undefined) {
      return this.given ?? [];
    }
    if (this.#tasks === undefined) {
      const tasks: (Task | undefined)[] = [];
      let next = 0;
      this.jobs.forEach((job, j) => {
        next = this.firstTasks.get(j) ?? next;
        for (const group of job?.groups ?? []) {
          for (const json of group.tasks ?? []) {
            tasks[next] = { number: next, job: j, group, json };
            next++;
          }
        }
      });
      this.#tasks = tasks;
    }
    return this.#tasks;
  }

  // tasksOf returns the numbered tasks of a job.
  tasksOf(job: number): Task[] {
    return this.#numbered().filter((t): t is Task => t?.job === job);
  }

  // uses returns the usage of a node by job, in the order of queues.
  uses(node: number): readonly Use[] {
    if (this.#uses === undefined) {
      const byNode: Map<number, Use>[] = [];
      for (const task of this.#numbered()) {
        if (task?.json.node === undefined || !occupies(task.json.status)) {
          continue;
        }
        const uses = (byNode[task.json.node] ??= new Map<number, Use>());
        let use = uses.get(task.job);
        if (use === undefined) {
          use = { job: task.job, queue: this.queueOf(task.job), tasks: 0, releasing: 0, amounts: new Map() };
          uses.set(task.job, use);
        }
        use.tasks++;
        use.releasing += task.json.status === "TASK_STATUS_RELEASING" ? 1 : 0;
        add(use.amounts, requestOf(task));
      }
      this.#uses = byNode.map((uses) => [...uses.values()].sort((a, b) => a.queue - b.queue || a.job - b.job));
    }
    return this.#uses[node] ?? [];
  }

  // capacity returns the amount of a dimension that a node offers.
  capacity(node: number, dimension: number): number {
    return amountOf(this.nodes[node]?.allocatable, dimension) ?? 0;
  }

  // used returns the amount that all tasks on the node use.
  used(node: number, dimension: number): number {
    let sum = amountOf(this.nodes[node]?.usedByOthers, dimension) ?? 0;
    for (const use of this.uses(node)) {
      sum += use.amounts.get(dimension) ?? 0;
    }
    return sum;
  }

  // total returns the cluster's amount of a dimension. It is summed once.
  total(dimension: number): number {
    return (this.#totals[dimension] ??= this.#sum(dimension));
  }

  #sum(dimension: number): number {
    if (this.snapshot.total !== undefined) {
      return amountOf(this.snapshot.total, dimension) ?? 0;
    }
    return this.nodes.reduce((sum, node) => sum + (amountOf(node?.allocatable, dimension) ?? 0), 0);
  }

  // offered returns the positions of the dimensions that the cluster offers: devices first, then cpu, memory and the rest.
  offered(): readonly number[] {
    return (this.#offered ??= this.#ranked());
  }

  #ranked(): number[] {
    const rank = (name: string): number => {
      switch (name) {
        case "cpu":
          return 1;
        case "memory":
          return 2;
        case "pods":
        case "ephemeral-storage":
          return 3;
      }
      return name.startsWith("hugepages-") ? 3 : 0;
    };
    return this.dimensions
      .map((_, d) => d)
      .filter((d) => this.total(d) > 0)
      .sort((a, b) => rank(this.dimensions[a] ?? "") - rank(this.dimensions[b] ?? "") || a - b);
  }
}

export function requestOf(task: Task): ResourceJson | undefined {
  return task.json.detail?.request ?? task.group.request;
}

function add(amounts: Map<number, number>, resource: ResourceJson | undefined): void {
  resource?.dimensions?.forEach((d, i) => amounts.set(d, (amounts.get(d) ?? 0) + numberOf(resource.amounts?.[i])));
}
