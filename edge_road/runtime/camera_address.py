"""Which addresses a camera may have: an allow-list, checked before any decoder sees the text.

Decoders know dozens of protocols, among them ones that read local files or join streams
(`file:`, `concat:`, `tee:`), so only plain network addresses and device names get through.
"""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import SplitResult, unquote, urlsplit

from pydantic import AfterValidator, Field

LONGEST = 512
_HOST = re.compile(r"(?=.{1,253}$)[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|[0-9A-Fa-f:.]{2,45}")
_REST = re.compile(r"[A-Za-z0-9/._~!$&'()*+,;=:@%?-]*")
_CREDENTIALS = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=%-]*(:[A-Za-z0-9._~!$&'()*+,;=%-]*)?")
DEVICE = r"^/dev/(video\d{1,3}|v4l/by-(id|path)/[A-Za-z0-9][A-Za-z0-9_.:+-]{0,200})$"


def checked_address(text: str, schemes: tuple[str, ...]) -> str:
    """`text` itself, when it is scheme://[user:password@]host[:port][/path]; else a ValueError.

    The error does not repeat the address, which may hold a password.
    """
    if len(text) > LONGEST:
        raise ValueError(f"an address of more than {LONGEST} characters")
    if not text.isascii() or not text.isprintable() or " " in text:  # urlsplit drops some of these in silence
        raise ValueError("spaces, control characters and letters beyond ASCII must be written as %XX")
    parts = urlsplit(text)
    if parts.scheme not in schemes:
        raise ValueError(f"an address must begin with {' or '.join(s + '://' for s in schemes)}")
    user, at, _ = parts.netloc.rpartition("@")
    if at and not _CREDENTIALS.fullmatch(user):
        raise ValueError("user and password hold a character that must be written as %XX")
    if parts.hostname is None or not _HOST.fullmatch(parts.hostname):
        raise ValueError("an address needs the name or number of a host")
    parts.port  # noqa: B018  (raises ValueError when it is no number, or too large)
    rest = text[len(parts.scheme) + 3 + len(parts.netloc) :]
    if not _REST.fullmatch(rest):
        raise ValueError("the path holds a character that must be written as %XX")
    return text


RtspAddress = Annotated[
    str, Field(repr=False), AfterValidator(lambda text: checked_address(text, ("rtsp", "rtsps")))
]
HttpAddress = Annotated[
    str, Field(repr=False), AfterValidator(lambda text: checked_address(text, ("http", "https")))
]


def credentials(parts: SplitResult) -> tuple[str, str] | None:
    """User and password of an address, decoded."""
    if parts.username is None:
        return None
    return unquote(parts.username), unquote(parts.password or "")
