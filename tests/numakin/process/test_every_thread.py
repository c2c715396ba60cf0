"""No thread of either program is started past the supervision, and no signal waits for the main one."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
STARTERS = {"Thread", "Timer", "ThreadPoolExecutor", "ProcessPoolExecutor", "start_new_thread", "run_in_executor"}
SOURCES = sorted(path for half in ("enforcer", "extender") for path in (ROOT / half).rglob("*.py"))


def started(text: str) -> list[str]:
    """What starts a thread, called by any name that an import gives it."""
    tree = ast.parse(text)
    names = {
        name.asname or name.name: name.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module in ("threading", "concurrent.futures", "_thread")
        for name in node.names
    }
    result = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in STARTERS:
            result.append(f"line {node.lineno}: {ast.unparse(node)}")
        if isinstance(node, ast.Name) and names.get(node.id) in STARTERS:
            result.append(f"line {node.lineno}: {node.id}")
    return result


@pytest.mark.parametrize(
    "text",
    [
        "import threading\nthreading.Thread(target=f).start()",
        "from threading import Thread as Worker\nWorker(target=f)",
        "import threading as t\nclass A(t.Thread): ...",
        "from concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(4)",
        "loop.run_in_executor(None, f)",
    ],
)
def test_the_check_sees_a_thread(text: str) -> None:
    assert started(text)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_threads_are_made_by_the_supervision_alone(path: Path) -> None:
    assert not started(path.read_text()), "use numakin.process.threads.Threads: a thread of its own ends unseen"


def test_signals_are_read_from_a_socket_alone() -> None:
    handling = [str(path.relative_to(ROOT)) for path in SOURCES if "signal.signal(" in path.read_text()]
    assert not handling, "use numakin.process.signals.received: a handler waits until the main thread wakes"
