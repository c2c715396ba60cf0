"""python -m extender.check: whether the installation works; the exit code is 0 if so, 1 if not, 3 without an answer."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from extender.check.replicas import Access, NoAnswer, addresses, answers, asked
from extender.check.verdict import Verdict, verdicts

BAD, UNANSWERED = 1, 3
AGAIN_S = 2.0


def main(arguments: Sequence[str] | None = None) -> int:
    """What may still become good is waited for."""
    given = _parser().parse_args(arguments)
    access = Access(given.service, Path(given.ca), Path(given.token))
    until = time.monotonic() + given.patience
    while True:
        lines, code = _examined(access, given.replicas)
        passing = code == UNANSWERED or any(each.passing and not each.good for each in lines)
        if not passing or time.monotonic() > until:
            break
        time.sleep(AGAIN_S)
    for each in lines:
        print(f"{'ok' if each.good else 'FAILED'}: {each.text}", flush=True)
    return code


def _examined(access: Access, replicas: Sequence[str]) -> tuple[list[Verdict], int]:
    try:
        answers(access)
        found = verdicts([asked(access, each) for each in addresses(replicas)])
    except NoAnswer as bad:
        return [Verdict(good=False, text=str(bad))], UNANSWERED
    return found, 0 if all(each.good for each in found) else BAD


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m extender.check", description=sys.modules[__name__].__doc__)
    where: dict[str, Any] = {"metavar": "HOST:PORT", "type": _address, "required": True}
    parser.add_argument("--service", **where, help="where people read")
    parser.add_argument(
        "--replicas", **where, action="append", help="a name with the address of every replica; may be repeated"
    )
    parser.add_argument("--ca", metavar="FILE", required=True, help="the CA's certificates (PEM)")
    parser.add_argument("--token", metavar="FILE", required=True, help="a token of who may read")
    parser.add_argument("--patience", metavar="SECONDS", type=float, default=120.0, help="(default: %(default)g)")
    return parser


def _address(text: str) -> str:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT")
    return text


if __name__ == "__main__":
    sys.exit(main())
