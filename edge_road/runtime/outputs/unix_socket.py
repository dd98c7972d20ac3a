"""JSON lines over a unix socket: every local process that connects reads along."""

from __future__ import annotations

import contextlib
import logging
import os
import selectors
import socket
import threading
from collections.abc import Callable
from pathlib import Path

from edge_road.errors import ConfigError
from edge_road.files import check_writable
from edge_road.road_state import RoadState
from edge_road.runtime.inputs_parse import LARGEST_BYTES
from edge_road.runtime.lock import lock_folder
from edge_road.runtime.outputs.hub import Hub, Reader
from edge_road.runtime.outputs.output import OutputHealth
from edge_road.runtime.vehicle_outputs import UnixSocketOutput

log = logging.getLogger(__name__)

MOST_READERS, MOST_WAITING = 32, 64


class UnixSocket:
    """One thread serves all readers with sockets that never block."""

    gone = False

    def __init__(
        self,
        settings: UnixSocketOutput,
        vehicle: str,
        take_input: Callable[[bytes], None] = lambda payload: None,
    ) -> None:
        self._settings, self._take_input = settings, take_input
        self._heard: dict[socket.socket, bytes] = {}
        self.path = settings.path or lock_folder() / f"edge-road-{vehicle}.sock"
        self._door = _open_door(self.path, 0o660 if settings.group_may_read else 0o600)
        self._hub = Hub(MOST_READERS, MOST_WAITING)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._door, selectors.EVENT_READ)
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._selector.register(self._bell, selectors.EVENT_READ)
        self._guests: dict[socket.socket, tuple[Reader, bytearray]] = {}
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="unix-socket", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def publish(self, message: RoadState, line: str) -> None:
        self._hub.publish(line + "\n")

    def publish_event(self, line: str) -> None:
        if self._settings.events:
            self._hub.publish(line + "\n")

    def health(self) -> OutputHealth:
        detail = f"{self._hub.readers} readers"
        return OutputHealth(f"unix_socket {self.path}", self._thread.is_alive(), detail, self._hub.lost)

    def close(self, timeout_s: float) -> None:
        self._closing = True
        self._ring()
        if self._thread.is_alive():
            self._thread.join(min(timeout_s, 0.5))
        if not self._thread.is_alive():
            self._selector.close()
            os.close(self._bell)
        with contextlib.suppress(OSError):
            self.path.unlink()

    def _ring(self) -> None:
        with contextlib.suppress(OSError):
            os.eventfd_write(self._bell, 1)

    def _run(self) -> None:
        while True:
            ending = self._closing
            for key, events in self._selector.select(0 if ending else None):
                if key.fileobj is self._door:
                    self._welcome()
                elif key.fileobj == self._bell:
                    os.eventfd_read(self._bell)
                elif isinstance(key.fileobj, socket.socket) and events & selectors.EVENT_READ:
                    self._listen_to(key.fileobj)
            for guest in tuple(self._guests):
                self._serve(guest)
            if ending:
                break
        for guest in tuple(self._guests):
            self._see_off(guest)
        self._door.close()

    def _welcome(self) -> None:
        try:
            guest, _ = self._door.accept()
        except OSError:
            return
        guest.setblocking(False)
        reader = self._hub.join(self._ring)
        if reader is None:
            return guest.close()
        self._guests[guest] = (reader, bytearray())
        self._selector.register(guest, selectors.EVENT_READ)
        return None

    def _listen_to(self, guest: socket.socket) -> None:
        """Vehicle inputs, where they are allowed; an empty read means that the guest is gone."""
        try:
            heard = guest.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            heard = b""
        if not heard:
            return self._see_off(guest)
        if self._settings.inputs:
            *lines, rest = (self._heard.pop(guest, b"") + heard).split(b"\n")
            self._heard[guest] = rest[:LARGEST_BYTES]
            for line in lines:
                self._take_input(line)

    def _serve(self, guest: socket.socket) -> None:
        reader, rest = self._guests[guest]
        try:
            while rest or (items := reader.take()):
                rest = rest or bytearray("".join(items).encode())
                del rest[: guest.send(rest)]
        except BlockingIOError:
            pass
        except OSError:
            return self._see_off(guest)
        self._guests[guest] = (reader, rest)
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if rest else 0)
        self._selector.modify(guest, wanted)
        return None

    def _see_off(self, guest: socket.socket) -> None:
        reader, _ = self._guests.pop(guest)
        self._heard.pop(guest, None)
        self._hub.leave(reader)
        self._selector.unregister(guest)
        guest.close()


def _is_served(path: Path) -> bool:
    """Whether somebody listens there; the socket of a daemon that was killed lets nobody in."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as visitor:
        visitor.setblocking(False)
        try:
            visitor.connect(str(path))
        except OSError as error:
            return isinstance(error, BlockingIOError)  # too many wait at the door
    return True


def check_door(path: Path) -> str:
    """What a daemon would find; nothing is left behind."""
    if path.parent.is_dir():
        _open_door(path, 0o600).close()
        path.unlink()
    else:
        check_writable(path.parent)
    return f"{path}: can be made"


def _open_door(path: Path, mode: int) -> socket.socket:
    if _is_served(path):
        fix = "give this output another path"
        raise ConfigError("another process serves this unix socket", where=path, fix=fix)
    door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_socket():
            path.unlink()
        door.bind(str(path))
        os.chmod(path, mode)
        door.listen(8)
        door.setblocking(False)
    except OSError as error:
        door.close()
        raise ConfigError("the unix socket cannot be made", where=path, got=error) from None
    return door
