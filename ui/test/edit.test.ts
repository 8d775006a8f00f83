import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { Cluster } from "../src/core/cluster.ts";
import type { EditJson, SnapshotJson } from "../src/core/contract.ts";
import { argumentsOf, formatEdits, named, parseEdits, readEdit, saidEdit, sent, withEdit, writeEdit, type Change, type Edit } from "../src/core/edit.ts";
import { jobOf } from "../src/core/job.ts";

interface Vector {
  readonly snapshot: SnapshotJson;
  readonly edits: { readonly text: string; readonly edit: EditJson }[];
  readonly arguments: string[];
}

test("edits are written as the command line writes them, and read back", () => {
  for (const vector of JSON.parse(readFileSync("../testdata/edits.json", "utf8")) as Vector[]) {
    const of = new Cluster(vector.snapshot);
    const edits = vector.edits.map(({ edit }) => named(of, edit));
    edits.forEach((edit, i) => {
      const { text, edit: message } = vector.edits[i] as Vector["edits"][number];
      assert.equal(writeEdit(edit), text);
      assert.deepEqual(readEdit(text), edit, text);
      const { edits: [request], faults } = sent(of, [edit]);
      assert.deepEqual(faults, []);
      const without = ({ queue, job, node, to, ...rest }: EditJson) => [rest, queue !== undefined, job !== undefined, node !== undefined, to?.name];
      assert.deepEqual(without(request ?? {}), without(message), text);
    });
    assert.deepEqual(argumentsOf(edits), vector.arguments);
    assert.deepEqual(parseEdits(formatEdits(edits.slice(0, 200))), edits);
  }
});

const cluster = new Cluster({
  dimensions: ["nvidia.com/gpu"],
  nodes: [{ name: "n0", allocatable: { dimensions: [0], amounts: [8000] } }, { name: "n1" }],
  queues: [{ name: "a", weight: 2, capability: { dimensions: [0], amounts: [4000] } }, { name: "b" }],
  jobs: [{ name: "old", namespace: "x", queue: "a" }],
});
const gpu = "nvidia.com/gpu";
const weight = (name: string, amount: number): Edit => ({ kind: "EDIT_KIND_WEIGHT", object: "queue", name, amount });
const edits: Change[] = [
  weight("a", 5), { kind: "EDIT_KIND_GUARANTEE", object: "queue", name: "b", dimension: gpu, amount: 2000 },
  { kind: "EDIT_KIND_CAPABILITY", object: "queue", name: "a", dimension: gpu }, { kind: "EDIT_KIND_NODES_LIKE", object: "node", name: "n0", amount: 2 },
  { kind: "EDIT_KIND_REMOVE", object: "node", name: "n1" }, { kind: "EDIT_KIND_END", object: "job", name: "x/old" }, { job: "name: new\nqueue: a\n" },
];

test("changes are read back from an address", () => {
  assert.equal(formatEdits(edits.slice(0, 2)), '["queue/a.weight=5","queue/b.guarantee.nvidia.com/gpu=2"]');
  assert.deepEqual(parseEdits(formatEdits(edits)), edits);
  assert.equal(formatEdits([]), "");
});

test("what is no change is left out", () => {
  for (const text of ["", "{", "1", "[1]", '["queue/a.weight=many"]', '["queue/a.weight"]', '["queue/a.weight="]', '["node/a"]', '["nothing"]', '["__proto__/a.b=1"]']) {
    assert.deepEqual(parseEdits(text), []);
  }
});

test("a change takes the place of one of the same thing", () => {
  assert.deepEqual(withEdit(edits, weight("a", 6)).slice(-2), [{ job: "name: new\nqueue: a\n" }, weight("a", 6)]);
  const open: Edit = { kind: "EDIT_KIND_OPEN", object: "queue", name: "a" };
  assert.deepEqual(withEdit([{ ...open, kind: "EDIT_KIND_CLOSE", text: "closing" }], open), [open]);
  assert.equal(withEdit(edits, { job: "" }).length, edits.length);
});

test("a request has the edits after the job that is submitted, and the cluster stays as it is", () => {
  const { events, edits: list, cluster: after, job, faults } = sent(cluster, edits);
  assert.deepEqual(faults, []);
  assert.deepEqual(list, [
    { kind: "EDIT_KIND_WEIGHT", queue: { name: "a" }, amount: 5 }, { kind: "EDIT_KIND_GUARANTEE", queue: { name: "b" }, dimension: 0, amount: 2000 },
    { kind: "EDIT_KIND_CAPABILITY", queue: { name: "a" }, dimension: 0 }, { kind: "EDIT_KIND_NODES_LIKE", node: { name: "n0" }, amount: 2 },
    { kind: "EDIT_KIND_REMOVE", node: { name: "n1" } }, { kind: "EDIT_KIND_END", job: { index: 0 } },
  ]);
  assert.equal(events.length, 1);
  assert.deepEqual([job, after.jobName(1)], [1, "default/new"]);
  assert.deepEqual(sent(cluster, [weight("a", 1)]).events, []);
  assert.deepEqual(sent(cluster, [{ kind: "EDIT_KIND_DESERVED", object: "queue", name: "a", dimension: "cpu", amount: 1 }]).events, [
    { change: { dimensions: [gpu, "cpu", "memory"] } },
  ], "a resource that the cluster has not");
});

test("what does not exist is said", () => {
  const { faults } = sent(cluster, [weight("z", 1), { kind: "EDIT_KIND_REMOVE", object: "node", name: "z" }, { kind: "EDIT_KIND_END", object: "job", name: "z" }, { job: "queue: a" }]);
  assert.deepEqual(faults, ["There is no queue z.", "There is no node z.", "There is no job z.", "name: the job needs a name"]);
});

test("a change is told", () => {
  assert.deepEqual(edits.map((e) => saidEdit(e, (dimension, amount) => `${amount} ${dimension}`)), [
    "Weight of a: 5", "Guarantee of b: 2000 nvidia.com/gpu", "Capability of a: none", "2 more nodes like n0", "Without node n1", "x/old has ended", "A job is submitted",
  ]);
  assert.equal(saidEdit({ kind: "EDIT_KIND_REQUEST", object: "job", name: "x/old", role: "w", dimension: gpu, amount: 500 }, String), "Role.w.request.nvidia.com/gpu of x/old: 500m");
});

const read = (text: string) => jobOf(text, [...cluster.dimensions], (q) => cluster.queueIndex(q) !== undefined, (j) => cluster.jobIndex(j) !== undefined);

test("a job in the short form", () => {
  const job = read("name: train\nnamespace: ml\nqueue: a\nminAvailable: 2\ngroups:\n- {role: worker, replicas: 3, request: {nvidia.com/gpu: 4, cpu: 500m}}\n");
  assert.deepEqual(job.minResources, { dimensions: [0, 1], amounts: [8000, 1000] });
  assert.deepEqual(job.groups?.[0]?.tasks?.map((t) => t.name), ["train-worker-0", "train-worker-1", "train-worker-2"]);
});

test("a Volcano Job, whose pods request what their containers do", () => {
  const job = read(JSON.stringify({
    kind: "Job", metadata: { name: "train", namespace: "ml" },
    spec: { queue: "a", minAvailable: 1, tasks: [{ name: "w", replicas: 2, template: { spec: {
      containers: [{ resources: { requests: { cpu: "1" } } }, { resources: { limits: { cpu: "500m" } } }], initContainers: [{ resources: { requests: { cpu: 4 } } }],
    } } }] },
  }));
  assert.deepEqual(job.groups?.[0]?.request, { dimensions: [1], amounts: [4000] });
  assert.deepEqual(job.minResources, { dimensions: [1], amounts: [4000] });
});

test("a job that cannot be read says where it is wrong", () => {
  for (const [text, want] of [
    ["[", /Not YAML/], ["1", /One job/], ["kind: Pod", /kind Pod/], ["name: a\nqueue: z", /no queue z/], ["name: old\nnamespace: x\nqueue: a", /already/],
    ["name: a\nqueue: a\ngroups: [{request: {cpu: many}}]", /groups\[0\]\.request\.cpu/], ["name: a\nqueue: a\ngroups: [{replicas: -1}]", /groups\[0\]\.replicas/],
    ["name: a\nqueue: a\ngroups: [{replicas: 1000000000}]", /groups\[0\]\.replicas/],
  ] as const) {
    assert.throws(() => read(text), want);
  }
});
