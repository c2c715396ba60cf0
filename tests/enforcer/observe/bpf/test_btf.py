"""The reader against bytes made here, and against this kernel's own."""

import struct

import pytest

from enforcer.observe.bpf.btf import VMLINUX, BadBTF, Types, offsets

STRUCT, UNION, PTR, FUNC = 4, 5, 2, 12


def btf(*types):
    """BTF of (kind, name, [(member, type id, bit offset)]); ids are 1, 2, 3..."""
    strings, body = b"\0", b""

    def name(text):
        nonlocal strings
        if not text:
            return 0
        strings += text.encode() + b"\0"
        return len(strings) - len(text) - 1

    for kind, type_name, members in types:
        body += struct.pack("=III", name(type_name), kind << 24 | len(members), 0)
        for member, type_id, bits in members:
            body += struct.pack("=III", name(member), type_id, bits)
    return struct.pack("=HBBIIIII", 0xEB9F, 1, 0, 24, 0, len(body), len(body), len(strings)) + body + strings


def test_members_are_found_at_their_byte():
    types = Types(btf((PTR, "", []), (STRUCT, "sock", [("sk_family", 1, 0), ("sk_peer_pid", 1, 4992)])))
    assert types.offset("sock", "sk_peer_pid") == 624


def test_members_of_nameless_structures_and_unions_are_the_outer_ones():
    types = Types(
        btf(
            (PTR, "", []),
            (STRUCT, "", [("b", 1, 64)]),
            (UNION, "", [("a", 1, 0), ("", 2, 0)]),
            (STRUCT, "outer", [("first", 1, 0), ("", 3, 128)]),
        )
    )
    assert types.offset("outer", "b") == 24


@pytest.mark.parametrize(
    ("structure", "member", "says"),
    [("socket", "sk", "no struct socket"), ("sock", "sk_new", r"no member sock\.sk_new")],
)
def test_what_is_missing_is_named(structure, member, says):
    types = Types(btf((PTR, "", []), (STRUCT, "sock", [("sk_family", 1, 0)])))
    with pytest.raises(BadBTF, match=says):
        types.offset(structure, member)


def test_a_function_is_known_by_its_number_and_not_a_structure_of_its_name():
    types = Types(btf((STRUCT, "inet_sendmsg", []), (FUNC, "inet_sendmsg", []), (FUNC, "inet_recvmsg", [])))
    assert types.functions(["inet_recvmsg", "inet_sendmsg"]) == {"inet_sendmsg": 2, "inet_recvmsg": 3}
    with pytest.raises(BadBTF, match="no function inet6_sendmsg"):
        types.functions(["inet6_sendmsg"])


@pytest.mark.parametrize(
    ("data", "says"), [(b"", "shorter"), (bytes(24), "magic"), (btf((31, "odd", [])), "unknown kind 31")]
)
def test_bytes_that_are_not_btf_are_refused(data, says):
    with pytest.raises(BadBTF, match=says):
        Types(data)


def test_without_btf_the_file_is_named(tmp_path):
    with pytest.raises(BadBTF, match="absent"):
        offsets(["sock.sk_protocol"], tmp_path / "absent")


@pytest.mark.skipif(not VMLINUX.exists(), reason="this kernel has no BTF")
def test_this_kernels_sockets_begin_as_they_always_have():
    heads = ["skc_daddr", "skc_rcv_saddr", "skc_dport", "skc_num", "skc_family", "skc_state"]
    result = offsets([f"sock_common.{head}" for head in heads])
    assert list(result.values()) == [0, 4, 12, 14, 16, 18]
