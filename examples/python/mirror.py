"""Follows a cluster and sends what changed: the rule of docs/contract.md, Change, in code. Run it against a server to see what it sends."""

import secrets
import sys

import grpc
from apportion.v1 import change_pb2, service_pb2, service_pb2_grpc, session_pb2, snapshot_pb2
from google.rpc import error_details_pb2

from session import again, details

CHUNK = (1 << 20) - 1024
# How often a server may say that it does not hold a snapshot before the question carries it.
TRIES = 3
# The number of unused positions that are kept beside one for each task.
SPARE = 1024


def difference(was, now):
    """Returns the Change that makes one snapshot of another, None if it must be sent whole: nodes are referred to by position, which a
    removed node would shift."""
    here = [node.name for node in was.nodes]
    kept = [node.name for node in now.nodes][: len(here)] == here
    if (was.dimensions, was.cluster) != (now.dimensions, now.cluster) or not kept:
        return None
    change = change_pb2.Change(as_of=now.as_of)
    names = {"nodes": _name, "queues": _name, "jobs": job_key, "node_sets": _name}
    for field, key in names.items():
        old = {key(item): item for item in getattr(was, field)}
        new = {key(item): item for item in getattr(now, field)}
        getattr(change, field).extend(item for name, item in new.items() if old.get(name) != item)
        if field != "nodes":
            getattr(change, f"remove_{field}").extend(name for name in old if name not in new)
    if now.HasField("total"):
        change.total.CopyFrom(now.total)
    change.clear_total = was.HasField("total") and not now.HasField("total")
    return change


def _name(item):
    return item.name


def job_key(job):
    """How the contract refers to a job."""
    return job.uid or (f"{job.namespace}/{job.name}" if job.namespace else job.name)


def _tasks(jobs):
    return sum(len(group.tasks) for job in jobs for group in job.groups)


class Mirror:
    """Asks about whole snapshots, one after the other, and sends what changed since the last one that a server holds. Not for several threads
    at a time."""

    def __init__(self, snapshots, policy, seconds):
        self._snapshots, self._policy, self._seconds = snapshots, policy, seconds
        # A balancer that hashes this header keeps the mirror with the replica that holds its snapshots.
        self.metadata = (("apportion-mirror", secrets.token_hex(16)),)
        self._held = self._digest = None
        self._positions = self._whole_size = self._chain = 0
        self.sent = []

    def ask(self, snapshot, call):
        """Returns what call(input, timeout, metadata) returns for the snapshot."""
        if snapshot != self._held and not self._send_change(snapshot):
            self._send_whole(snapshot)
        for _ in range(TRIES):
            try:
                return self._call(call, {"snapshot_digest": self._digest, "policy": self._policy})
            except grpc.RpcError as error:
                if not _not_held(error):
                    raise
                self._send_whole(snapshot)
        return self._call(call, {"snapshot": snapshot, "policy": self._policy})

    def _call(self, call, source):
        return again(lambda left: call(source, left, self.metadata), self._seconds)

    def _send_change(self, snapshot):
        """Reports whether the server holds the snapshot as a change of the last one."""
        change = difference(self._held, snapshot) if self._held else None
        if change is None:
            return False
        data = change.SerializeToString()
        positions = self._positions + _tasks(change.jobs)
        if 2 * len(data) > self._whole_size or self._chain + len(data) > self._whole_size:
            return False
        if positions > 2 * _tasks(snapshot.jobs) + SPARE:
            return False
        try:
            self._upload(session_pb2.UploadHeader(base_digest=self._digest, size=len(data)), data, "change")
        except grpc.RpcError as error:
            if _not_held(error):
                return False
            raise
        self._positions, self._chain = positions, self._chain + len(data)
        self._keep(snapshot)
        return True

    def _send_whole(self, snapshot):
        data = snapshot.SerializeToString()
        self._upload(session_pb2.UploadHeader(size=len(data)), data, "whole")
        self._positions, self._chain, self._whole_size = _tasks(snapshot.jobs), 0, len(data)
        self._keep(snapshot)

    def _keep(self, snapshot):
        self._held = snapshot_pb2.Snapshot()
        self._held.CopyFrom(snapshot)

    def _upload(self, header, data, kind):
        def messages():
            yield service_pb2.UploadSnapshotRequest(header=header)
            for start in range(0, max(len(data), 1), CHUNK):
                last = start + CHUNK >= len(data)
                yield service_pb2.UploadSnapshotRequest(chunk={"data": data[start : start + CHUNK], "last": last})

        def upload(left):
            return self._snapshots.UploadSnapshot(messages(), timeout=left, metadata=self.metadata)

        self._digest = again(upload, self._seconds).digest
        self.sent.append((kind, len(data)))


def _not_held(error):
    info = details(error).get(error_details_pb2.ErrorInfo)
    return info is not None and info.reason == "SNAPSHOT_NOT_FOUND"


def demo(address):
    """Three states of a cluster of 200 jobs: the second has another weight, in the third a job has ended."""
    snapshot = snapshot_pb2.Snapshot(
        dimensions=["cpu"],
        nodes=[{"name": f"n{i}", "allocatable": {"dimensions": [0], "amounts": [16000]}} for i in range(20)],
        queues=[{"name": "research", "weight": 1}, {"name": "serving", "weight": 1}],
        jobs=[
            {
                "uid": f"job-{i}",
                "queue": ("research", "serving")[i % 2],
                "groups": [{"request": {"dimensions": [0], "amounts": [2000]}, "tasks": [{"uid": f"task-{i}"}]}],
            }
            for i in range(200)
        ],
    )
    policy = {"tiers": [{"plugins": [{"proportion": {}}]}]}
    with grpc.insecure_channel(address) as channel:
        stub = service_pb2_grpc.DecisionServiceStub(channel)
        mirror = Mirror(service_pb2_grpc.SnapshotServiceStub(channel), policy, seconds=10)

        def shares(source, left, metadata):
            return stub.EvaluateShares(service_pb2.EvaluateSharesRequest(input=source), timeout=left, metadata=metadata)

        for step in range(3):
            if step == 1:
                snapshot.queues[1].weight = 3
            if step == 2:
                del snapshot.jobs[0]
            queues = mirror.ask(snapshot, shares).shares.plugins[0].queues
            kind, size = mirror.sent[-1]
            whole = stub.EvaluateShares(service_pb2.EvaluateSharesRequest(input={"snapshot": snapshot, "policy": policy}), timeout=10)
            assert list(queues) == [q for q in whole.shares.plugins[0].queues], "the answer about the whole snapshot differs"
            print(", ".join(f"{q.name} {q.deserved.amounts[0]:.0f}" for q in queues), f"({kind}, {size} bytes)")


if __name__ == "__main__":
    demo(sys.argv[1])
