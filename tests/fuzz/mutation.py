"""Inputs made from valid ones, by the same steps for the same seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random

LARGEST = 1 << 14
"""Bytes of an input: what is longer is cut."""

INTERESTING = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 63, (1 << 64) - 1)
WORDS = (
    b"null", b"[]", b"{}", b"-1", b"1e999", b"NaN", b'"', b'"\\ud800"', b"\xff", b"\0", b"0-99999999", b"9" * 40, b"," * 40,
    b"[" * 2000, b'{"a":' * 1200, b"../", b"\n", b" ", b"4294967296", b"18446744073709551616", b"true",
)  # fmt: skip


def mutated(inputs: Sequence[bytes], count: int, seed: int = 0) -> Iterator[bytes]:
    """So many inputs, each by one to six steps from one of these."""
    random = Random(seed)
    for _ in range(count):
        data = random.choice(inputs)
        for _ in range(random.randint(1, 6)):
            data = random.choice(STEPS)(data, random, inputs)[:LARGEST]
        yield data


def _flip(data: bytes, random: Random, _inputs: Sequence[bytes]) -> bytes:
    at = random.randrange(len(data)) if data else 0
    return data[:at] + bytes([data[at] ^ 1 << random.randrange(8)]) + data[at + 1 :] if data else b"\0"


def _remove(data: bytes, random: Random, _inputs: Sequence[bytes]) -> bytes:
    start, end = _span(data, random)
    return data[:start] + data[end:]


def _repeat(data: bytes, random: Random, _inputs: Sequence[bytes]) -> bytes:
    start, end = _span(data, random)
    return data[:end] + data[start:end] * random.randint(1, 8) + data[end:]


def _splice(data: bytes, random: Random, inputs: Sequence[bytes]) -> bytes:
    other = random.choice(inputs)
    start, end = _span(other, random)
    at, _ = _span(data, random)
    return data[:at] + other[start:end] + data[at:]


def _number(data: bytes, random: Random, _inputs: Sequence[bytes]) -> bytes:
    width = random.choice((1, 2, 4, 8))
    written = (random.choice(INTERESTING) % (1 << 8 * width)).to_bytes(width, random.choice(("big", "little")))
    at = random.randint(0, len(data))
    return data[:at] + written + data[at + width :]


def _word(data: bytes, random: Random, _inputs: Sequence[bytes]) -> bytes:
    start, end = _span(data, random)
    return data[:start] + random.choice(WORDS) + data[random.choice((start, end)) :]


def _span(data: bytes, random: Random) -> tuple[int, int]:
    start = random.randint(0, len(data))
    return start, min(len(data), start + random.randint(0, 16))


Step = Callable[[bytes, Random, Sequence[bytes]], bytes]
STEPS: tuple[Step, ...] = (_flip, _flip, _remove, _repeat, _splice, _number, _word)
