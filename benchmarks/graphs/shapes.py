"""Generated call graphs: cliques, stars, power laws, a log, a training job, a sharded store, call trees. Same random
source, same graph."""

from __future__ import annotations

from random import Random

from benchmarks.graphs.app import App, Call, Service

SIZES = (250, 500, 500, 1000, 1000, 2000)
"""Milli-CPU of members: the requests that people write most."""


def clique(random: Random) -> App:
    """Four to thirty members that all talk with each other: a Raft or Kafka cluster, a worker pool that shuffles."""
    members = [Service(f"m{number}", random.choice(SIZES)) for number in range(random.randint(4, 30))]
    calls = [
        Call(a.name, b.name, random.uniform(50, 150), 800) for number, a in enumerate(members) for b in members[:number]
    ]
    return App("clique", tuple(members), tuple(calls))


def star(random: Random) -> App:
    """A hub, such as a database or a broker, and six to forty members that talk with it alone."""
    leaves = [Service(f"leaf{number}", random.choice(SIZES)) for number in range(random.randint(6, 40))]
    calls = [Call(leave.name, "hub", 100 * random.lognormvariate(0, 0.8), 800) for leave in leaves]
    return App("star", (Service("hub", 2000), *leaves), tuple(calls))


def power_law(random: Random) -> App:
    """Twenty to eighty members; each joins with two edges to members drawn by their degree (Barabasi and Albert
    1999), weights log-normal.
    """
    members = [Service(f"s{number}", random.choice(SIZES)) for number in range(random.randint(20, 80))]
    calls = [Call("s1", "s0", 100, 800)]
    ends = [0, 1]
    for member in range(2, len(members)):
        drawn = {random.choice(ends), random.choice(ends)}
        for other in sorted(drawn):
            calls.append(Call(f"s{member}", f"s{other}", 100 * random.lognormvariate(0, 1), 800))
            ends += [member, other]
    return App("power-law", tuple(members), tuple(calls))


def log_hub(random: Random) -> App:
    """A Kafka-like log: brokers that copy from each other, with producers and consumers that all talk with every
    broker, and those of them that are one pipeline's with each other besides.
    """
    brokers = Service("broker", 2000, random.choice((3, 3, 5, 6)))
    services, calls = [brokers], [Call("broker", "broker", 300 * brokers.replicas, 4_000)]
    for number in range(random.randint(3, 8)):
        load = 100 * random.lognormvariate(0, 0.8)
        ends = Service(f"producer{number}", random.choice(SIZES[:5]), random.randint(1, 4))
        services.append(ends)
        calls.append(Call(ends.name, "broker", load, 2_000))
        for reader in range(random.randint(1, 3)):
            consumer = Service(f"consumer{number}-{reader}", random.choice(SIZES[:5]), random.randint(1, 4))
            services.append(consumer)
            calls.append(Call(consumer.name, "broker", load, 2_000))
            if random.random() < 0.4:
                calls.append(Call(consumer.name, ends.name, load * random.uniform(0.1, 0.5), 600))
    return App("log-hub", tuple(services), tuple(calls))


def training(random: Random) -> App:
    """Workers of one training job that exchange gradients all to all, read from a data cache, and report to a chief."""
    workers = Service("worker", random.choice((1000, 2000, 2000, 4000)), random.choice((4, 8, 8, 12, 16)))
    caches = Service("data-cache", 1000, random.randint(1, 3))
    pairs = workers.replicas * (workers.replicas - 1) // 2
    calls = (
        Call("worker", "worker", pairs * random.uniform(50, 150), 65_536),
        Call("worker", "data-cache", workers.replicas * random.uniform(20, 100), 32_768),
        Call("worker", "chief", workers.replicas * random.uniform(5, 20), 800),
    )
    return App("training", (Service("chief", 500), workers, caches), calls)


def sharded_store(random: Random) -> App:
    """Shards of some replicas that copy from their first one, behind routers, with clients that ask the routers, and
    some of them mostly one shard. Shards' load is skewed as keys are (Zipf).
    """
    routers = Service("router", 1000, random.randint(2, 5))
    services, calls = [routers], list[Call]()
    shards = random.randint(4, 12)
    for rank in range(shards):
        load = 400 / (rank + 1) ** 0.8
        replicas = random.choice((2, 3, 3))
        services.append(Service(f"shard{rank}", random.choice((1000, 1000, 2000)), replicas))
        calls.append(Call("router", f"shard{rank}", load, 1_500))
        calls.append(Call(f"shard{rank}", f"shard{rank}", load * random.uniform(0.3, 1.0) * (replicas - 1), 1_500))
    for number in range(random.randint(2, 8)):
        client = Service(f"client{number}", random.choice(SIZES[:5]), random.randint(1, 4))
        services.append(client)
        load = 200 * random.lognormvariate(0, 0.7)
        calls.append(Call(client.name, "router", load, 1_500))
        if random.random() < 0.4:
            calls.append(Call(client.name, f"shard{random.randrange(shards)}", load * random.uniform(0.3, 1.0), 1_500))
    return App("sharded-store", tuple(services), tuple(calls))


def trace_tree(random: Random) -> App:
    """Call trees as traces of large systems show them (Alibaba 2021): shallow and wide, calls fewer with each level,
    a few stores at the leaves that many services share, replicas by load.
    """
    calls: list[Call] = []
    stores = [Service(f"store{number}", 1000, random.randint(1, 3)) for number in range(random.randint(2, 5))]
    services = [Service("gateway", 1000, random.randint(1, 3))]
    level = [("gateway", 100.0)]
    most = random.randint(15, 60)
    while level and len(services) < most:
        below = []
        for caller, load in level:
            for _ in range(min(most - len(services), int(random.paretovariate(1.2)))):
                name, rate = f"s{len(services)}", load * random.lognormvariate(-0.4, 0.7)
                services.append(Service(name, random.choice(SIZES[:5]), max(1, min(5, round(rate / 60)))))
                calls.append(Call(caller, name, rate, 800))
                if random.random() < 0.5:
                    store = random.choice(stores)
                    calls.append(Call(name, store.name, rate * random.lognormvariate(0.3, 0.5), 1_200))
                below.append((name, rate))
        level = below
    return App("trace-tree", (*stores, *services), tuple(calls))
