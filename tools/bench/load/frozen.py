"""Stops each of three servers by SIGSTOP in turn, while plain gRPC with the shipped service config asks them, and counts the calls that fail.

    tools/scripts/clients.sh generate python
    PYTHONPATH=examples/python/gen examples/python/.venv/bin/python tools/bench/load/frozen.py bin/apportion [none]

With "none" it sets no channel arguments beside the service config.
"""

import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time

import grpc
from apportion.v1 import service_pb2, service_pb2_grpc

CONFIG = pathlib.Path(__file__).parents[3] / "client" / "service-config.json"
ARGUMENTS = {
    "grpc.keepalive_time_ms": 1000,
    "grpc.keepalive_timeout_ms": 1000,
    "grpc.http2.ping_timeout_ms": 1000,
    "grpc.http2.max_pings_without_data": 0,
}
CALLERS, DEADLINE, RECOVERY, MEASURED, THAWED = 16, 3, 5, 2, 6
SNAPSHOT = {
    "dimensions": ["cpu"],
    "nodes": [{"name": "n", "allocatable": {"dimensions": [0], "amounts": [16000]}}],
    "queues": [{"name": "research", "weight": 1}, {"name": "serving", "weight": 3}],
}
POLICY = {"tiers": [{"plugins": [{"gang": {}}, {"proportion": {}}]}]}


class Asking:
    """Callers that ask again and again until they are told to end."""

    def __init__(self, stub):
        self._stub, self._lock, self._end = stub, threading.Lock(), threading.Event()
        self.answered, self.failed, self.slowest = 0, {}, 0.0
        self._callers = [threading.Thread(target=self._ask) for _ in range(CALLERS)]
        for caller in self._callers:
            caller.start()

    def _ask(self):
        request = service_pb2.EvaluateSharesRequest(input={"snapshot": SNAPSHOT, "policy": POLICY})
        while not self._end.is_set():
            began, code = time.monotonic(), None
            try:
                self._stub.EvaluateShares(request, timeout=DEADLINE)
            except grpc.RpcError as error:
                code = error.code().name
            with self._lock:
                self.slowest = max(self.slowest, time.monotonic() - began)
                if code is None:
                    self.answered += 1
                else:
                    self.failed[code] = self.failed.get(code, 0) + 1

    def rate(self):
        """Returns the answers per second of the next seconds."""
        before = self.answered
        time.sleep(MEASURED)
        return (self.answered - before) / MEASURED

    def end(self):
        self._end.set()
        for caller in self._callers:
            caller.join()


def free():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def main(binary, arguments):
    ports = [free() for _ in range(3)]
    servers = [
        subprocess.Popen([binary, "serve", "--listen", f"127.0.0.1:{port}", "--log-level", "error", "--drain-delay", "0s"])
        for port in ports
    ]
    try:
        target = "ipv4:" + ",".join(f"127.0.0.1:{port}" for port in ports)
        options = [("grpc.service_config", CONFIG.read_text()), *arguments.items()]
        with grpc.insecure_channel(target, options=options) as channel:
            grpc.channel_ready_future(channel).result(timeout=30)
            asking, parts = Asking(service_pb2_grpc.DecisionServiceStub(channel)), []
            time.sleep(THAWED)
            for server in servers:
                before = asking.rate()
                server.send_signal(signal.SIGSTOP)
                time.sleep(RECOVERY)
                parts.append(asking.rate() / before)
                server.send_signal(signal.SIGCONT)
                time.sleep(THAWED)
            asking.end()
    finally:
        for server in servers:
            server.kill()
    failed = sum(asking.failed.values())
    print(f"{failed} of {asking.answered + failed} calls failed {asking.failed or ''}; slowest {asking.slowest:.1f} s; "
          f"throughput after {RECOVERY} s: " + ", ".join(f"{100 * part:.0f} %" for part in parts) + " of that before")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], {} if sys.argv[2:] == ["none"] else ARGUMENTS))
