"""What a client of Apportion wants beside its stubs: a session that is asked like a function, and errors and reasons in words."""

import contextlib
import queue

from apportion.v1 import reason_pb2, service_pb2
from google.rpc import error_details_pb2
from grpc_status import rpc_status


class StepError(Exception):
    """A step failed and changed nothing. The session goes on."""


@contextlib.contextmanager
def open_session(stub, snapshot, policy, seconds):
    """A conversation about one snapshot, which ends with the block. It must be over within the seconds given."""
    requests = queue.SimpleQueue()
    responses = stub.RunSession(iter(requests.get, None), timeout=seconds)
    requests.put(service_pb2.RunSessionRequest(open={"snapshot": snapshot, "policy": policy}))
    try:
        yield Session(requests, responses, next(responses).opened.basis.dimensions)
    finally:
        requests.put(None)
    for _ in responses:
        pass


class Session:
    """Each question sees what the steps before it changed."""

    def __init__(self, requests, responses, dimensions):
        self._requests, self._responses, self.dimensions = requests, responses, dimensions

    def ask(self, *steps):
        """Returns one answer for each step."""
        self._requests.put(service_pb2.RunSessionRequest(batch={"steps": steps}))
        answers = next(response.answers.answers for response in self._responses if response.HasField("answers"))
        for answer in answers:
            if answer.HasField("error"):
                raise StepError(answer.error.message)
        return answers


def fault(error):
    """What the details of a failed call say."""
    status = rpc_status.from_call(error)
    if status is None:  # The call did not come to the server, or not back.
        return error.code().name
    return in_words(status)


def in_words(status):
    """The reason of an error, and the fields at fault."""
    words = []
    for detail in status.details:
        info, bad = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
        if detail.Unpack(info):
            words.insert(0, info.reason)
        elif detail.Unpack(bad):
            words += [f"{violation.field}: {violation.description}" for violation in bad.field_violations]
    return ", ".join(words)


def grounds(verdict, dimensions):
    """The first reason of a verdict."""
    reason = verdict.reasons[0]
    code = reason_pb2.ReasonCode.DESCRIPTOR.values_by_number.get(reason.code)  # None: only a newer version knows it.
    text = f"{reason.plugin} {code.name if code else reason.code}"
    if reason.HasField("dimension"):
        text += f", {dimensions[reason.dimension]}: {reason.have:.0f} + {reason.need:.0f} > {reason.limit:.0f}"
    return text
