"""The kernel's layouts and Python's are one. Clang says what contract.h means."""

import json
import re
import struct
import subprocess

import pytest

from enforcer.observe.bpf import built, contract
from lab.standins.patience import PATIENCE_S

# bcc makes ctypes of the types of a map's keys and values: their fields, offsets and sizes are the compiler's.
LAYOUTS = """
import json, sys
from bcc import BPF
text = open(sys.argv[1]).read()
names = ["edge_key", "edge_value", "edge_slot", "pair_key", "pair_value"]
for name in names:
    text += f'BPF_HASH(map_{name}, struct {name}, u64, 1);'
module = BPF(text=text)
layouts = {}
for name in names:
    key = module[f"map_{name}"].Key
    fields = [(field[0], getattr(key, field[0]).offset, getattr(key, field[0]).size) for field in key._fields_]
    layouts[name] = fields
print(json.dumps(layouts))
"""

MIRRORS = {
    "edge_key": (contract.EDGE_KEY, ["cgroup", "peer", "port", "server", "protocol", "namespace"]),
    "edge_value": (contract.EDGE_VALUE, ["tx_bytes", "tx_messages", "rx_bytes", "rx_messages"]),
    "pair_key": (contract.PAIR_KEY, ["from", "to", "pid", "unused"]),
    "pair_value": (contract.PAIR_VALUE, ["bytes", "messages"]),
}


@pytest.fixture(scope="module")
def layouts(bpf_allowed):
    command = ["/usr/bin/python3", "-c", LAYOUTS, str(built.HERE / "contract.h")]
    environment = {"BCC_KERNEL_SOURCE": str(built.SHIM), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    if "No module named 'bcc'" in done.stderr:
        pytest.skip("the system's Python has no bcc")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def offsets(layout):
    """(offset, size) of each field of a struct.Struct in native order without padding."""
    position, result = 0, []
    for code in expanded(layout.format.lstrip("=")):
        size = len(struct.pack("=" + code, *([b""] if code.endswith("s") else [0])))
        result.append((position, size))
        position += size
    return result


def expanded(form):
    """'Q16sHBBI' and '4Q' as single fields."""
    count = ""
    for letter in form:
        if letter.isdigit():
            count += letter
        else:
            yield from [count + "s"] if letter == "s" else [letter] * int(count or 1)
            count = ""


@pytest.mark.bpf
@pytest.mark.parametrize("name", MIRRORS)
def test_python_and_c_agree_on_every_field(layouts, name):
    layout, names = MIRRORS[name]
    expected = [[field, *where] for field, where in zip(names, offsets(layout), strict=True)]
    assert layouts[name] == expected


@pytest.mark.bpf
def test_a_slot_is_a_key_a_value_and_a_word_of_the_programs(layouts):
    key, value = contract.EDGE_KEY.size, contract.EDGE_VALUE.size
    assert layouts["edge_slot"] == [["key", 0, key], ["value", key, value], ["taking", key + value, 8]]
    assert key + value + 8 == contract.EDGE_SLOT_SIZE
    bits = re.search(r"#define SLOT_BITS (\d+)", (built.HERE / "contract.h").read_text())
    assert 1 << int(bits[1]) == contract.SLOTS_OF_CPU


def test_the_slots_of_missed_are_in_the_order_of_the_header():
    text = (built.HERE / "contract.h").read_text()
    enum = text[text.index("enum missed_slot {") : text.index("MISSED_SLOTS")]
    names = [part.strip(",") for part in enum.split() if part.strip(",").isupper() and "_" in part]
    assert names == [slot.name for slot in contract.MissedSlot]
