"""A camera that sends JPEG pictures over HTTP."""

from __future__ import annotations

import base64
import socket
import ssl
from contextlib import suppress
from urllib.parse import urlsplit

from edge_road.clock import Clock, utc_text
from edge_road.datasets.decode import decode_image
from edge_road.errors import CameraError, DataError
from edge_road.frames import Frame
from edge_road.logs import safe_text
from edge_road.runtime.camera_address import credentials
from edge_road.runtime.sources.base import Unreadable, stamped
from edge_road.runtime.sources.multipart import PictureParts, boundary_of
from edge_road.runtime.vehicle_sources import MjpegSource

CHUNK_BYTES = 256 * 1024
LARGEST_HEADER_BYTES = 16 * 1024


class MjpegCamera:
    """Redirects are not followed: the address in the vehicle file is the only one that is called."""

    live = True
    origin_ns = 0

    def __init__(self, settings: MjpegSource, clock: Clock) -> None:
        self.description = f"MJPEG {safe_text(settings.url)}"
        self.period_s = 1 / settings.fps
        self.rejected = 0
        self._settings, self._clock = settings, clock
        self._socket: socket.socket | None = None
        self._number = 0

    def open(self) -> None:
        self.origin_ns = self._clock.mono_ns()
        deadline_ns = self.origin_ns + round(self._settings.open_s * 1e9)
        self._parts, rest = self._ask(deadline_ns)
        self._newest: bytes | None = None
        self._take_in(rest)
        self._heard_ns = self._clock.mono_ns()

    def read(self, deadline_ns: int) -> Frame | Unreadable | None:
        while self._newest is None:
            now_ns = self._clock.mono_ns()
            if now_ns - self._heard_ns > self._settings.silent_s * 1e9:
                raise self._trouble("the camera sends no pictures", f"none for {self._settings.silent_s} s")
            if now_ns >= deadline_ns:
                return None
            self._take_in(self._receive(deadline_ns))
        self._catch_up(deadline_ns)
        self._heard_ns = self._clock.mono_ns()
        newest, self._newest = self._newest, None
        return self._decoded(newest)

    def _catch_up(self, deadline_ns: int) -> None:
        """What came while nobody read is old: of all that waits only the newest picture is judged."""
        with suppress(CameraError):  # the next call meets the same trouble
            while self._clock.mono_ns() < deadline_ns and (chunk := self._receive(0)):
                self._take_in(chunk)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _decoded(self, content: bytes) -> Frame | Unreadable:
        try:
            return stamped(decode_image(content, self.description), self._number, self._heard_ns, self._clock)
        except DataError:
            self.rejected += 1
            return Unreadable(self._number, self._heard_ns, utc_text(self._clock.utc()))

    def _take_in(self, chunk: bytes) -> None:
        try:
            pictures = self._parts.feed(chunk)
        except ValueError as error:
            raise self._trouble("the camera does not send a stream of pictures", error) from None
        self._number += len(pictures)
        self._newest = pictures[-1] if pictures else self._newest

    def _receive(self, deadline_ns: int) -> bytes:
        assert self._socket is not None
        try:
            self._socket.settimeout(max(0.0, (deadline_ns - self._clock.mono_ns()) / 1e9))
            chunk = self._socket.recv(CHUNK_BYTES)
        except (TimeoutError, BlockingIOError, ssl.SSLWantReadError):
            return b""
        except OSError as error:
            raise self._trouble("the connection to the camera broke", error.strerror or error) from None
        if not chunk:
            raise self._trouble("the camera has ended the stream", "an end")
        return chunk

    def _ask(self, deadline_ns: int) -> tuple[PictureParts, bytes]:
        """Connect, ask for the stream, and read the answer's header."""
        self._connect()
        assert self._socket is not None
        try:
            self._socket.sendall(self._request())
        except OSError as error:
            raise self._trouble("the camera does not listen", error.strerror or error) from None
        answer = b""
        while b"\r\n\r\n" not in answer:
            if len(answer) > LARGEST_HEADER_BYTES or self._clock.mono_ns() >= deadline_ns:
                raise self._trouble("the camera does not answer", f"{len(answer)} bytes of a header")
            answer += self._receive(deadline_ns)
        header, _, rest = answer.partition(b"\r\n\r\n")
        return PictureParts(self._boundary(header.decode("latin-1"))), rest

    def _connect(self) -> None:
        parts = urlsplit(self._settings.url)
        secure = parts.scheme == "https"
        try:
            self._socket = socket.create_connection(
                (parts.hostname, parts.port or (443 if secure else 80)), timeout=self._settings.open_s
            )
            if secure:
                context = ssl.create_default_context()
                self._socket = context.wrap_socket(self._socket, server_hostname=parts.hostname)
        except (OSError, UnicodeError) as error:  # the latter: not the name of any host (IDNA)
            got = getattr(error, "strerror", None) or error
            raise self._trouble("the camera cannot be reached", got) from None

    def _request(self) -> bytes:
        """HTTP/1.0, so that the answer does not come in chunks."""
        parts = urlsplit(self._settings.url)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        lines = [f"GET {path} HTTP/1.0", f"Host: {parts.netloc.rpartition('@')[2]}", "Accept: */*"]
        if known := credentials(parts):
            lines.append("Authorization: Basic " + base64.b64encode(":".join(known).encode()).decode())
        return "\r\n".join([*lines, "", ""]).encode("ascii")

    def _boundary(self, header: str) -> bytes:
        status, *lines = header.split("\r\n")
        if status.split(" ")[1:2] != ["200"]:
            raise self._trouble("the camera refuses", status[:80])
        fields = {name.strip().lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)}
        boundary = boundary_of(fields.get("content-type", ""))
        if boundary is None:
            got = fields.get("content-type", "no content type")[:80]
            raise self._trouble("the camera does not send a stream of pictures", got)
        return boundary

    def _trouble(self, what: str, got: object) -> CameraError:
        return CameraError(what, where=self.description, got=safe_text(str(got)))
