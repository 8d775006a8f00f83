"""What a client of Apportion wants beside its stubs: a session that is asked like a function and outlives its replica, a second attempt
where that helps, and errors and reasons in words."""

import queue
import time

import grpc
from apportion.v1 import cause_pb2, service_pb2
from google.rpc import error_details_pb2
from grpc_status import rpc_status

ATTEMPTS = 5


class StepError(Exception):
    """A step failed and changed nothing. The session goes on."""


class MovedError(Exception):
    """The session cannot go on at another replica, such as one with another policy or engine: begin anew, with a fresh snapshot."""


def again(ask, seconds):
    """The result of ask, called with the seconds left, and again while servers are busy or lost. No call changes the server's state."""
    end = time.monotonic() + seconds
    for attempt in range(ATTEMPTS):
        try:
            return ask(end - time.monotonic())
        except grpc.RpcError as error:
            pause = retry_delay(error)
            if pause is None or attempt == ATTEMPTS - 1 or time.monotonic() + pause >= end:
                raise
            time.sleep(pause)


class Session:
    """A conversation about one snapshot, which must be over within the seconds given: each question sees what the steps before it changed.
    Where its replica is lost or sends it away, it goes on at another one, after the steps that changed something were done again."""

    def __init__(self, stub, snapshot, policy, seconds):
        self._stub, self._end = stub, time.monotonic() + seconds
        self._open = service_pb2.RunSessionRequest(open={"input": {"snapshot": snapshot, "policy": policy}})
        self._basis, self._changes, self._responses = None, [], None
        again(lambda _: self._restore(), seconds)

    def __enter__(self):
        return self

    def __exit__(self, failed, *_):
        self._leave(at_once=failed is not None)

    @property
    def dimensions(self):
        return self._basis.dimensions

    def ask(self, *steps):
        """Returns one answer for each step."""
        answers = again(lambda _: self._answered(steps), self._end - time.monotonic())
        self._changes += [s for s, a in zip(steps, answers) if a.changed]
        for answer in answers:
            if answer.HasField("error"):
                raise StepError(answer.error.message)
        return answers

    def _answered(self, steps):
        if self._responses is None:
            self._restore()
        answers = self._exchange(service_pb2.RunSessionRequest(batch={"steps": steps})).answers.answers
        if self._going_away:
            self._leave()
        return answers

    def _restore(self):
        self._requests, self._going_away = queue.SimpleQueue(), False
        self._responses = self._stub.RunSession(iter(self._requests.get, None), timeout=self._end - time.monotonic())
        basis = self._exchange(self._open).opened.basis
        was = self._basis = self._basis or basis
        if (was.policy_digest, was.engine_version) != (basis.policy_digest, basis.engine_version):
            self._leave()
            raise MovedError(f"{basis.policy_digest} and engine {basis.engine_version} are there now")
        if self._changes:
            answers = self._exchange(service_pb2.RunSessionRequest(batch={"steps": self._changes})).answers.answers
            if not all(answer.changed for answer in answers):
                self._leave()
                raise MovedError("a step that succeeded before is refused")

    def _exchange(self, request):
        """Says something, and returns what answers it."""
        self._requests.put(request)
        try:
            for response in self._responses:
                if not response.HasField("going_away"):
                    return response
                self._going_away = True
            raise ConnectionError("the session was ended")
        except grpc.RpcError:
            self._leave(at_once=True)
            raise

    def _leave(self, at_once=False):
        if self._responses is None:
            return
        self._requests.put(None)
        if at_once:
            self._responses.cancel()
        else:
            for _ in self._responses:
                pass
        self._responses = None


def details(error):
    """The details of a failed call, by kind. None of them: the call did not come to the server, or not back."""
    found, status = {}, rpc_status.from_call(error)
    for detail in status.details if status else ():
        for kind in (error_details_pb2.ErrorInfo, error_details_pb2.BadRequest, error_details_pb2.RetryInfo):
            if detail.Is(kind.DESCRIPTOR):
                found[kind] = kind.FromString(detail.value)
    return found


def retry_delay(error):
    """Seconds after which to ask again. None: asking again does not help."""
    if told := details(error).get(error_details_pb2.RetryInfo):
        return told.retry_delay.ToTimedelta().total_seconds()
    return 0.1 if error.code() == grpc.StatusCode.UNAVAILABLE else None


def fault(error):
    """The reason of a failed call, and the fields at fault."""
    if not isinstance(error, grpc.RpcError):
        return str(error)
    known = details(error)
    info, bad = known.get(error_details_pb2.ErrorInfo), known.get(error_details_pb2.BadRequest)
    violations = [f"{violation.field}: {violation.description}" for violation in bad.field_violations] if bad else []
    return ", ".join([info.reason if info else error.code().name, *violations])


def grounds(verdict, dimensions):
    """The first cause of a verdict."""
    cause = verdict.causes[0]
    code = cause_pb2.CauseCode.DESCRIPTOR.values_by_number.get(cause.code)  # None: only a newer version knows it.
    text = f"{cause.plugin} {code.name if code else cause.code}"
    if cause.dimensions:
        text += f", {dimensions[cause.dimensions[0]]}: {cause.have:.0f} + {cause.need:.0f} > {cause.limit:.0f}"
    return text
