"""Compiles one request several times with bcc, under whichever interpreter has it; see programs.py.

Stands alone: standard input has the request as JSON, standard output gets, for each of its sets of -D values, the maps
and the programs with their instructions in hexadecimal. Loads no program, but bcc makes the maps, which takes root.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from typing import Any

MAP_BYTES = b"\x18", 1
"""The opcode of a 64-bit immediate, and BPF_PSEUDO_MAP_FD in the upper half of the byte of registers."""


def compiled(text: str, values: dict[str, int]) -> dict[str, Any]:
    import bcc  # noqa: PLC0415 -- where it looks for headers is set before

    class Compiled(bcc.BPF):  # type: ignore[misc]  # bcc has no types
        def _trace_autoload(self) -> None:
            """Does not load function exits, which the kernel of who builds may refuse."""

    module = Compiled(text=text, cflags=[f"-D{name}={value}" for name, value in values.items()])
    # bcc declares the types of some of these functions alone.
    library, handle = bcc.lib, ctypes.c_void_p(module.module)
    library.bpf_table_name.restype = ctypes.c_char_p
    maps, names = {}, {}
    for number in range(library.bpf_num_tables(handle)):
        name = library.bpf_table_name(handle, number).decode()
        names[library.bpf_table_fd_id(handle, number)] = name
        maps[name] = {
            "type": library.bpf_table_type_id(handle, number),
            "key": library.bpf_table_key_size_id(handle, number),
            "value": library.bpf_table_leaf_size_id(handle, number),
            "entries": library.bpf_table_max_entries_id(handle, number),
            "flags": library.bpf_table_flags_id(handle, number),
        }
    functions = [library.bpf_function_name(handle, number) for number in range(library.bpf_num_functions(handle))]
    programs = {name.decode(): unlinked(module.dump_func(name), names) for name in functions}
    licence = library.bpf_module_license(handle).decode()
    module.cleanup()
    return {"compiler": f"bcc {bcc.__version__}", "licence": licence, "maps": maps, "programs": programs}


def unlinked(code: bytes, names: dict[int, str]) -> dict[str, Any]:
    """A program without the descriptors of maps, and where those belong."""
    data, maps = bytearray(code), {}
    for at in range(0, len(data), 8):
        if data[at : at + 1] == MAP_BYTES[0] and data[at + 1] >> 4 == MAP_BYTES[1]:
            maps[at // 8] = names[int.from_bytes(data[at + 4 : at + 8], "little")]
            data[at + 1] &= 15
            data[at + 4 : at + 8] = bytes(4)
    return {"maps": maps, "code": data.hex()}


def main() -> None:
    request = json.load(sys.stdin)
    os.environ.update(request["environment"])
    print(json.dumps([compiled(request["text"], values) for values in request["values"]]))


if __name__ == "__main__":
    main()
