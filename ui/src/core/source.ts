// Where the cluster and the policies come from: the server that sent the page, or a file that its reader opens.
import { Fault, patches, type Answers } from "./ask.ts";
import { Cluster } from "./cluster.ts";
import type { PolicyJson, SnapshotJson, SnapshotViewJson } from "./contract.ts";
import { read } from "./kept.ts";

// Policy is a policy that the reader can select.
export interface Policy {
  readonly name: string;
  readonly title: string;
  readonly policy?: PolicyJson;
  // Name of a policy of the server.
  readonly policyName?: string;
}

// Opened is the cluster that the page shows.
export interface Opened {
  readonly title: string;
  // Name of the snapshot that the server maintains. Empty: the snapshot does not change.
  readonly name: string;
  // Its age and completeness, if the server maintains it.
  readonly view: SnapshotViewJson | undefined;
  // The reader may see some queues, and the sums of the others.
  readonly restricted: boolean;
  // Digest of the snapshot for calls. Empty: each call contains the snapshot.
  readonly digest: string;
  // When it was read, in milliseconds.
  readonly read: number;
  readonly warnings: readonly string[];
  // Path of the changes of objects that make a remedy. Empty: the server does not offer them.
  readonly patches: string;
  // Name by which the server knows the ledger of the cluster. Empty: there may be none.
  readonly ledger: string;
  readonly cluster: Cluster;
}

export interface Source {
  readonly policies: readonly Policy[];
  readonly opened: Opened | undefined;
}

interface Document {
  readonly policies: Policy[] | null;
  readonly cluster?: { title: string; name?: string; digest?: string; read?: string; snapshot?: string; patches?: string; ledger?: string; warnings?: string[] };
}

async function fetched<A>(name: string): Promise<A> {
  let response: Response;
  try {
    response = await fetch(name, { headers: { Accept: "application/json" } });
  } catch {
    throw new Fault("unavailable", "The server cannot be reached. If it has stopped, start it again and reload this page.");
  }
  if (!response.ok) {
    throw new Fault(`HTTP ${response.status}`, `${name}: ${response.statusText}`);
  }
  return (await response.json()) as A;
}

// open reads the clusters and policies that the server offers.
export async function open(): Promise<Source> {
  const document = await fetched<Document>("source.json");
  const policies = document.policies ?? [];
  const c = document.cluster;
  if (c === undefined) {
    return { policies, opened: undefined };
  }
  if (c.name !== undefined) {
    return { policies, opened: { ...(await follow(c.name)), title: c.title, warnings: c.warnings ?? [] } };
  }
  const snapshot = await fetched<SnapshotJson>(c.snapshot ?? "");
  return {
    policies,
    opened: {
      title: c.title, digest: c.digest ?? "", read: Date.parse(c.read ?? ""), warnings: c.warnings ?? [], cluster: new Cluster(snapshot), ...still, patches: c.patches ?? "", ledger: c.ledger ?? "",
    },
  };
}

// still contains the fields of a snapshot that does not change.
export const still = { name: "", view: undefined, restricted: false, patches: "", ledger: "" };

// follow opens a snapshot that the server maintains.
export async function follow(name: string): Promise<Opened> {
  const { digest, cluster, view, restricted } = await read(name);
  return { title: name, name, digest, cluster, view, restricted, read: asOf(view), warnings: [], patches: "", ledger: cluster.snapshot.memory === undefined ? "" : name };
}

// asOf returns the time up to which a view contains all events, in milliseconds.
export const asOf = (view: SnapshotViewJson): number => Number(view.asOf ?? 0) / 1e6;

// openText reads a snapshot as `apportion convert -o json` writes it.
export function openText(file: string, text: string, now: number): Opened {
  const title = file.replace(/\.json$/, "");
  let snapshot: unknown;
  try {
    snapshot = JSON.parse(text);
  } catch {
    throw new Fault("", `${file} is not JSON. Write it with: apportion convert -f cluster.yaml -o json > cluster.json`);
  }
  if (typeof snapshot !== "object" || snapshot === null || !isSnapshot(snapshot as Record<string, unknown>)) {
    throw new Fault("", `${file} is not a snapshot. Write it with: apportion convert -f cluster.yaml -o json > cluster.json`);
  }
  return { title, digest: "", read: now, warnings: [], cluster: new Cluster(snapshot as SnapshotJson), ...still };
}

function isSnapshot(document: Record<string, unknown>): boolean {
  const lists = ["dimensions", "nodes", "queues", "jobs"];
  return lists.some((name) => Array.isArray(document[name])) && lists.every((name) => document[name] === undefined || Array.isArray(document[name]));
}

// Patch is a change of objects that makes a part of a remedy.
export interface Patch {
  readonly why?: string;
  readonly kubectl?: readonly string[];
}

// patchesOf returns the changes that make each remedy of an answer.
export function patchesOf(path: string, answers: Answers, signal: AbortSignal): Promise<readonly (readonly Patch[] | null)[]> {
  return patches(path, answers, signal);
}
