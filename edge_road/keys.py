"""Ed25519 key files as every tool reads them: PKCS#8 and SubjectPublicKeyInfo in PEM."""

from __future__ import annotations

import argparse
import base64
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from edge_road.errors import ConfigError
from edge_road.files import sha256, sync_folder, write_atomically

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

INLINE = "ed25519:"
LARGEST_KEY_FILE_BYTES = 16 * 1024


def generate_key(path: Path) -> str:
    """Write the private key to `path` (mode 0600) and the public one to `<path>.pub`; returns its id."""
    from cryptography.hazmat.primitives import serialization as s
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(s.Encoding.PEM, s.PrivateFormat.PKCS8, s.NoEncryption())
    public = key.public_key().public_bytes(s.Encoding.PEM, s.PublicFormat.SubjectPublicKeyInfo)
    _refuse_existing(path, public_path(path))
    try:
        _write_secret(path, private)
        _write_beside(path, public)
    except OSError as error:
        raise ConfigError("the key cannot be written", where=path, got=error.strerror) from None
    return key_id(key.public_key())


def public_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.pub")


def load_private_key(path: Path) -> Ed25519PrivateKey:
    """Refused when others could read it: such a key proves nothing."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    content = _read_key_file(path)
    try:
        key = load_pem_private_key(content, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise _no_key(path, error, "an Ed25519 private key in PEM, without a password") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise _no_key(path, type(key).__name__, "an Ed25519 private key")
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise ConfigError(
            "others can read the private key",
            where=path,
            got=f"mode {stat.S_IMODE(path.stat().st_mode):04o}",
            expected="mode 0600",
            fix=f"chmod 600 {path}, and make a new key if it was not yours alone",
        )
    return key


def load_public_key(text: str) -> Ed25519PublicKey:
    """`text` is the path of a PEM file, or the key itself as `ed25519:<base64>`."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        if text.startswith(INLINE):
            raw = base64.b64decode(text.removeprefix(INLINE), validate=True)
            return Ed25519PublicKey.from_public_bytes(raw)
        key = load_pem_public_key(_read_key_file(Path(text)))
    except (ValueError, UnsupportedAlgorithm) as error:
        raise _no_key(text, error, "an Ed25519 public key in PEM, or ed25519:<base64>") from None
    if not isinstance(key, Ed25519PublicKey):
        raise _no_key(text, type(key).__name__, "an Ed25519 public key")
    return key


def inline_key(key: Ed25519PublicKey) -> str:
    """The form that fits on a line of a vehicle file."""
    return INLINE + base64.b64encode(key.public_bytes_raw()).decode()


def key_id(key: Ed25519PublicKey) -> str:
    """Short enough to read out, long enough not to be hit by chance."""
    return sha256(key.public_bytes_raw())[:16]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="edge-road keys",
        description="Make a pair of keys: the private one signs bundles and stays here, "
        "the public one goes into vehicle files.",
    )
    parser.add_argument("path", type=Path, metavar="FILE", help="of the private key; the other is FILE.pub")
    parser.add_argument("--show", action="store_true", help="only print the public key of an existing pair")
    options = parser.parse_args(arguments)
    if not options.show:
        generate_key(options.path)
        print(f"private  {options.path} (mode 0600; keep it off the vehicles)")
    key = load_public_key(str(public_path(options.path)))
    print(f"public   {public_path(options.path)}\nid       {key_id(key)}")
    print(f'\nIn a vehicle file:\n[trust]\ntrusted_keys = ["{inline_key(key)}"]')
    return 0


def _write_secret(path: Path, content: bytes) -> None:
    """Never readable by others, not even for a moment; never over an existing file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        path.unlink()  # half a key would stand in the way of a whole one
        raise
    sync_folder(path.parent)


def _write_beside(path: Path, public: bytes) -> None:
    try:
        write_atomically(public_path(path), public)
    except BaseException:
        path.unlink()  # without its other half it would only stand in the way
        raise


def _refuse_existing(*paths: Path) -> None:
    for path in paths:
        if path.exists() or path.is_symlink():
            raise ConfigError("a key is never overwritten", where=path, fix="choose another name")


def _read_key_file(path: Path) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(LARGEST_KEY_FILE_BYTES)
    except OSError as error:
        raise ConfigError(
            "a key file cannot be read", where=path, got=error.strerror, fix="edge-road keys makes one"
        ) from None


def _no_key(where: object, got: object, expected: str) -> ConfigError:
    return ConfigError("not a key that can be used", where=where, got=got, expected=expected)
