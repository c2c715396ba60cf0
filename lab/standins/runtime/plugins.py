"""The runtime's plugins: taken from its socket or launched by it, called in the order of their indices."""

import contextlib
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from google.protobuf.message import Message

from lab.standins.runtime.attached import Attached, Terms
from lab.standins.runtime.connection import PluginLostError
from lab.standins.runtime.locks import Locks
from numakin.wire import nri_pb2 as nri

Snapshot = Callable[[], tuple[list[nri.PodSandbox], list[nri.Container]]]
Apply = Callable[[list[nri.ContainerUpdate]], bool]
Update = Callable[[nri.UpdateContainersRequest], nri.UpdateContainersResponse]

# The descriptor that a launched plugin finds its socket at.
LAUNCHED_FD = 3


class Plugins:
    """All that are attached. The runtime's own lock is held: no event happens while one is being synchronized.

    `notes` says what happened to them, and `synchronized` how many ever were.
    """

    def __init__(self, terms: Terms, locks: Locks, snapshot: Snapshot, apply: Apply, update: Update) -> None:
        self.notes: list[str] = []
        self.synchronized = 0
        self._terms = terms
        self._locks = locks
        self._changed = threading.Condition(locks.runtime)
        self._snapshot = snapshot
        self._apply = apply
        self._update = update
        self._attached: list[Attached] = []
        self._connections: list[Attached] = []
        self._listener: socket.socket | None = None
        self._acceptor: threading.Thread | None = None

    @property
    def names(self) -> list[str]:
        with self._changed:
            self._purge()
            return [str(plugin) for plugin in self._attached]

    def listen(self, path: str) -> None:
        Path(path).unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(path)
        self._listener.listen()
        self._acceptor = threading.Thread(target=self._accept, args=(self._listener,), daemon=True)
        self._acceptor.start()

    def launch(self, program: Path, index: str, name: str, config: str) -> None:
        """Starts it as containerd does: the socket at descriptor 3, three environment variables, no arguments."""
        ours, theirs = socket.socketpair()
        environ = {"NRI_PLUGIN_NAME": name, "NRI_PLUGIN_IDX": index, "NRI_PLUGIN_SOCKET": str(LAUNCHED_FD)}
        move = [(os.POSIX_SPAWN_DUP2, theirs.fileno(), LAUNCHED_FD)]
        pid = os.posix_spawn(program, [str(program)], environ, file_actions=move)
        theirs.close()
        self._attach(Attached(ours, self._terms, self._update, launched=(index, name, config), pid=pid))

    def wait(self, count: int, timeout_s: float) -> bool:
        """Whether at least `count` plugins are there at once before the timeout; one that has just ended may count."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self.names) >= count, timeout_s)

    def wait_beyond(self, synchronized: int, timeout_s: float) -> bool:
        """Whether more plugins than `synchronized` have come, ever, before the timeout, and one is there."""
        with self._changed:
            return self._changed.wait_for(lambda: self.synchronized > synchronized and bool(self.names), timeout_s)

    def wait_for_note(self, text: str, timeout_s: float) -> bool:
        """Whether a note with `text` in it is there before the timeout."""
        with self._changed:
            return self._changed.wait_for(lambda: any(text in note for note in self.notes), timeout_s)

    def hang_up(self) -> None:
        """Ends every connection, and leaves launched plugins to end by themselves."""
        for plugin in self._connections:
            plugin.connection.close("the runtime hangs up")

    def close(self) -> None:
        if self._listener is not None:
            self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self._listener = None
        for plugin in self._connections:
            plugin.close("the runtime stops")
        if self._acceptor is not None:
            self._acceptor.join()
        for plugin in self._connections:
            plugin.close("the runtime stops")
        self._connections.clear()
        self._attached.clear()

    def deliver(self, method: str, request: Callable[[], Message]) -> Iterator[tuple[Attached, bytes]]:
        """Asks each in turn that wants the event, with `request()` as it is by then; yields their answers.

        A plugin that is lost over it is left out. Raises StatusError.
        """
        self._purge()
        for plugin in list(self._attached):
            try:
                with self._locks.event():
                    answer = plugin.deliver(method, request())
            except PluginLostError as error:
                self._note(f"closing plugin {plugin}: {error}")
                plugin.connection.close(str(error))
                self._purge()
                continue
            if answer is not None:
                yield plugin, answer

    def shut_down(self) -> None:
        """Sends Shutdown to all."""
        for plugin in list(self._attached):
            plugin.call("Shutdown", nri.Empty())

    def _accept(self, listener: socket.socket) -> None:
        # One at a time, like the real one.
        with contextlib.suppress(OSError):
            while True:
                sock, _ = listener.accept()
                self._attach(Attached(sock, self._terms, self._update))

    def _attach(self, plugin: Attached) -> None:
        self._connections.append(plugin)
        try:
            plugin.register()
            with self._changed:
                self._carry_out(plugin, plugin.synchronize(*self._snapshot()))
                self._attached.append(plugin)
                self._attached.sort(key=lambda each: each.index)
                self.synchronized += 1
                self._note(f"plugin {plugin} is synchronized")
        except PluginLostError as error:
            self._note(f"plugin {plugin}: {error}")

    def _carry_out(self, plugin: Attached, updates: list[nri.ContainerUpdate]) -> None:
        """PluginLostError where an update fails that may not."""
        if not self._apply(updates):
            plugin.connection.close("NRI update of some containers failed")
            raise PluginLostError(plugin.connection.reason)

    def _purge(self) -> None:
        self._attached = [plugin for plugin in self._attached if not plugin.connection.closed]

    def _note(self, text: str) -> None:
        with self._changed:
            self.notes.append(text)
            self._changed.notify_all()
