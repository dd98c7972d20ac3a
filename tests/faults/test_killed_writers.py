"""A process killed at any step of writing a bundle, a signature or an engine: old or new, never a mixture."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from small_bundles import write_small_bundle
from tiny_onnx import SIZE, conv_bytes

from edge_road import files
from edge_road.backends.engine_store import EngineRecord, EngineStore, wanted_key
from edge_road.bundle import load_bundle, write_bundle
from edge_road.errors import BundleError
from edge_road.files import sha256
from edge_road.keys import generate_key, public_path
from edge_road.signing import sign_bundle, signer
from edge_road.trust import Trust

pytest.importorskip("cryptography")
MOST_STEPS = 40
STEPS = ("fsync", "replace", "rename", "open", "close")


def killed_at(step: int, write: Callable[[], object]) -> bool:
    """Run `write` in a child that ends, without any clean-up, before its call number `step` to the disk."""
    child = os.fork()
    if child == 0:
        count = 0

        def counting(call: Callable[..., object]) -> Callable[..., object]:
            def counted(*arguments: object, **options: object) -> object:
                nonlocal count
                count += 1
                if count == step:
                    os._exit(1)
                return call(*arguments, **options)

            return counted

        for name in STEPS:
            setattr(files.os, name, counting(getattr(os, name)))
        files._exchange = counting(files._exchange)
        try:
            write()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1


def every_step(
    prepare: Callable[[], None], write: Callable[[], object], check: Callable[[], object]
) -> set[object]:
    """What `check` finds after a kill at each step, until one run goes through."""
    found: set[object] = set()
    for step in range(1, MOST_STEPS):
        prepare()
        was_killed = killed_at(step, write)
        found.add(check())
        if not was_killed:
            return found
    raise AssertionError(f"more than {MOST_STEPS} steps")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    generate_key(tmp_path / "key")
    for name, seed in (("old", 0), ("new", 1)):
        write_small_bundle(tmp_path / name, conv_bytes(seed=seed), size=SIZE, features=8)
    return tmp_path


def trust_of(place: Path) -> Trust:
    return Trust(trusted_keys=(str(public_path(place / "key")),))


def test_a_signed_bundle_replaces_another_whole_or_not_at_all(place: Path) -> None:
    old, new = (load_bundle(place / name) for name in ("old", "new"))
    sign, bundle = signer(place / "key"), place / "bundle"
    found = every_step(
        lambda: write_bundle(bundle, old.manifest, old.contents, sign) and None,
        lambda: write_bundle(bundle, new.manifest, new.contents, sign),
        lambda: load_bundle(bundle, trust_of(place)).digest,
    )
    assert found == {old.digest, new.digest}
    assert not list(place.glob(".bundle.*")), "the next writer removes what a killed one left"


def test_a_signature_is_there_whole_or_not_at_all(place: Path) -> None:
    def state() -> str:
        load_bundle(place / "old")  # the bundle itself is never touched
        try:
            load_bundle(place / "old", trust_of(place))
        except BundleError as error:
            return error.what
        return "signed"

    found = every_step(
        lambda: (place / "old" / "manifest.sig").unlink(missing_ok=True),
        lambda: sign_bundle(place / "old", place / "key"),
        state,
    )
    assert found == {"the bundle is not signed", "signed"}


def test_an_engine_replaces_another_whole_or_not_at_all(place: Path) -> None:
    store = EngineStore(place / "engines")
    key = wanted_key(load_bundle(place / "old"), "float32", tensorrt="10.3.0", gpu="Orin", compute="8.7")

    def put(plan: bytes) -> None:
        record = EngineRecord(key=key, plan_sha256=sha256(plan), plan_bytes=len(plan))
        store.write_plan(record, plan)
        store.put_in_use(record)

    def in_use() -> bytes:
        record = store.find(key)
        assert record is not None
        return store.read_plan(record)

    assert every_step(lambda: put(b"old plan"), lambda: put(b"new plan"), in_use) == {
        b"old plan",
        b"new plan",
    }
