// The page's calls, answered by the engine in a worker, and the files that it reads.
import { Fault, type Transport } from "../core/ask.ts";
import { Cluster } from "../core/cluster.ts";
import type { PolicyJson, SnapshotJson } from "../core/contract.ts";
import { still, type Opened, type Policy } from "../core/source.ts";
import { tooLarge } from "./files.ts";
import { own, Program, type Progress, type Request } from "./program.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const text = (data: Uint8Array): string => new TextDecoder().decode(data);

// The snapshot that a new engine is given again.
let held: Uint8Array | undefined;
// What is read again when the reader is asked about it and has another one.
let manifests: (() => Promise<readonly File[]>) | undefined;
let read: typeof manifests;

export const engine = new Program("engine.wasm.gz", () => (held === undefined ? undefined : { name: "hold", arguments: [held] }));
export const reader = new Program("reader.wasm.gz");
const rehearser = new Program("rehearse.wasm.gz");

export const transport: Transport = {
  call: async (method, request, signal) => text(await engine.ask({ name: "call", arguments: [bytes(method), bytes(request)] }, signal)),
  patches: async (_, answers, signal) => {
    const wanted = manifests;
    if (wanted !== undefined && read !== wanted) {
      await reader.ask({ name: "read", arguments: [], files: await wanted() }, signal);
      read = wanted;
    }
    return text(await reader.ask({ name: "patches", arguments: [bytes(answers)] }, signal));
  },
};

// Site is the document that the site has beside the page: the presets, and samples to begin with.
export interface Site {
  readonly policies: readonly Policy[];
  readonly samples: readonly Sample[];
}

export interface Sample {
  readonly name: string;
  readonly title: string;
  readonly about: string;
  readonly files: readonly string[];
  readonly warnings?: readonly string[];
  // The policy of its configuration, if it has one.
  readonly policy?: PolicyJson;
  // The name of a history of jobs on it.
  readonly trace?: string;
}

let site: Promise<Site> | undefined;

export const about = (): Promise<Site> => (site ??= own("site.json").then((response) => response.json() as Promise<Site>));

// Found is a cluster with the policies to ask by, the first one first.
export interface Found {
  readonly opened: Opened;
  readonly policies: readonly Policy[];
}

interface Head {
  readonly policy?: PolicyJson;
  // What the policy is called.
  readonly title?: string;
  readonly preset?: string;
  readonly patchable?: boolean;
  readonly warnings?: readonly string[];
}

// hold gives the engine a snapshot.
async function hold(data: Uint8Array, signal: AbortSignal, progress: Progress): Promise<string> {
  const request: Request = { name: "hold", arguments: [data] };
  const digest = text(await engine.ask(request, signal, progress));
  held = data;
  return digest;
}

function policiesOf(presets: readonly Policy[], head: Head): readonly Policy[] {
  if (head.policy !== undefined) {
    return [{ name: "given", title: head.title ?? "", policy: head.policy }, ...presets];
  }
  return [...presets.filter((p) => p.name === head.preset), ...presets.filter((p) => p.name !== head.preset)];
}

// openFiles reads files that the reader of the page gives.
export async function openFiles(files: readonly File[], signal: AbortSignal, progress: Progress): Promise<Found> {
  const large = tooLarge(files);
  if (large !== undefined) {
    throw new Fault("", large);
  }
  const { policies } = await about();
  const parts = await reader.ask({ name: "read", arguments: [], files }, signal, progress);
  const [first, rest] = cut(parts);
  const [snapshot, data] = cut(rest);
  const head = JSON.parse(text(first)) as Head;
  const cluster = new Cluster(JSON.parse(text(snapshot)) as SnapshotJson);
  progress("Handing the cluster to the engine");
  const digest = await hold(data, signal, progress);
  manifests = read = () => Promise.resolve(files);
  const name = files.length === 1 ? (files[0]?.name ?? "") : `${files.length} files`;
  return {
    policies: policiesOf(policies, head),
    opened: {
      ...still, title: name.replace(/(\.tar)?(\.(ya?ml|json|zip|tar|tgz|gz))?$/i, ""), digest, read: Date.now(), cluster, warnings: head.warnings ?? [],
      patches: head.patchable === true ? "patches" : "",
    },
  };
}

// cut returns a part that begins with its length, and what follows it.
function cut(data: Uint8Array): [Uint8Array, Uint8Array] {
  const length = new DataView(data.buffer, data.byteOffset).getUint32(0, true);
  return [data.subarray(4, 4 + length), data.subarray(4 + length)];
}

// openSample opens a sample of the site, which is a snapshot already.
export async function openSample(name: string, signal: AbortSignal, progress: Progress): Promise<Found> {
  const { policies, samples } = await about();
  const sample = samples.find((s) => s.name === name);
  if (sample === undefined) {
    throw new Fault("", `This site has no sample ${name}.`);
  }
  const folder = `samples/${sample.name}`;
  const [snapshot, data] = await Promise.all([
    own(`${folder}/snapshot.json`).then((response) => response.json() as Promise<SnapshotJson>),
    own(`${folder}/snapshot.binpb`).then((response) => response.arrayBuffer()),
  ]);
  const digest = await hold(new Uint8Array(data), signal, progress);
  manifests = () => Promise.all(sample.files.map(async (file) => new File([await (await own(`${folder}/${file}`)).blob()], file)));
  return {
    policies: policiesOf(policies, sample),
    opened: { ...still, title: sample.title, digest, read: Date.now(), warnings: sample.warnings ?? [], cluster: new Cluster(snapshot), patches: "patches" },
  };
}

// Waits are in seconds.
interface Waits {
  readonly mean: number;
  readonly longest: number;
}

// Rehearsed is what the rehearsal of a history under a policy found.
export interface Rehearsed {
  readonly trace: { readonly jobs: number; readonly firstArrival: number; readonly lastArrival: number; readonly notes: readonly string[] };
  readonly resource: string;
  readonly entitledBy: string;
  readonly run: {
    readonly name: string;
    readonly unfinished: number;
    readonly waits: Waits;
    readonly use: readonly { readonly arriving: number; readonly lostHours: number }[];
    readonly evictions: { readonly total: number };
    readonly entitlementKept: number;
    readonly fairness: number;
    readonly queues: readonly { readonly name: string; readonly jobs: number; readonly waits: Waits }[];
  };
}

// traceOf returns the history of a sample, if it has one.
export async function traceOf(name: string): Promise<File | undefined> {
  const trace = (await about()).samples.find((s) => s.name === name)?.trace;
  return trace === undefined ? undefined : new File([await (await own(`samples/${name}/${trace}`)).blob()], trace);
}

// rehearse runs a history on the cluster that the engine holds, under a policy. every is in seconds.
export async function rehearse(trace: File, policy: Policy, every: number, signal: AbortSignal, progress: Progress): Promise<Rehearsed> {
  const { policies } = await about();
  const large = tooLarge([trace]);
  if (large !== undefined || held === undefined) {
    throw new Fault("", large ?? "Open a cluster first.");
  }
  const entitled = Object.fromEntries(policies.map((p) => [p.name, p.policy]));
  const settings = JSON.stringify({ name: policy.title, policy: policy.policy, entitled, every });
  return JSON.parse(text(await rehearser.ask({ name: "rehearse", arguments: [held, bytes(settings)], files: [trace] }, signal, progress))) as Rehearsed;
}
