"""Whether a runtime listens at a socket is seen in the kernel's table, wherever it was made."""

from pathlib import Path

import pytest

from enforcer.machine.listening import listened_to

HEAD = "Num       RefCount Protocol Flags    Type St Inode Path\n"
LISTENS = "0000000000000000: 00000002 00000000 00010000 0001 01 20641 {}\n"
CONNECTED = "0000000000000000: 00000003 00000000 00000000 0001 03 20641 {}\n"
NAMELESS = "0000000000000000: 00000003 00000000 00000000 0001 03 18013\n"


@pytest.mark.parametrize(
    ("rows", "listening"),
    [
        (LISTENS.format("/var/run/nri/nri.sock"), True),
        (LISTENS.format("/run/nri/nri.sock"), True),
        (LISTENS.format("/run/other\n1 1 1 none 1 1 1 row") + LISTENS.format("/run/nri/nri.sock"), True),
        (NAMELESS + CONNECTED.format("/var/run/nri/nri.sock"), False),
        (LISTENS.format("/run/containerd/containerd.sock"), False),
        (LISTENS.format("/host/run/nri/nri.sock"), None),
        (None, None),
    ],
    ids=[
        "it listens",
        "by its other name",
        "beside one with a line end in its name",
        "it is connected alone",
        "another one listens",
        "elsewhere",
        "no table",
    ],
)
def test_a_socket_at_which_somebody_may_listen(tmp_path: Path, rows: str | None, *, listening: bool | None) -> None:
    if rows is not None:
        (tmp_path / "1/net").mkdir(parents=True)
        (tmp_path / "1/net/unix").write_text(HEAD + rows)
    assert listened_to(tmp_path, Path("/var/run/nri/nri.sock")) is listening
