"""nginx and wrk as Debian has them, for traffic inside the emulated machine."""

from __future__ import annotations

from pathlib import Path

FILE_SIZE = 20_000
LOG = "access.log"

NGINX = """\
daemon off;
master_process off;
user root;
pid {folder}/pid;
events {{}}
http {{
    sendfile on;
    log_format moved '$request_length $bytes_sent';
    access_log {folder}/{log} moved;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen {listen};
        root {folder};
    }}
}}
"""

PACED = "function delay() return {milliseconds} end\n"


def server(folder: Path, listen: str) -> list[str]:
    """The command of a server that sends /file, from a folder that it may write to."""
    configuration = folder / "nginx.conf"
    configuration.write_text(NGINX.format(folder=folder, listen=listen, log=LOG))
    (folder / "file").write_bytes(b"x" * FILE_SIZE)
    return ["/usr/sbin/nginx", "-e", "stderr", "-p", str(folder), "-c", str(configuration)]


def client(folder: Path, address: str, connections: int, seconds: int, pause_ms: int) -> list[str]:
    """The command of a client that asks for /file on each connection, again after a pause."""
    pace = folder / "pace.lua"
    pace.write_text(PACED.format(milliseconds=pause_ms))
    words = ["-t1", f"-c{connections}", f"-d{seconds}s", "-s", str(pace)]
    return ["/usr/bin/wrk", *words, f"http://{address}/file"]


def moved(folder: Path) -> tuple[int, int, int]:
    """Requests, their bytes and the replies' bytes, by the log of a server that has ended."""
    rows = [list(map(int, line.split())) for line in (folder / LOG).read_text().splitlines()]
    return len(rows), sum(asked for asked, _ in rows), sum(answered for _, answered in rows)
