"""A namespace's own addresses are read from procfs, without loopback and link-local ones."""

import subprocess
import uuid
from ipaddress import ip_address
from pathlib import Path

import pytest

from enforcer.observe.attribution import addresses

FIB_TRIE = """Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     +-- 10.9.1.0/24 2 0 2
        |-- 10.9.1.0
           /24 link UNICAST
        |-- 10.9.1.2
           /32 host LOCAL
        |-- 10.9.1.255
           /32 link BROADCAST
     |-- 127.0.0.1
        /32 host LOCAL
Local:
        |-- 10.9.1.2
           /32 host LOCAL
"""


def test_ipv4_addresses_are_the_local_leaves_each_once() -> None:
    assert addresses.ipv4(FIB_TRIE) == (ip_address("10.9.1.2"),)


def test_ipv6_addresses_are_the_global_ones() -> None:
    text = (
        "fd000000000000000000000000000002 02 40 00 80     eth0\n"
        "fe800000000000000000000000000001 02 40 20 80     eth0\n"
        "00000000000000000000000000000001 01 80 10 80       lo\n"
    )
    assert addresses.ipv6(text) == (ip_address("fd00::2"),)


def test_a_process_that_has_ended_has_none() -> None:
    assert addresses.of_process(4_000_000) == ()


@pytest.mark.bpf
def test_a_real_namespace_tells_its_own() -> None:
    name = f"nk-{uuid.uuid4().hex[:6]}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"no network namespace can be made here: {made.stderr.strip()}")
    try:
        inside = ["ip", "-n", name]
        subprocess.run([*inside, "addr", "add", "10.77.3.2/32", "dev", "lo"], check=True)
        subprocess.run([*inside, "link", "set", "lo", "up"], check=True)
        with subprocess.Popen(["ip", "netns", "exec", name, "cat"], stdin=subprocess.PIPE) as process:
            _until_in(process.pid, name)
            assert ip_address("10.77.3.2") in addresses.of_process(process.pid)
            process.stdin.close()
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)


def _until_in(pid: int, name: str) -> None:
    """`ip netns exec` enters the namespace before it becomes the command."""
    wanted = Path(f"/run/netns/{name}").stat().st_ino
    while Path(f"/proc/{pid}/ns/net").stat().st_ino != wanted:
        pass
