"""Whose bundles run here: signatures over a manifest, which names the digest of every other file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from edge_road.config import StrictModel
from edge_road.errors import BundleError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

SIGNATURE_FILE = "manifest.sig"
SIGNATURE_BYTES = 64


class Trust(StrictModel):
    """Section [trust] of a vehicle file."""

    trusted_keys: tuple[str, ...] = ()
    """public keys: files in PEM, or `ed25519:<base64>`; one of them must have signed the bundle"""
    allow_unsigned: bool = False
    """run a bundle without a signature too; to try one out where it was made, never on the road"""


DEVELOPMENT = Trust(allow_unsigned=True)


def check_signature(manifest: bytes, signature: bytes | None, trust: Trust, where: object) -> str | None:
    """The id of the trusted key that signed, or none for a bundle that may go unsigned."""
    if signature is None or not trust.trusted_keys:
        if trust.allow_unsigned:
            return None
        raise _unsigned(signature, where)
    from edge_road.keys import key_id, load_public_key

    keys = [load_public_key(text) for text in trust.trusted_keys]
    signer = _signer(keys, manifest, signature)
    if signer is None:
        raise BundleError(
            "the bundle is not signed by a trusted key, or was changed since",
            where=where,
            got=f"a signature of {len(signature)} bytes",
            expected=f"one by {' or '.join(map(key_id, keys))}",
            fix="ask for the bundle again; if its signer is right, add the public key to trusted_keys",
        )
    return key_id(signer)


def _signer(keys: Iterable[Ed25519PublicKey], manifest: bytes, signature: bytes) -> Ed25519PublicKey | None:
    from cryptography.exceptions import InvalidSignature

    for key in keys:
        try:
            key.verify(signature, manifest)
        except InvalidSignature:
            continue
        return key
    return None


def _unsigned(signature: bytes | None, where: object) -> BundleError:
    lacks_key = signature is not None
    sign = "" if lacks_key else "edge-road sign BUNDLE --key KEY, and "
    return BundleError(
        "nobody is trusted here, so no bundle can be" if lacks_key else "the bundle is not signed",
        where=where,
        got="a signature, but no trusted_keys" if lacks_key else f"no {SIGNATURE_FILE}",
        expected="a signature by a trusted key",
        fix=f"{sign}add the signer's public key to trusted_keys in [trust]; "
        "only to try the bundle out: allow_unsigned = true there",
    )
