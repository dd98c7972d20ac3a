"""Whose bundle is it? Keys, signatures and the policy of a vehicle."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
from test_bundle import small_bundle

from edge_road import keys
from edge_road.bundle import load_bundle, write_bundle
from edge_road.cli import command
from edge_road.errors import BundleError, ConfigError
from edge_road.keys import generate_key, inline_key, load_private_key, load_public_key, public_path
from edge_road.signing import sign_bundle, signer
from edge_road.trust import DEVELOPMENT, Trust

pytest.importorskip("cryptography")


@pytest.fixture
def key(tmp_path: Path) -> Path:
    generate_key(tmp_path / "fleet")
    return tmp_path / "fleet"


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    small_bundle(tmp_path / "bundle")
    return tmp_path / "bundle"


def trust_in(*keys: Path, allow_unsigned: bool = False) -> Trust:
    return Trust(trusted_keys=tuple(str(public_path(key)) for key in keys), allow_unsigned=allow_unsigned)


def test_a_signed_bundle_is_trusted_by_who_knows_the_key(bundle: Path, key: Path) -> None:
    signed_by = sign_bundle(bundle, key)
    loaded = load_bundle(bundle, trust_in(key))
    assert loaded.signed_by == signed_by
    assert loaded.trust_text == f"signed by {signed_by}"


def test_the_digest_does_not_depend_on_who_signs(bundle: Path, key: Path) -> None:
    before = load_bundle(bundle).digest
    sign_bundle(bundle, key)
    assert load_bundle(bundle).digest == before


def test_a_key_can_stand_in_a_vehicle_file(bundle: Path, key: Path) -> None:
    sign_bundle(bundle, key)
    text = inline_key(load_public_key(str(public_path(key))))
    assert load_bundle(bundle, Trust(trusted_keys=(text,))).signed_by is not None


def test_one_of_several_trusted_keys_suffices_so_that_keys_can_be_replaced(
    bundle: Path, key: Path, tmp_path: Path
) -> None:
    generate_key(tmp_path / "next")
    sign_bundle(bundle, tmp_path / "next")
    assert load_bundle(bundle, trust_in(key, tmp_path / "next")).signed_by


def test_another_key_is_refused_whatever_the_policy(bundle: Path, key: Path, tmp_path: Path) -> None:
    generate_key(tmp_path / "stranger")
    sign_bundle(bundle, tmp_path / "stranger")
    for allow_unsigned in (False, True):
        with pytest.raises(BundleError, match="not signed by a trusted key") as caught:
            load_bundle(bundle, trust_in(key, allow_unsigned=allow_unsigned))
    assert caught.value.exit_code == 3


def test_unsigned_is_refused_unless_it_is_allowed(bundle: Path, key: Path) -> None:
    with pytest.raises(BundleError, match="is not signed") as caught:
        load_bundle(bundle, trust_in(key))
    assert "allow_unsigned" in caught.value.details["to do"]
    with pytest.raises(BundleError, match="is not signed"):
        load_bundle(bundle, Trust())
    for trust in (trust_in(key, allow_unsigned=True), DEVELOPMENT):
        loaded = load_bundle(bundle, trust)
        assert (loaded.signed_by, loaded.trust_text) == (None, "unsigned")


def test_who_trusts_nobody_is_told_so(bundle: Path, key: Path) -> None:
    sign_bundle(bundle, key)
    with pytest.raises(BundleError, match="nobody is trusted here"):
        load_bundle(bundle, Trust())
    assert load_bundle(bundle).trust_text == "signature not checked"


def test_a_changed_manifest_is_refused_before_it_is_parsed(bundle: Path, key: Path) -> None:
    sign_bundle(bundle, key)
    path = bundle / "manifest.json"
    path.write_bytes(path.read_bytes().replace(b'"seed": 0', b'"seed": 1'))
    load_bundle(bundle)  # the change alone is valid
    with pytest.raises(BundleError, match="changed since"):
        load_bundle(bundle, trust_in(key))


def test_a_damaged_bundle_is_not_signed(bundle: Path, key: Path) -> None:
    (bundle / "model.onnx").write_bytes(b"other")
    with pytest.raises(BundleError, match="cut or changed"):
        sign_bundle(bundle, key)
    assert not (bundle / "manifest.sig").exists()


def test_a_bundle_can_be_written_with_its_signature_in_one_step(
    bundle: Path, key: Path, tmp_path: Path
) -> None:
    loaded = load_bundle(bundle)
    write_bundle(tmp_path / "signed", loaded.manifest, loaded.contents, signer(key))
    assert load_bundle(tmp_path / "signed", trust_in(key)).digest == loaded.digest


def test_a_bundle_written_anew_has_lost_its_old_signature(bundle: Path, key: Path) -> None:
    sign_bundle(bundle, key)
    small_bundle(bundle)
    with pytest.raises(BundleError, match="is not signed"):
        load_bundle(bundle, trust_in(key))


def test_the_private_key_is_for_its_owner_alone(bundle: Path, key: Path) -> None:
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    key.chmod(0o640)
    with pytest.raises(ConfigError, match="others can read") as caught:
        sign_bundle(bundle, key)
    assert "chmod 600" in caught.value.details["to do"]


def test_a_key_is_never_overwritten(key: Path) -> None:
    content = key.read_bytes()
    assert command("keys", [str(key)]) == 2
    key.rename(key.with_name("moved"))
    assert command("keys", [str(key)]) == 2  # the public half is still there
    assert key.with_name("moved").read_bytes() == content


@pytest.mark.parametrize("text", ["ed25519:", "ed25519:AAAA", "ed25519:!!", "missing.pub"])
def test_what_is_no_public_key_is_a_mistake_in_the_settings(text: str, bundle: Path, key: Path) -> None:
    sign_bundle(bundle, key)
    with pytest.raises(ConfigError):
        load_bundle(bundle, Trust(trusted_keys=(text,)))


def test_a_key_of_another_kind_is_refused(tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization as s
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    private = key.private_bytes(s.Encoding.PEM, s.PrivateFormat.PKCS8, s.NoEncryption())
    public = key.public_key().public_bytes(s.Encoding.PEM, s.PublicFormat.SubjectPublicKeyInfo)
    (tmp_path / "k").touch(0o600)
    (tmp_path / "k").write_bytes(private)
    (tmp_path / "k.pub").write_bytes(public)
    with pytest.raises(ConfigError, match="not a key"):
        load_private_key(tmp_path / "k")
    with pytest.raises(ConfigError, match="not a key"):
        load_public_key(str(tmp_path / "k.pub"))


UNSUPPORTED_CURVE = """-----BEGIN PRIVATE KEY-----
ME4CAQAwEAYHKoZIzj0CAQYFK4EEAAYENzA1AgEBBA7PKc88D5O0kE5GiOuIJKEg
Ax4ABKaggr36NuqixFZQNjVJWaKppNL/3uHxzyTjqyc=
-----END PRIVATE KEY-----
"""  # secp112r1


def test_a_key_of_a_kind_that_nobody_reads_any_more_is_no_bug_of_ours(tmp_path: Path) -> None:
    (tmp_path / "k").touch(0o600)
    (tmp_path / "k").write_text(UNSUPPORTED_CURVE)
    with pytest.raises(ConfigError, match="not a key"):
        load_private_key(tmp_path / "k")


def test_half_a_key_does_not_stand_in_the_way_of_a_whole_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(os, "fsync", full)
        with pytest.raises(ConfigError, match="cannot be written"):
            generate_key(tmp_path / "fleet")
    assert list(tmp_path.iterdir()) == []
    generate_key(tmp_path / "fleet")


def test_a_private_key_does_not_stay_behind_without_its_public_half(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(keys, "write_atomically", full)
    with pytest.raises(ConfigError, match="cannot be written"):
        generate_key(tmp_path / "fleet")
    assert list(tmp_path.iterdir()) == []


def test_the_public_half_in_the_place_of_the_private_one_is_named_as_such(bundle: Path, key: Path) -> None:
    with pytest.raises(ConfigError, match="not a key that can be used") as caught:
        sign_bundle(bundle, public_path(key))
    assert "an Ed25519 private key" in caught.value.details["expected"]


def test_commands_make_keys_and_sign(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = tmp_path / "keys" / "fleet"
    assert command("keys", [str(key)]) == 0
    shown = capsys.readouterr().out
    assert command("keys", [str(key), "--show"]) == 0
    assert capsys.readouterr().out in shown
    assert command("sign", [str(bundle), "--key", str(key)]) == 0
    inline = next(line for line in shown.splitlines() if line.startswith("trusted_keys")).split('"')[1]
    assert load_bundle(bundle, Trust(trusted_keys=(inline,))).signed_by


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_openssl_alone_can_check_a_signature(bundle: Path, key: Path) -> None:
    sign_bundle(bundle, key)
    words = f"openssl pkeyutl -verify -rawin -pubin -inkey {public_path(key)} -sigfile {bundle}/manifest.sig"
    checked = subprocess.run([*words.split(), "-in", str(bundle / "manifest.json")], capture_output=True)
    assert checked.returncode == 0, checked.stderr
    refused = subprocess.run([*words.split(), "-in", str(bundle / "model.onnx")], capture_output=True)
    assert refused.returncode != 0


def test_openssf_model_signing_and_we_vouch_for_the_same_bytes(bundle: Path, tmp_path: Path) -> None:
    """Their library signs the whole folder with its own kind of key; both digests of every file agree."""
    try:
        import model_signing
    except ImportError as error:
        pytest.skip(f"OpenSSF model-signing cannot be imported: {error}")
    from cryptography.hazmat.primitives import serialization as s
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    (tmp_path / "ec").write_bytes(key.private_bytes(s.Encoding.PEM, s.PrivateFormat.PKCS8, s.NoEncryption()))
    public = key.public_key().public_bytes(s.Encoding.PEM, s.PublicFormat.SubjectPublicKeyInfo)
    (tmp_path / "ec.pub").write_bytes(public)
    generate_key(tmp_path / "ours")
    sign_bundle(bundle, tmp_path / "ours")

    described = model_signing.hashing.hash(bundle).resource_descriptors()
    theirs = {item.identifier: item.digest.digest_hex for item in described}
    files = load_bundle(bundle, trust_in(tmp_path / "ours")).manifest.files
    assert {name: record.sha256 for name, record in files.items()}.items() <= theirs.items()

    signature = tmp_path / "openssf.sig"
    signing = model_signing.signing.Config().use_elliptic_key_signer(private_key=tmp_path / "ec")
    signing.sign(bundle, signature)
    verify = model_signing.verifying.Config().use_elliptic_key_verifier(public_key=tmp_path / "ec.pub")
    verify.verify(bundle, signature)
    (bundle / "model.onnx").write_bytes(b"other bytes")
    with pytest.raises(ValueError, match="mismatch"):
        verify.verify(bundle, signature)
    with pytest.raises(BundleError, match="cut or changed"):
        load_bundle(bundle, trust_in(tmp_path / "ours"))
