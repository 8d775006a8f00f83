import assert from "node:assert/strict";
import { test } from "node:test";

import { Cluster } from "../src/core/cluster.ts";
import { applied, formatEdits, parseEdits, withEdit, type Edit } from "../src/core/edit.ts";
import { jobOf } from "../src/core/job.ts";

const cluster = new Cluster({
  dimensions: ["nvidia.com/gpu"],
  nodes: [{ name: "n0", allocatable: { dimensions: [0], amounts: [8000] }, usedByOthers: { dimensions: [0], amounts: [1000] } }, { name: "n1" }],
  queues: [{ name: "a", weight: 2, capability: { dimensions: [0], amounts: [4000] } }, { name: "b" }],
  jobs: [{ name: "old", namespace: "x", queue: "a" }],
});
const edits: Edit[] = [
  { kind: "weight", queue: "a", value: 5 }, { kind: "guarantee", queue: "b", dimension: "nvidia.com/gpu", value: 2000 },
  { kind: "capability", queue: "a", dimension: "nvidia.com/gpu", value: undefined }, { kind: "add", like: "n0", count: 2 }, { kind: "remove", node: "n1" },
];

test("edits are read back from an address", () => {
  assert.deepEqual(parseEdits(formatEdits(edits)), edits);
  assert.equal(formatEdits([]), "");
});

test("what is no edit is left out", () => {
  for (const text of ["", "{", "1", "[1]", '[["weight","a",-1]]', '[["weight","a"]]', '[["add","n0",1e9]]', '[["nothing"]]', '[["__proto__","a","b",1]]']) {
    assert.deepEqual(parseEdits(text), []);
  }
});

test("an edit takes the place of one of the same thing", () => {
  assert.deepEqual(withEdit(edits, { kind: "weight", queue: "a", value: 6 }).filter((e) => e.kind === "weight"), [{ kind: "weight", queue: "a", value: 6 }]);
});

test("edits make one change, and leave the cluster alone", () => {
  const { change, cluster: after, faults } = applied(cluster, edits);
  assert.deepEqual(faults, []);
  assert.deepEqual(change.queues, [{ name: "a", weight: 5 }, { name: "b", guarantee: { dimensions: [0], amounts: [2000] } }]);
  assert.deepEqual(change.nodes?.map((n) => [n.name, n.usedByOthers]), [["n0-new-1", undefined], ["n0-new-2", undefined]]);
  assert.deepEqual(change.removeNodes, ["n1"]);
  assert.deepEqual(after.nodes.map((n) => n?.name), ["n0", undefined, "n0-new-1", "n0-new-2"], "positions stay");
  assert.equal(cluster.queues[0]?.weight, 2);
});

test("a new node joins the sets of the one that it is like, unless these name their nodes, and has the pods that every node has and no reservations", () => {
  const placed = new Cluster({
    dimensions: ["cpu"], nodes: [{ name: "n0", otherPods: [1, 2, 1], leavingPods: [2], domains: [1], reservations: [{ startUnixNano: "5" }] }, { name: "n1", otherPods: [3, 1] }],
    nodeSets: [{ name: "zone", nodes: [0] }, { name: "volume", nodes: [0], fixed: true }, { name: "other", nodes: [1] }],
  });
  const { change } = applied(placed, [{ kind: "add", like: "n0", count: 2 }]);
  assert.deepEqual(change.nodes, [{ name: "n0-new-1", otherPods: [1], domains: [1] }, { name: "n0-new-2", otherPods: [1], domains: [1] }]);
  assert.deepEqual(change.nodeSets, [{ name: "zone", nodes: [0, 2, 3] }]);
});

test("a queue is opened, a node takes tasks again, and a job has ended", () => {
  const closed = new Cluster({
    dimensions: ["cpu"], nodes: [{ name: "n0", unschedulable: {} }, { name: "n1" }], queues: [{ name: "a", state: "QUEUE_STATE_CLOSED" }],
    jobs: [{ name: "old", namespace: "x", queue: "a" }, { uid: "u1", name: "new", namespace: "x", queue: "a" }],
  });
  const list: Edit[] = [{ kind: "open", queue: "a" }, { kind: "uncordon", node: "n0" }, { kind: "end", job: "x/old" }, { kind: "end", job: "x/new" }];
  assert.deepEqual(parseEdits(formatEdits(list)), list);
  const { change, cluster: after, faults } = applied(closed, list);
  assert.deepEqual(faults, []);
  assert.deepEqual(change, {
    dimensions: ["cpu", "memory"], queues: [{ name: "a", state: "QUEUE_STATE_OPEN" }], nodes: [{ name: "n0" }], removeJobs: ["x/old", "u1"],
  });
  assert.deepEqual(after.nodes, [{ name: "n0" }, { name: "n1" }]);
  assert.deepEqual(after.jobs, [undefined, undefined], "positions stay");
  assert.deepEqual(applied(closed, [{ kind: "end", job: "z" }]).faults, ["There is no job z."]);
  assert.deepEqual(applied(closed, [{ kind: "uncordon", node: "n0" }, { kind: "remove", node: "n0" }]).change.nodes, undefined, "a node that is removed takes nothing");
});

test("what does not exist is said", () => {
  const { faults } = applied(cluster, [{ kind: "weight", queue: "z", value: 1 }, { kind: "remove", node: "z" }, { kind: "job", text: "queue: a" }]);
  assert.deepEqual(faults, ["There is no queue z.", "There is no node z.", "name: the job needs a name"]);
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
