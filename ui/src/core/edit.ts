// What if: the edits in the address of a view, as `apportion whatif --set` reads them, and the part of a request that they become.
import { quantityOf, writtenOf } from "./amount.ts";
import { Cluster } from "./cluster.ts";
import type { ChangeJson, EditJson, InputJson, JobJson, RemedyJson, SnapshotJson } from "./contract.ts";
import { jobOf } from "./job.ts";

export const amountFields = ["guarantee", "deserved", "capability"] as const;

type Kind = NonNullable<EditJson["kind"]>;

export const amountKind = (field: (typeof amountFields)[number]): Kind => `EDIT_KIND_${field.toUpperCase() as Uppercase<typeof field>}`;

// Edit is one change of one setting of an object that has a name. What it has besides depends on its kind.
export interface Edit {
  readonly kind: Kind;
  // The object is a queue, a job, a node, the new flavor of Kueue that the name is, or the memory, which has no name.
  readonly object: string;
  readonly name: string;
  readonly role?: string;
  readonly dimension?: string;
  // The flavor of a quota of Kueue.
  readonly flavor?: string;
  // Undefined removes what has an amount.
  readonly amount?: number;
  readonly text?: string;
  // The queue to which a job moves, or the node that it may use too.
  readonly to?: string;
}

// Submission is a job that is submitted, as its owner wrote it.
export interface Submission {
  readonly job: string;
}

export type Change = Edit | Submission;

export const isJob = (change: Change): change is Submission => "job" in change;

// A form is how edits of a kind are written: the object, the setting, and how its value is. A setting that ends in a period is followed by
// a resource. Words are values that stand for a kind alone, or for one with a text. internal/editing has the same table; testdata/edits.json
// compares the two.
type Value = "number" | "amount" | "quota" | "seconds" | "text" | "to" | readonly (readonly [word: string, kind: Kind, text?: string])[];
type Form = readonly [object: string, setting: string, kind: Kind | "", value: Value, role?: "may" | "must"];

const forms: readonly Form[] = [
  ["queue", "weight", "EDIT_KIND_WEIGHT", "number"],
  ["queue", "priority", "EDIT_KIND_PRIORITY", "number"],
  ["queue", "state", "", [["open", "EDIT_KIND_OPEN"], ["closing", "EDIT_KIND_CLOSE", "closing"], ["closed", "EDIT_KIND_CLOSE"]]],
  ["queue", "reclaimable", "", [["true", "EDIT_KIND_RECLAIMABLE"], ["false", "EDIT_KIND_UNRECLAIMABLE"]]],
  ["queue", "parent", "EDIT_KIND_PARENT", "text"],
  ["queue", "capability.", "EDIT_KIND_CAPABILITY", "amount"],
  ["queue", "guarantee.", "EDIT_KIND_GUARANTEE", "amount"],
  ["queue", "deserved.", "EDIT_KIND_DESERVED", "amount"],
  ["queue", "usage.", "EDIT_KIND_USAGE", "seconds"],
  ["queue", "budget.", "EDIT_KIND_BUDGET", "seconds"],
  ["queue", "spent.", "EDIT_KIND_SPENT", "seconds"],
  ["queue", "budgetKind", "", [
    ["hard", "EDIT_KIND_BUDGET_KIND", "hard"], ["soft", "EDIT_KIND_BUDGET_KIND", "soft"], ["none", "EDIT_KIND_BUDGET_KIND"],
  ]],
  ["clusterqueue", "nominal.", "EDIT_KIND_NOMINAL", "quota"],
  ["clusterqueue", "borrowingLimit.", "EDIT_KIND_BORROWING_LIMIT", "quota"],
  ["clusterqueue", "lendingLimit.", "EDIT_KIND_LENDING_LIMIT", "quota"],
  ["cohort", "nominal.", "EDIT_KIND_NOMINAL", "quota"],
  ["cohort", "borrowingLimit.", "EDIT_KIND_BORROWING_LIMIT", "quota"],
  ["cohort", "lendingLimit.", "EDIT_KIND_LENDING_LIMIT", "quota"],
  ["flavor", "created", "", [["true", "EDIT_KIND_FLAVOR"]]],
  ["job", "priority", "EDIT_KIND_PRIORITY", "number"],
  ["job", "queue", "EDIT_KIND_QUEUE", "to"],
  ["job", "minAvailable", "EDIT_KIND_MINIMUM", "number", "may"],
  ["job", "minResources.", "EDIT_KIND_MIN_RESOURCES", "amount"],
  ["job", "request.", "EDIT_KIND_REQUEST", "amount", "must"],
  ["job", "otherNode", "EDIT_KIND_ALLOWED_NODE", "to"],
  ["job", "ended", "", [["true", "EDIT_KIND_END"]]],
  ["node", "allocatable.", "EDIT_KIND_ALLOCATABLE", "amount"],
  ["node", "maintenance", "EDIT_KIND_MAINTENANCE", "text"],
  ["node", "copies", "EDIT_KIND_NODES_LIKE", "number"],
  ["node", "cordoned", "", [["true", "EDIT_KIND_CORDON"], ["false", "EDIT_KIND_UNCORDON"]]],
  ["node", "removed", "", [["true", "EDIT_KIND_REMOVE"]]],
];

const forget = "memory=none";
const words = new Set(["role", "cohort", "stopPolicy", ...forms.map(([, setting]) => setting.replace(".", ""))]);

// quoted writes a name in quotation marks if it could be taken for another one with a setting behind it.
const quoted = (name: string): string =>
  (name.startsWith('"') || /[=@]/.test(name) || name.split(".").some((part) => words.has(part)) ? JSON.stringify(name) : name);

// writeEdit writes an edit as `--set` reads it.
export function writeEdit(e: Edit): string {
  for (const [object, setting, kind, value] of forms) {
    const word = typeof value === "string" ? undefined : value.find(([, of, text]) => of === e.kind && (text ?? "") === (e.text ?? ""));
    if (object !== e.object || (word === undefined && kind !== e.kind)) {
      continue;
    }
    const role = e.role === undefined ? "" : `role.${quoted(e.role)}.`;
    const resource = e.dimension === undefined ? "" : `${quoted(e.dimension)}${e.flavor === undefined ? "" : `@${quoted(e.flavor)}`}`;
    return `${object}/${quoted(e.name)}.${role}${setting}${resource}=${word?.[0] ?? writtenValue(e, value)}`;
  }
  return forget;
}

function writtenValue(e: Edit, value: Value): string {
  if (value === "to") {
    return quoted(e.to ?? "");
  }
  if (value === "text" || e.amount === undefined) {
    return e.text || "none";
  }
  return value === "amount" || value === "quota" ? (e.amount === Infinity ? "unlimited" : writtenOf(e.dimension ?? "", e.amount)) : String(e.amount);
}

// nameIn reads a name, which ends before one of some texts unless it is in quotation marks; undefined: it is none.
function nameIn(text: string): { name: string; rest: string } | undefined {
  const inside = /^"(?:[^"\\]|\\.)*"/.exec(text)?.[0];
  if (inside === undefined) {
    return undefined;
  }
  try {
    return { name: String(JSON.parse(inside)), rest: text.slice(inside.length) };
  } catch {
    return undefined;
  }
}

const plain = (text: string): string => {
  const name = nameIn(text);
  return name?.rest === "" ? name.name : text;
};

// readEdit reads an edit; undefined: it is none.
export function readEdit(text: string): Edit | undefined {
  if (text === forget) {
    return { kind: "EDIT_KIND_FORGET", object: "memory", name: "" };
  }
  const slash = text.indexOf("/");
  const object = text.slice(0, slash);
  return split(text.slice(slash + 1), (name, rest) => {
    for (const [of, setting, kind, value, role] of forms) {
      const found = of !== object ? undefined : role === "must" ? undefined : settingIn(rest, setting, kind, value);
      if (found !== undefined) {
        return { object, name, ...found };
      }
    }
    return !rest.startsWith("role.") ? undefined : split(rest.slice(5), (of, inRole) => {
      for (const [owner, setting, kind, value, role] of forms) {
        const found = owner !== object || role === undefined ? undefined : settingIn(inRole, setting, kind, value);
        if (found !== undefined) {
          return { object, name, role: of, ...found };
        }
      }
      return undefined;
    });
  });
}

// split tries what is behind a name and a period. The first period behind which something can be read ends a name without quotation marks.
function split(text: string, behind: (name: string, rest: string) => Edit | undefined): Edit | undefined {
  const name = nameIn(text);
  if (name?.rest.startsWith(".") === true) {
    return behind(name.name, name.rest.slice(1));
  }
  for (let at = text.indexOf("."); at > 0; at = text.indexOf(".", at + 1)) {
    const found = behind(text.slice(0, at), text.slice(at + 1));
    if (found !== undefined) {
      return found;
    }
  }
  return undefined;
}

type Found = Omit<Edit, "object" | "name" | "role">;

function settingIn(text: string, setting: string, kind: Kind | "", value: Value): Found | undefined {
  if (!text.startsWith(setting)) {
    return undefined;
  }
  const rest = text.slice(setting.length);
  const equals = setting.endsWith(".") ? rest.lastIndexOf("=") : rest.startsWith("=") ? 0 : -1;
  if (equals < 0) {
    return undefined;
  }
  const written = rest.slice(equals + 1);
  if (typeof value !== "string") {
    const word = value.find(([of]) => of === written);
    return word && { kind: word[1], ...(word[2] === undefined ? {} : { text: word[2] }) };
  }
  if (kind === "") {
    return undefined;
  }
  if (value === "to") {
    return { kind, to: plain(written) };
  }
  if (value === "text") {
    return { kind, ...(written === "none" ? {} : { text: written }) };
  }
  let dimension = rest.slice(0, equals);
  let flavor: string | undefined;
  if (value === "quota") {
    const named = nameIn(dimension);
    const at = named === undefined ? dimension.indexOf("@") : dimension.length - named.rest.length;
    flavor = at < 0 ? undefined : plain(dimension.slice(at + 1));
    dimension = at < 0 ? dimension : dimension.slice(0, at);
  }
  dimension = plain(dimension);
  const base = { kind, ...(setting.endsWith(".") ? { dimension } : {}), ...(flavor === undefined ? {} : { flavor }) };
  if (written === "none") {
    return base;
  }
  const amount = written === "unlimited" ? Infinity : value === "amount" || value === "quota" ? quantityOf(dimension, written) : written === "" ? NaN : Number(written);
  return amount === undefined || Number.isNaN(amount) ? undefined : { ...base, amount };
}

// Limit of what is read from an address.
const most = 200;

// parseEdits reads the changes in an address. It ignores unknown ones.
export function parseEdits(text: string | undefined): Change[] {
  let list: unknown;
  try {
    list = JSON.parse(text ?? "[]");
  } catch {
    return [];
  }
  return Array.isArray(list) ? list.slice(0, most).flatMap((item: unknown): Change[] => {
    if (typeof item === "object" && item !== null && "job" in item && typeof item.job === "string") {
      return [{ job: item.job }];
    }
    const edit = typeof item === "string" ? readEdit(item) : undefined;
    return edit === undefined ? [] : [edit];
  }) : [];
}

// formatEdits is the inverse of parseEdits.
export const formatEdits = (changes: readonly Change[]): string =>
  (changes.length === 0 ? "" : JSON.stringify(changes.map((c) => (isJob(c) ? { job: c.job } : writeEdit(c)))));

// subject is what a change is about: the same for two of which one takes the place of the other.
const subject = (c: Change): string => (isJob(c) ? "" : writeEdit({ ...c, text: "" }).replace(/=[^=]*$/, ""));

// withEdit adds a change and replaces an earlier one of the same setting.
export const withEdit = (changes: readonly Change[], change: Change): Change[] => [...withoutEdit(changes, change), change];

export const withoutEdit = (changes: readonly Change[], change: Change): Change[] => changes.filter((c) => subject(c) !== subject(change));

// editOf finds the edit of one setting.
export const editOf = (changes: readonly Change[], kind: Kind, name: string, dimension?: string): Edit | undefined =>
  changes.find((c): c is Edit => !isJob(c) && c.kind === kind && c.name === name && c.dimension === dimension);

export interface Changed {
  readonly events: NonNullable<InputJson["events"]>;
  readonly edits: EditJson[];
  // The cluster with the job that was submitted, which gives names to answers, and the position of the job.
  readonly cluster: Cluster;
  readonly job: number | undefined;
  // Sentences about the changes that could not be made.
  readonly faults: readonly string[];
}

// sent returns what a request says of changes.
export function sent(cluster: Cluster, changes: readonly Change[]): Changed {
  const faults: string[] = [];
  const dimensions = [...cluster.dimensions];
  const jobs: JobJson[] = [];
  const edits = changes.flatMap((c): EditJson[] => {
    if (!isJob(c)) {
      const edit = messageOf(cluster, c, dimensions);
      return typeof edit === "string" ? (faults.push(edit), []) : [edit];
    }
    try {
      jobs.push(jobOf(c.job, dimensions, (name) => cluster.queueIndex(name) !== undefined, (name) => cluster.jobIndex(name) !== undefined));
    } catch (error) {
      faults.push(error instanceof Error ? error.message : String(error));
    }
    return [];
  });
  const known = cluster.snapshot.dimensions?.length ?? 0;
  const change: ChangeJson = {};
  if (jobs.length > 0 || edits.some((e) => (e.dimension ?? -1) >= known)) {
    change.dimensions = dimensions;
  }
  if (jobs.length > 0) {
    change.jobs = jobs;
  }
  const after = jobs.length === 0 ? cluster : new Cluster({ ...cluster.snapshot, dimensions, jobs: [...cluster.jobs, ...jobs] } as SnapshotJson, cluster.firstTasks, cluster.given);
  return { events: change.dimensions === undefined ? [] : [{ change }], edits, cluster: after, job: jobs.length > 0 ? cluster.jobs.length : undefined, faults };
}

// messageOf returns the message of an edit, or a sentence about what there is not.
function messageOf(cluster: Cluster, e: Edit, dimensions: readonly string[]): EditJson | string {
  const out: EditJson = { kind: e.kind };
  const job = cluster.jobIndex(e.name);
  const isQueue = (name: string): boolean => cluster.queueIndex(name) !== undefined;
  const isNode = (name: string): boolean => cluster.nodes.some((n) => n?.name === name);
  if (e.object === "job") {
    if (job === undefined) {
      return `There is no job ${e.name}.`;
    }
    out.job = { index: job };
  } else if (e.object === "node") {
    if (!isNode(e.name)) {
      return `There is no node ${e.name}.`;
    }
    out.node = { name: e.name };
  } else if (e.object === "flavor") {
    out.nodeSet = e.name;
  } else if (e.object !== "memory") {
    if (!isQueue(e.name)) {
      return `There is no queue ${e.name}.`;
    }
    out.queue = { name: e.name };
  }
  if (e.to !== undefined) {
    const [there, what] = e.kind === "EDIT_KIND_QUEUE" ? [isQueue(e.to), "queue"] : [isNode(e.to), "node"];
    if (!there) {
      return `There is no ${what} ${e.to}.`;
    }
    out.to = { name: e.to };
  }
  if (e.dimension !== undefined) {
    const dimension = dimensions.indexOf(e.dimension);
    if (dimension < 0) {
      return `There is no resource ${e.dimension}.`;
    }
    out.dimension = dimension;
  }
  if (e.amount !== undefined) {
    out.amount = Number.isFinite(e.amount) ? e.amount : "Infinity";
  }
  return { ...out, ...(e.role === undefined ? {} : { role: e.role }), ...(e.text ? { text: e.text } : {}), ...(e.flavor === undefined ? {} : { nodeSet: e.flavor }) };
}

// editsOf returns the edits of a remedy.
export const editsOf = (cluster: Cluster, remedy: RemedyJson): Edit[] => (remedy.edits ?? []).map((e) => named(cluster, e));

// named returns an edit of an answer with names in place of positions.
export function named(cluster: Cluster, e: EditJson): Edit {
  const kind = e.kind as Kind;
  const quota = forms.some(([, , of, value]) => of === kind && value === "quota");
  const cohort = cluster.queues[e.queue?.index ?? -1]?.kueue?.cohort === true;
  const [object, name] = e.queue !== undefined ? [quota ? (cohort ? "cohort" : "clusterqueue") : "queue", cluster.queueName(e.queue.index)]
    : e.job !== undefined ? ["job", cluster.jobName(e.job.index)]
    : e.node !== undefined ? ["node", cluster.nodeName(e.node.index)]
    : kind === "EDIT_KIND_FLAVOR" ? ["flavor", e.nodeSet ?? ""] : ["memory", ""];
  const dimension = e.dimension === undefined ? undefined : cluster.dimensions[e.dimension];
  return {
    kind, object, name,
    ...(e.role === undefined ? {} : { role: e.role }),
    ...(dimension === undefined ? {} : { dimension }),
    ...(quota && e.nodeSet ? { flavor: e.nodeSet } : {}),
    ...(e.amount === undefined ? {} : { amount: Number(e.amount) }),
    ...(e.text ? { text: e.text } : {}),
    ...(e.to === undefined ? {} : { to: kind === "EDIT_KIND_QUEUE" ? cluster.queueName(e.to.index) : cluster.nodeName(e.to.index) }),
  };
}

// saidEdit describes a change.
export function saidEdit(c: Change, text: (dimension: string, amount: number) => string): string {
  if (isJob(c)) {
    return "A job is submitted";
  }
  switch (c.kind) {
    case "EDIT_KIND_NODES_LIKE":
      return `${c.amount ?? 0} more ${c.amount === 1 ? "node" : "nodes"} like ${c.name}`;
    case "EDIT_KIND_REMOVE":
      return `Without node ${c.name}`;
    case "EDIT_KIND_UNCORDON":
      return `Node ${c.name} takes new tasks`;
    case "EDIT_KIND_CORDON":
      return `Node ${c.name} takes no new tasks`;
    case "EDIT_KIND_OPEN":
      return `Queue ${c.name} is open`;
    case "EDIT_KIND_END":
      return `${c.name} has ended`;
    default:
  }
  const [setting, value] = writeEdit(c).slice(c.object.length + 1 + quoted(c.name).length + 1).split(/=(?=[^=]*$)/);
  const amount = amountFields.find((f) => amountKind(f) === c.kind);
  const what = amount ?? setting ?? "";
  return `${what[0]?.toUpperCase()}${what.slice(1)} of ${c.name}: ${c.amount !== undefined && c.dimension !== undefined && amount !== undefined ? text(c.dimension, c.amount) : value}`;
}

// flags are the flags of `apportion whatif` that stand for settings.
const flags: Partial<Record<Kind, string>> = {
  EDIT_KIND_END: "--finish", EDIT_KIND_UNCORDON: "--uncordon", EDIT_KIND_CORDON: "--cordon", EDIT_KIND_REMOVE: "--remove-node",
};

// argumentsOf returns the arguments of `apportion whatif` that make edits.
export const argumentsOf = (edits: readonly Edit[]): string[] => edits.flatMap((e) => {
  const flag = flags[e.kind];
  return flag !== undefined ? [flag, e.name]
    : e.kind === "EDIT_KIND_NODES_LIKE" ? ["--add-nodes", String(e.amount ?? 0), "--like", e.name] : ["--set", writeEdit(e)];
});
