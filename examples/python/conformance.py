"""Plays the conformance vectors: each message is the same in both forms, and each call is answered as written."""

import pathlib
import sys

import grpc
from apportion.v1 import service_pb2
from apportion.v1alpha1 import service_pb2 as alpha_pb2
from google.protobuf import json_format, message_factory
from google.rpc import error_details_pb2, status_pb2  # noqa: F401 (the details of errors in JSON)
from grpc_status import rpc_status

SERVICES = [service for file in (service_pb2, alpha_pb2) for service in file.DESCRIPTOR.services_by_name.values()]
METHODS = {method.name: method for service in SERVICES for method in service.methods}


def read(path, kinds):
    """Returns a vector's messages in order, with their roles."""
    messages = []
    for file in sorted(path.glob("*.binpb"), key=lambda file: int(file.name.split(".")[0])):
        role = file.name.split(".")[1]
        message = kinds[role].FromString(file.read_bytes())
        assert message == json_format.Parse(file.with_suffix(".json").read_text(), kinds[role]()), f"{file}: the forms differ"
        messages.append((role, message))
    return messages


def replay(channel, path):
    method = METHODS[path.parent.name]
    request, response = (message_factory.GetMessageClass(kind) for kind in (method.input_type, method.output_type))
    exchange = read(path, {"request": request, "response": response, "status": status_pb2.Status})
    # On the wire every call is a stream in both directions.
    call = channel.stream_stream(f"/{method.containing_service.full_name}/{method.name}", request.SerializeToString, response.FromString)
    answers = call((message for role, message in exchange if role == "request"), timeout=10)
    for role, expected in exchange:
        if role == "response":
            assert next(answers) == expected
        elif role == "status":
            try:
                raise AssertionError(f"answered with {next(answers)}")
            except grpc.RpcError as error:
                assert rpc_status.from_call(error) == expected, error
                return
    assert next(answers, None) is None, "answered once more"


def main(address, folder):
    failed, vectors = 0, sorted(path for path in pathlib.Path(folder).glob("*/*") if path.is_dir())
    with grpc.insecure_channel(address) as channel:
        for path in vectors:
            try:
                replay(channel, path)
            except (AssertionError, grpc.RpcError, StopIteration) as fault:
                failed += 1
                print(f"{path}: {fault}")
    print(f"{len(vectors) - failed} passed, {failed} failed")
    return failed > 0 or not vectors


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
