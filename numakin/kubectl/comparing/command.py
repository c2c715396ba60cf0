"""`compare deployment/NAME`: what it checks before anything is changed, and what it prints."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import asdict
from functools import partial
from statistics import fmean
from typing import Any

from numakin.compare import presentation
from numakin.compare.options import parse_arguments, parse_expression
from numakin.compare.rounds import Round, result
from numakin.compare.statistics import FEWEST_PAIRS
from numakin.compare.workloads import PARSERS, BadFigures, figures_by
from numakin.kubectl.comparing import templates
from numakin.kubectl.comparing.deployment import Deployment
from numakin.kubectl.comparing.measuring import Load, Placed, Plan, measure, restore
from numakin.kubectl.errors import BAD_NEWS, CommandError, UsageError
from numakin.kubectl.output import show
from numakin.kubectl.reach import Extender, listed
from numakin.kubectl.session import Session
from numakin.placement.model.names import is_group
from numakin.placement.optin.parsing import AUTO
from numakin.terminal import console

_NAMED = re.compile(r"(?:deploy|deployments?(?:\.apps)?)/([a-z0-9][a-z0-9.-]*)")

_OF_A_NODE = ("node", "image", "server", "client")


def run(given: argparse.Namespace, session: Session) -> int:
    """The exit code, as of all commands."""
    names = _names(given.deployments)
    if not given.restore:
        load = _load(given)
    deployments = [Deployment(session.api, session.namespace, name, given.timeout) for name in names]
    if given.restore:
        restore(deployments)
        return 0
    objects = {deployment.name: deployment.check() for deployment in deployments}
    group = given.group or _group_name(templates.group_for(objects))
    plan = Plan(deployments, group, load, partial(placed, lambda: session.extender), given.rounds, given.seed)
    log = partial(console(stderr=True).print, soft_wrap=True)
    for line in _intentions(plan, session.namespace):
        log(line)
    try:
        rounds, cut_short = measure(plan, log)
    except BadFigures as bad:
        raise CommandError(str(bad)) from bad
    about = {"deployments": names, "namespace": session.namespace, "group": plan.group, "load": given.load}
    return told(rounds, cut_short, given, about)


def told(rounds: Collection[Round], cut_short: str, given: argparse.Namespace, about: dict[str, Any]) -> int:
    """Prints what may be concluded of the rounds in which no pod was disturbed; CommandError where there is none."""
    calm = [runs for runs in rounds if not _disturbed(runs)]
    if not calm:
        raise CommandError("pods restarted or were replaced under the load in each round: see kubectl describe pod")
    outcome = result(calm, templates.DESIGN, cut_short)
    left_out = [{name: asdict(run) for name, run in runs.items()} for runs in rounds if _disturbed(runs)]
    show(
        presentation.as_json(outcome, about | {"left_out": left_out}),
        "json" if given.json else given.output,
        lambda: [
            presentation.table(outcome, millis=bool(given.reads)),
            *doubts(rounds),
            *presentation.conclusions(outcome),
        ],
    )
    return 0 if outcome.conclusive and not cut_short else BAD_NEWS


def placed(extender: Callable[[], Extender], uids: Collection[str]) -> Placed | None:
    """Of these pods, and of the groups that have some of them; None where no extender answers."""
    try:
        rows = listed(extender(), "/api/v1/groups", "groups")
    except CommandError:
        return None
    theirs = [row for row in rows if any(member["uid"] in uids for member in row["members"])]
    reported = {member["uid"] for row in theirs for member in row["members"] if not member["expected"]}
    shares = [row["locality"] for row in theirs if row["locality"] is not None]
    return Placed(len(reported.intersection(uids)) / max(1, len(uids)), fmean(shares) if shares else None)


def doubts(rounds: Collection[Round]) -> Iterator[str]:
    """What is to be known before anything is concluded of them."""
    if left_out := [runs for runs in rounds if _disturbed(runs)]:
        counts = {way.name: sum(bool(runs[way.name].disturbed) for runs in left_out) for way in templates.WAYS}
        where = ", ".join(f"{name} in {count}" for name, count in counts.items() if count)
        count = f"{len(left_out)} of {len(rounds)} rounds are left out"
        yield f"{count}: pods restarted or were replaced under the load ({where})"
    shares = [share for runs in rounds if (share := runs[templates.WITH].placed) is not None]
    if not shares:
        yield "whether numakin placed the pods is not known: no extender answered"
    elif fmean(shares) < 1:
        yield f"{templates.WITH}, it placed {fmean(shares):.1%} of the pods: see kubectl numakin doctor"


def _disturbed(runs: Round) -> bool:
    return any(run.disturbed for run in runs.values())


def _intentions(plan: Plan, namespace: str) -> list[str]:
    runs = plan.rounds * len(templates.WAYS) + 1
    names = ", ".join(map(str, plan.deployments))
    return [
        f"{names} in namespace {namespace}: {plan.rounds} rounds; all pods are replaced {runs} times, and restored",
        f"  {templates.WITH}: as annotated, or with {templates.GROUP}: {plan.group}",
        f"  {templates.WITHOUT}, {templates.AGAIN}: no annotation of numakin's",
    ]


def _names(words: list[str]) -> list[str]:
    names = []
    for word in words:
        match = _NAMED.fullmatch(word)
        if match is None:
            raise UsageError(f"{word!r}: only Deployments can be compared, as deployment/NAME")
        names.append(match[1])
    return list(dict.fromkeys(names))


def _group_name(text: str) -> str:
    """UsageError where it is none."""
    if text != AUTO and not is_group(f"default/{text}"):
        raise UsageError(f"{text!r} is no name of a group (--group): at most 63 letters, digits, '-', '_' and '.'")
    return text


def _load(given: argparse.Namespace) -> Load:
    if given.group:
        _group_name(given.group)
    foreign = next((name for name in _OF_A_NODE if getattr(given, name)), None)
    if foreign:
        raise UsageError(f"--{foreign} belongs to a comparison on one node, not to Deployments")
    if given.rounds < FEWEST_PAIRS:
        raise UsageError(f"{given.rounds} rounds are too few to conclude anything: {FEWEST_PAIRS} at least (--rounds)")
    if not given.load:
        raise UsageError("Deployments are compared under your load: --load 'COMMAND'")
    if bool(given.reads) == bool(given.throughput):
        raise UsageError(
            f"the load's output is read by --throughput REGEX or --reads {'|'.join(sorted(PARSERS))}: give one"
        )
    if given.reads and given.latency:
        raise UsageError("--latency belongs to --throughput: --reads finds both")
    try:
        command = parse_arguments("load", given.load)
        throughput, latency = (
            parse_expression("throughput", given.throughput),
            parse_expression("latency", given.latency),
        )
    except ValueError as bad:
        raise UsageError(str(bad)) from bad
    figures = PARSERS[given.reads] if given.reads else figures_by(throughput, latency)
    return Load(command, figures, given.settle, given.timeout)
