"""Asks why jobs wait and prints the sentences of the answer: all that wait, or those named by uid or namespace/name.

usage: explain.py ADDRESS SNAPSHOT POLICY [JOB...], with a snapshot and a policy as `apportion convert` writes them.
"""

import pathlib
import sys

import grpc
from apportion.v1 import policy_pb2, service_pb2, service_pb2_grpc, snapshot_pb2
from google.protobuf import json_format


def read(file, message):
    return json_format.Parse(pathlib.Path(file).read_text(), message)


def main(address, snapshot, policy, *jobs):
    request = service_pb2.ExplainRequest(
        input={"snapshot": read(snapshot, snapshot_pb2.Snapshot()), "policy": read(policy, policy_pb2.Policy())},
        explain={"jobs": {"names": jobs}} if jobs else {},
    )
    with grpc.insecure_channel(address) as channel:
        answer = service_pb2_grpc.DecisionServiceStub(channel).Explain(request, timeout=10).explain
    for explanation in answer.jobs:
        for finding in explanation.findings:
            print(f"{explanation.name}: {finding.text}")
    print(answer.text)


if __name__ == "__main__":
    main(*sys.argv[1:])
