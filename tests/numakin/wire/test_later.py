"""What a library imports without need is loaded when somebody asks for it."""

import subprocess
import sys

import pytest


def run(program):
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.parametrize(
    "module",
    [
        "google.protobuf.internal.python_message",
        "grpc.aio",
        "asyncio",
        "calendar",
        "hashlib",
        "html",
        "mimetypes",
        "prometheus_client.decorator",
        "ssl",
    ],
)
def test_the_enforcer_never_loads_it(module):
    program = f"import sys, enforcer.observer.process; print(type(sys.modules['{module}']).__name__)"
    assert run(program) == ["Later"]


INSPECT = ["Later"] if sys.version_info < (3, 12) else ["Later", "module"]
"""What may stand for it: the dataclasses of later Pythons ask it for the annotations of each class."""


@pytest.mark.parametrize("process", ["hook", "bypass", "observer"])
def test_no_process_of_an_enforcer_loads_openssl_or_inspect(process):
    program = (
        f"import sys, enforcer.cli.main, enforcer.{process}.process;"
        "print(type(sys.modules['inspect']).__name__, *({'_ssl', '_hashlib'} & sys.modules.keys()))"
    )
    inspect, *openssl = run(program)
    assert (inspect in INSPECT, openssl) == (True, [])


def test_what_was_only_mentioned_is_loaded_when_it_is_called():
    program = """
import sys, enforcer.observer.process
from prometheus_client import CollectorRegistry, Counter
from numakin.wire.certificates import ssl

counter = Counter("failures", "Counted.", registry=CollectorRegistry())

@counter.count_exceptions()
def doubled(number):
    return 2 * number

print(doubled(2), ssl.create_default_context().__module__, type(sys.modules["inspect"]).__name__)
"""
    assert run(program) == ["4", "ssl", "module"]


def test_it_is_there_for_who_asks():
    program = (
        "import sys, numakin.wire, grpc; before = type(grpc.aio).__name__; server = grpc.aio.Server.__module__;"
        "import grpc.aio as now; print(before, server, type(now).__name__, now is sys.modules['grpc.aio'] is grpc.aio)"
    )
    assert run(program) == ["Later", "grpc.aio._base_server", "module", "True"]


def test_protobuf_in_python_works_where_that_in_c_is_not_there(monkeypatch):
    monkeypatch.setenv("PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION", "python")
    program = (
        "from numakin.wire import report_pb2 as pb; from google.protobuf.internal import api_implementation as by;"
        "print(by.Type(), pb.Report.FromString(pb.Report(generation=7).SerializeToString()).generation)"
    )
    assert run(program) == ["python", "7"]
