"""`numakin-enforcer`: the command line."""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from signal import SIGINT

from enforcer.settings import options
from enforcer.settings.config import Config, ConfigError
from numakin.compare import options as comparing
from numakin.process import lock, log, supervisor
from numakin.process.files import worded
from numakin.process.forked import Program
from numakin.process.standard_output import cut_off, takes_any_text
from numakin.process.supervisor import Child
from numakin.process.version import VERSION

LAUNCHED = "NRI_PLUGIN_SOCKET"
"""The environment variable by which a runtime passes its socket to a plugin that it launched."""

INTERRUPTED = 128 + SIGINT

FIRST = {"nri": "hook", "bypass": "bypass"}
"""The process that follows the runtime, by mode."""

EPILOG = """examples:
  numakin-enforcer run --node-name node-1 --extender numakin-extender-replicas.numakin.svc:8081
  numakin-enforcer run --mode bypass            where the container runtime has no NRI
  numakin-enforcer run --sysfs /tmp/epyc        try a recorded machine
  numakin-enforcer status                       is it well on this node: sums, groups, and what is not
  numakin-enforcer status --all                 every container: what is pinned where, and why
  numakin-enforcer doctor                       what will work on this node, and what will not
  numakin-enforcer top                          who talks to whom on this node, live
  numakin-enforcer release                      un-pin everything, before an uninstall
  numakin-enforcer resume                       pin again after a release
  numakin-enforcer compare                      what sharing a NUMA node gains on this machine

The container runtime can launch the program too: install it as /opt/nri/plugins/99-numakin and put options
into /etc/nri/conf.d/99-numakin.conf (TOML, the flags' names without the leading dashes).
Every option of `run` is read from NUMAKIN_* in the environment as well; flags win, then the environment, then the file.
"""


def parser() -> argparse.ArgumentParser:
    program = options.Parser(
        prog="numakin-enforcer",
        description="Pins the containers of affinity groups to their group's NUMA node (an NRI plugin, one per node).",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    program.add_argument("--version", action="version", version=f"numakin-enforcer {VERSION}")
    commands = program.add_subparsers(dest="command", metavar="COMMAND")
    run = commands.add_parser("run", help="run the enforcer (the default)")
    options.add_to(run)
    status = commands.add_parser("status", help="is it well on this node; with --all what is pinned where, and why")
    status.add_argument("--run-dir", default=Config().run_dir, help="the enforcer's run folder")
    status.add_argument("--json", action="store_true", help="for machines")
    status.add_argument("--all", action="store_true", help="every container, not only those that are not well")
    status.add_argument("--procfs", default=Config().procfs, help="where it is read which cgroups are mounted")
    release = commands.add_parser(
        "release", help="give every pinned container its full cpuset back, before an uninstall"
    )
    release.add_argument("--run-dir", default=Config().run_dir, help="the enforcer's run folder")
    resume = commands.add_parser("resume", help="pin again after a release")
    resume.add_argument("--run-dir", default=Config().run_dir, help="the enforcer's run folder")
    port = options.Parser(add_help=False)
    port.add_argument("--metrics", default=Config().metrics_listen, metavar="HOST:PORT", help="the enforcer's port")
    shown = commands.add_parser("top", help="who talks to whom on this node, live", parents=[port])
    shown.add_argument("--json", action="store_true", help="once, for machines")
    record = commands.add_parser("record", help="write what is seen into a file, for `run --replay`", parents=[port])
    record.add_argument("file", type=Path)
    record.add_argument("--seconds", type=_seconds, default=0.0, help="stop after so long (default: at Ctrl-C)")
    compared = commands.add_parser(
        "compare",
        help="measure what two ends gain on this machine by sharing a NUMA node",
        epilog=comparing.EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    comparing.add_options(compared)
    doctor = commands.add_parser("doctor", help="check this node: what will work here and what will not")
    doctor.add_argument("--json", action="store_true", help="for machines")
    options.add_to(doctor)
    return program


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed; allowed: a number of seconds, 0 for no end")
    return seconds


def main(arguments: Sequence[str] | None = None) -> int:
    takes_any_text()
    command_line = list(sys.argv[1:] if arguments is None else arguments)
    if not command_line or (command_line[0].startswith("-") and command_line[0] not in ("-h", "--help", "--version")):
        command_line.insert(0, "run")
    if command_line[0] == "run":  # all commands' options take 5 ms, and containers wait for this one
        return _run(command_line[1:])
    given = parser().parse_args(command_line)
    try:
        code = _COMMANDS[given.command](given)
        sys.stdout.flush()
    except BrokenPipeError:
        return cut_off()
    except KeyboardInterrupt:
        return INTERRUPTED
    return code


def _doctor(given: argparse.Namespace) -> int:
    from enforcer.cli.doctor import doctor  # noqa: PLC0415

    try:
        return doctor(options.configured(given), as_json=given.json)
    except ConfigError as error:
        print(f"numakin-enforcer: {error}", file=sys.stderr)
        return 2


def _status(given: argparse.Namespace) -> int:
    from enforcer.cli import status  # noqa: PLC0415

    return status.status(Path(given.run_dir), as_json=given.json, every=given.all, procfs=Path(given.procfs))


def _release(given: argparse.Namespace) -> int:
    from enforcer.cli import status  # noqa: PLC0415

    return status.release(Path(given.run_dir))


def _resume(given: argparse.Namespace) -> int:
    from enforcer.cli import status  # noqa: PLC0415

    return status.resume(Path(given.run_dir))


def _top(given: argparse.Namespace) -> int:
    from enforcer.cli import top  # noqa: PLC0415

    return top.top(given.metrics, as_json=given.json)


def _record(given: argparse.Namespace) -> int:
    from enforcer.cli import top  # noqa: PLC0415

    return top.record(given.metrics, given.file, given.seconds)


def _compare(given: argparse.Namespace) -> int:
    from enforcer.cli.compare import compare  # noqa: PLC0415

    return compare(given, "numakin-enforcer")


# Each imports what it needs itself: the supervisor, which runs on every node, carries none of it.
_COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "status": _status,
    "release": _release,
    "resume": _resume,
    "top": _top,
    "record": _record,
    "doctor": _doctor,
    "compare": _compare,
}


def _run(arguments: Sequence[str]) -> int:
    given = options.run_options().parse_args(arguments)
    try:
        config = options.configured(given)
        if config.replay:
            _check_recording(config.replay)
    except ConfigError as error:
        return _left(error, 2)
    log.set_up(config.log_level, config.log_format)
    run_dir = Path(config.run_dir)
    try:
        held = lock.acquire(run_dir)
    except lock.AnotherRunsError as error:
        return _left(error, 1)
    except OSError as error:
        why = f"run-dir {run_dir} can't be used: {worded(error)}; name a folder that this user may write by --run-dir"
        return _left(ConfigError(why), 1)
    import enforcer.hook.process  # noqa: F401, PLC0415 - most of it all processes share: in memory once

    launched = os.environ.get(LAUNCHED)
    status = supervisor.supervise(
        _child(FIRST[config.mode], arguments, (held, int(launched)) if launched else (held,)),
        _child("observer", [str(run_dir)]),
        run_dir,
        launched=launched is not None,
    )
    return 1 if status == supervisor.LEAVE else status


def _child(name: str, arguments: Sequence[str], descriptors: tuple[int, ...] = ()) -> Child:
    """One whose modules the supervisor does not import."""

    def main(arguments: Sequence[str]) -> int:
        status: int = import_module(f"enforcer.{name}.process").main(arguments)
        return status

    return Child(name, Program(f"numakin-{name}", arguments, main), descriptors)


def _check_recording(replay: str) -> None:
    if not Path(replay).is_file():
        raise ConfigError(f"replay: {replay} is not a file: name one that `numakin-enforcer record` wrote")


def _left(error: Exception, status: int) -> int:
    """Says why, and leaves; but a runtime that launched us may not start without an answer."""
    print(f"numakin-enforcer: {error}", file=sys.stderr)
    if LAUNCHED not in os.environ:
        return status
    from enforcer.hook import process  # noqa: PLC0415 - the supervisor carries the hook's modules only then

    return process.refuse(str(error))
