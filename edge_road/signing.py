"""Signing a bundle: 64 bytes of Ed25519 over manifest.json, which any tool can check."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from edge_road.bundle import MANIFEST_FILE, load_bundle
from edge_road.errors import BundleError
from edge_road.files import sha256, write_atomically
from edge_road.keys import inline_key, key_id, load_private_key
from edge_road.trust import SIGNATURE_FILE, Trust
from edge_road.workspace import newest_bundle


def signer(key_path: Path) -> Callable[[bytes], bytes]:
    """For `write_bundle`, so that a bundle and its signature appear in one step."""
    return load_private_key(key_path).sign


def sign_bundle(folder: Path, key_path: Path) -> str:
    """Sign a bundle whose every file is as its manifest says; returns the key's id."""
    key = load_private_key(key_path)
    bundle = load_bundle(folder)
    manifest = (folder / MANIFEST_FILE).read_bytes()
    if sha256(manifest) != bundle.digest:
        raise BundleError("the manifest changed while it was signed", where=folder)
    try:
        write_atomically(folder / SIGNATURE_FILE, key.sign(manifest))
    except OSError as error:
        raise BundleError("the signature cannot be written", where=folder, got=error.strerror) from None
    load_bundle(folder, Trust(trusted_keys=(inline_key(key.public_key()),)))
    return key_id(key.public_key())


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="edge-road sign", description="Sign a bundle, so that vehicles can tell whose it is."
    )
    parser.add_argument(
        "bundle", nargs="?", type=Path, metavar="BUNDLE", help="folder of the bundle (the newest)"
    )
    parser.add_argument("--key", type=Path, required=True, metavar="FILE", help="the private key")
    options = parser.parse_args(arguments)
    bundle = options.bundle or newest_bundle()
    print(f"signed {bundle} with key {sign_bundle(bundle, options.key)}")
    return 0
