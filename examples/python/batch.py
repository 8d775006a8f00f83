"""A small batch platform that leaves every fair-share decision to Apportion: who enters, who runs, who gives way."""

import sys

import grpc
from apportion.v1 import cause_pb2, service_pb2, service_pb2_grpc, snapshot_pb2, step_pb2
from google.protobuf import json_format

from session import MovedError, Session, again, fault, grounds

Step = step_pb2.Step


class Platform:
    """Keeps its records in the contract's own messages, so that a snapshot is always at hand."""

    def __init__(self, stub, world, seconds):
        self.stub, self.snapshot, self.policy, self.seconds = stub, world.snapshot, world.policy, seconds

    def submit(self, job):
        """Takes a job unless it could not enter even an empty cluster."""
        alone = snapshot_pb2.Snapshot(dimensions=self.snapshot.dimensions, nodes=self.snapshot.nodes, queues=self.snapshot.queues)
        alone.jobs.append(job)
        try:
            request = service_pb2.CheckEnqueueRequest(input={"snapshot": alone, "policy": self.policy})
            response = again(lambda left: self.stub.CheckEnqueue(request, timeout=left), self.seconds)
        except grpc.RpcError as error:
            return print(f"refuse {job.uid}: {fault(error)}")
        verdict = response.enqueue.jobs[0].verdict
        if verdict.vote != cause_pb2.VOTE_PERMIT:
            return print(f"refuse {job.uid}: {grounds(verdict, response.basis.dimensions)}")
        self.snapshot.jobs.append(job)

    def cycle(self):
        """Admits jobs, then places tasks, queue by queue. What is not decided in time waits for the next cycle."""
        try:
            with Session(self.stub, self.snapshot, self.policy, self.seconds) as session:
                enqueue, queues, jobs = session.ask(
                    Step(enqueue={"mode": "ENQUEUE_MODE_ACTION"}), Step(order={"queues": {}}), Step(order={"jobs": {}})
                )
                for decided in enqueue.enqueue.jobs:
                    self.admit(decided, session.dimensions)
                for name in [self.snapshot.queues[i].name for i in queues.order.items]:
                    for job in [self.snapshot.jobs[i] for i in jobs.order.items]:
                        if job.queue == name and job.phase == snapshot_pb2.JOB_PHASE_INQUEUE:
                            self.place(session, job)
        except (grpc.RpcError, MovedError) as error:
            print(f"cut short: {fault(error)}")

    def admit(self, decided, dimensions):
        if decided.verdict.vote != cause_pb2.VOTE_PERMIT:
            print(f"hold {decided.uid}: {grounds(decided.verdict, dimensions)}")
        else:
            print(f"enqueue {decided.uid}")
            self.snapshot.jobs[decided.job].phase = snapshot_pb2.JOB_PHASE_INQUEUE

    def place(self, session, job):
        """Runs a job's pending tasks where they fit, evicting others while it starves. A gang below its minimum is undone."""
        tasks = [task for job in self.snapshot.jobs for group in job.groups for task in group.tasks]
        (mark,) = session.ask(Step(mark={}))
        this, placed, evicted = {"jobs": {"names": [job.uid]}}, [], []
        for task in [task for group in job.groups for task in group.tasks if not task.HasField("node")]:
            claimant = {"names": [task.uid]}
            where = Step(nodes={"tasks": claimant, "top": 1})
            allowed, may_take, reclaim, standing, nodes = session.ask(
                Step(allocatable={"tasks": claimant}),
                Step(preemptive={"tasks": claimant}),
                Step(reclaim={"claimant": claimant}),
                Step(jobs=this),
                where,
            )
            verdict, fit = allowed.allocatable.tasks[0].verdict, nodes.nodes.tasks[0].nodes
            if verdict.vote != cause_pb2.VOTE_PERMIT:
                print(f"wait {task.uid}: {grounds(verdict, session.dimensions)}")
                break
            starving = standing.jobs.jobs[0].starving.vote == cause_pb2.VOTE_PERMIT
            if starving and may_take.preemptive.tasks[0].verdict.vote == cause_pb2.VOTE_PERMIT:
                for victim in reclaim.reclaim.evictions:
                    if not fit:
                        gone = {"tasks": [{"number": victim, "status": snapshot_pb2.TASK_STATUS_PENDING, "no_node": True}]}
                        fit = session.ask(Step(event={"change": gone}), where)[1].nodes.tasks[0].nodes
                        evicted.append(tasks[victim])
            if not fit:
                print(f"wait {task.uid}: no node has room")
                break
            session.ask(Step(event={"place": {"tasks": claimant, "nodes": {"indices": fit}}}))
            placed.append((task, fit[0]))
        (standing,) = session.ask(Step(jobs=this))
        if standing.jobs.jobs[0].ready.vote != cause_pb2.VOTE_PERMIT:
            session.ask(Step(rollback={"mark": mark.mark.mark}))
            return
        for task in evicted:
            print(f"evict {task.uid}")
            task.ClearField("node")
            task.status = snapshot_pb2.TASK_STATUS_PENDING
        for task, node in placed:
            print(f"run {task.uid} on {self.snapshot.nodes[node].name}")
            task.node, task.status = node, snapshot_pb2.TASK_STATUS_RUNNING


def main(address, file, seconds="10"):
    with open(file) as source, grpc.insecure_channel(address) as channel:
        scenario = json_format.Parse(source.read(), service_pb2.SimulateRequest())
        platform = Platform(service_pb2_grpc.DecisionServiceStub(channel), scenario.input, float(seconds))
        for step in scenario.steps:
            if not step.HasField("event"):
                platform.cycle()
            for job in step.event.change.jobs:
                platform.submit(job)
            for job in [job for job in platform.snapshot.jobs if job.uid in step.event.change.remove_jobs]:
                platform.snapshot.jobs.remove(job)


if __name__ == "__main__":
    main(*sys.argv[1:])
