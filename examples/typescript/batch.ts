// A small batch platform that leaves every fair-share decision to Apportion: who enters, who runs, who gives way.

import { readFileSync } from "node:fs";
import { fromJsonString } from "@bufbuild/protobuf";
import { type Client, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import type { EnqueueVerdict } from "./gen/apportion/v1/answer_pb.ts";
import { Vote } from "./gen/apportion/v1/cause_pb.ts";
import { DecisionService, SimulateRequestSchema } from "./gen/apportion/v1/service_pb.ts";
import type { Input } from "./gen/apportion/v1/session_pb.ts";
import { type Job, JobPhase, type Snapshot, type Task, TaskStatus } from "./gen/apportion/v1/snapshot_pb.ts";
import { EnqueueMode } from "./gen/apportion/v1/step_pb.ts";
import { again, fault, grounds, Session } from "./session.ts";

/** Keeps its records in the contract's own messages, so that a snapshot is always at hand. */
class Platform {
  private readonly snapshot: Snapshot;

  constructor(private service: Client<typeof DecisionService>, private world: Input, private timeoutMs: number) {
    this.snapshot = world.source.value as Snapshot;
  }

  /** Takes a job unless it could not enter even an empty cluster. */
  async submit(job: Job) {
    const source = { case: "snapshot" as const, value: { ...this.snapshot, jobs: [job] } };
    try {
      const request = { input: { ...this.world, source } };
      const { basis, enqueue } = await again((timeoutMs) => this.service.checkEnqueue(request, { timeoutMs }), this.timeoutMs);
      const verdict = enqueue!.jobs[0].verdict!;
      if (verdict.vote !== Vote.PERMIT) console.log(`refuse ${job.uid}: ${grounds(verdict, basis!.dimensions)}`);
      else this.snapshot.jobs.push(job);
    } catch (error) {
      console.log(`refuse ${job.uid}: ${fault(error)}`);
    }
  }

  forget(uids: string[]) {
    this.snapshot.jobs = this.snapshot.jobs.filter((job) => !uids.includes(job.uid));
  }

  /** Admits jobs, then places tasks, queue by queue. What is not decided in time waits for the next cycle. */
  async cycle() {
    try {
      const session = await Session.open(this.service, this.world, this.timeoutMs);
      const [enqueue, queues, jobs] = await session.ask(
        { case: "enqueue", value: { mode: EnqueueMode.ACTION } },
        { case: "order", value: { subject: { case: "queues", value: {} } } },
        { case: "order", value: { subject: { case: "jobs", value: {} } } },
      );
      for (const decided of enqueue.jobs) this.admit(decided, session.dimensions);
      const admitted = jobs.items.map((i) => this.snapshot.jobs[i]).filter((job) => job.phase === JobPhase.INQUEUE);
      for (const queue of queues.items.map((i) => this.snapshot.queues[i].name)) {
        for (const job of admitted.filter((job) => job.queue === queue)) await this.place(session, job);
      }
      await session.close();
    } catch (error) {
      console.log(`cut short: ${fault(error)}`);
    }
  }

  private admit({ uid, job, verdict }: EnqueueVerdict, dimensions: string[]) {
    if (verdict!.vote !== Vote.PERMIT) {
      console.log(`hold ${uid}: ${grounds(verdict!, dimensions)}`);
    } else {
      console.log(`enqueue ${uid}`);
      this.snapshot.jobs[job].phase = JobPhase.INQUEUE;
    }
  }

  /** Runs a job's pending tasks where they fit, evicting others while it starves. A gang below its minimum is undone. */
  private async place(session: Session, job: Job) {
    const tasks = this.snapshot.jobs.flatMap((job) => job.groups.flatMap((group) => group.tasks));
    const [{ mark }] = await session.ask({ case: "mark", value: {} });
    const standing = { case: "jobs" as const, value: { jobs: { names: [job.uid] } } };
    const placed: [Task, number][] = [];
    const evicted: Task[] = [];
    for (const task of job.groups.flatMap((group) => group.tasks).filter((task) => task.node === undefined)) {
      const claimant = { names: [task.uid] };
      const where = { case: "nodes" as const, value: { tasks: claimant, top: 1 } };
      const [allocatable, preemptive, reclaim, jobs, nodes] = await session.ask(
        { case: "allocatable", value: { tasks: claimant } },
        { case: "preemptive", value: { tasks: claimant } },
        { case: "reclaim", value: { claimant } },
        standing,
        where,
      );
      const verdict = allocatable.tasks[0].verdict!;
      if (verdict.vote !== Vote.PERMIT) {
        console.log(`wait ${task.uid}: ${grounds(verdict, session.dimensions)}`);
        break;
      }
      let fit = nodes.tasks[0].nodes;
      const mayTake = jobs.jobs[0].starving!.vote === Vote.PERMIT && preemptive.tasks[0].verdict!.vote === Vote.PERMIT;
      for (const victim of mayTake ? reclaim.evictions : []) {
        if (fit.length > 0) break;
        const task = { case: "number" as const, value: victim };
        const gone = { task, status: TaskStatus.PENDING, place: { case: "noNode" as const, value: true } };
        [, { tasks: [{ nodes: fit }] }] = await session.ask({ case: "event", value: { event: { case: "change", value: { tasks: [gone] } } } }, where);
        evicted.push(tasks[victim]);
      }
      if (fit.length === 0) {
        console.log(`wait ${task.uid}: no node has room`);
        break;
      }
      await session.ask({
        case: "event",
        value: { event: { case: "place", value: { tasks: claimant, nodes: { indices: fit } } } },
      });
      placed.push([task, fit[0]]);
    }
    const [{ jobs }] = await session.ask(standing);
    if (jobs[0].ready!.vote !== Vote.PERMIT) {
      await session.ask({ case: "rollback", value: { mark } });
      return;
    }
    for (const task of evicted) {
      console.log(`evict ${task.uid}`);
      Object.assign(task, { node: undefined, status: TaskStatus.PENDING });
    }
    for (const [task, node] of placed) {
      console.log(`run ${task.uid} on ${this.snapshot.nodes[node].name}`);
      Object.assign(task, { node, status: TaskStatus.RUNNING });
    }
  }
}

const [address, file, seconds = "10"] = process.argv.slice(2);
const service = createClient(DecisionService, createGrpcTransport({ baseUrl: `http://${address}` }));
const scenario = fromJsonString(SimulateRequestSchema, readFileSync(file, "utf8"));
const platform = new Platform(service, scenario.input!, Number(seconds) * 1000);
for (const { step } of scenario.steps) {
  if (step.case !== "event") {
    await platform.cycle();
  } else if (step.value.event.case === "change") {
    for (const job of step.value.event.value.jobs) await platform.submit(job);
    platform.forget(step.value.event.value.removeJobs);
  }
}
