"""An extender's end of the report stream, over real gRPC."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

from lab.standins.patience import PATIENCE_S
from numakin.wire import report_pb2 as pb
from numakin.wire import report_pb2_grpc
from numakin.wire.report_format import REPORT_FORMAT


class Extender(report_pb2_grpc.ReportsServicer):
    """The least that speaks the extender's side; remembers what it heard."""

    def __init__(self, *, resume: bool = False, **welcome: Any) -> None:
        self.heard: list[pb.FromEnforcer] = []
        self.news = threading.Condition()
        self.resume = resume
        self.welcome = {"format": REPORT_FORMAT, "version": "1"} | welcome
        self.to_send: list[pb.ToEnforcer] = []
        self.cut = threading.Event()

    def Stream(self, request_iterator, context) -> Iterator[pb.ToEnforcer]:  # noqa: N802 - the RPC's name
        for message in request_iterator:
            with self.news:
                self.heard.append(message)
                self.news.notify_all()
            if message.HasField("hello"):
                resume = self.resume and message.hello.acked_generation > 0
                yield pb.ToEnforcer(welcome=pb.Welcome(resume=resume, **self.welcome))
                yield from self.to_send
            if message.HasField("report"):
                yield pb.ToEnforcer(ack=pb.Ack(generation=message.report.generation))
            if self.cut.is_set():
                self.cut.clear()
                return

    def wait_for(self, enough: Callable[[list[str]], bool]) -> list[str]:
        with self.news:
            assert self.news.wait_for(lambda: enough(self.kinds()), PATIENCE_S), self.kinds()
            return self.kinds()

    def kinds(self) -> list[str]:
        return [entry.WhichOneof("message") or "" for entry in self.heard]
