"""Hostile and damaged bundles: refused before any model, array or setting of theirs is used."""

from __future__ import annotations

import io
import json
import os
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fault_rows import FaultRow
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_bundles import write_small_bundle
from tiny_onnx import SIZE, conv_bytes

from edge_road.bundle import MODEL_FILES, Bundle, Probe, load_bundle, record_files, write_bundle
from edge_road.errors import BundleError
from edge_road.files import sha256
from edge_road.keys import generate_key, public_path
from edge_road.manifest import DEEPEST, parse_manifest
from edge_road.signing import sign_bundle
from edge_road.trust import Trust

pytest.importorskip("cryptography")


FILES = ["manifest.json", "manifest.sig", "probe.npz", "report.json", *MODEL_FILES.values()]


def add_reduced_models(path: Path) -> None:
    """A bundle of every file that an export writes; what the models compute does not matter here."""
    bundle = load_bundle(path)
    float32 = bundle.artefact("float32")
    artefacts = {name: float32.model_copy(update={"file": file}) for name, file in MODEL_FILES.items()}
    models = {file: conv_bytes(seed=number) for number, file in enumerate(MODEL_FILES.values())}
    contents = {**bundle.contents, **models, "report.json": b'{"artefacts": {}}\n'}
    changes = {"artefacts": artefacts, "files": record_files(contents)}
    write_bundle(path, bundle.manifest.model_copy(update=changes), contents)


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Trust]:
    place = tmp_path_factory.mktemp("signed")
    write_small_bundle(place / "bundle", conv_bytes(), size=SIZE, features=8)
    add_reduced_models(place / "bundle")
    generate_key(place / "key")
    sign_bundle(place / "bundle", place / "key")
    return place / "bundle", Trust(trusted_keys=(str(public_path(place / "key")),))


def test_any_single_flipped_byte_in_any_file_is_refused(
    signed: tuple[Path, Trust], fault_row: FaultRow
) -> None:
    path, trust = signed
    contents = {file.name: file.read_bytes() for file in path.iterdir()}
    assert set(contents) == set(FILES)
    places = st.sampled_from(sorted(contents)).flatmap(
        lambda name: st.tuples(st.just(name), st.integers(0, len(contents[name]) - 1), st.integers(1, 255))
    )

    tried = 0

    @settings(max_examples=2000, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(places)
    def flip(place: tuple[str, int, int]) -> None:
        nonlocal tried
        tried += 1
        name, position, change = place
        original = contents[name]
        damaged = bytearray(original)
        damaged[position] ^= change
        (path / name).write_bytes(damaged)
        try:
            with pytest.raises(BundleError):
                load_bundle(path, trust)
        finally:
            (path / name).write_bytes(original)

    flip()
    assert tried >= 2000
    assert load_bundle(path, trust).signed_by
    fault_row(
        16, "one byte changed anywhere", state="-", how="in process", note=f"{tried:,} of {tried:,} refused"
    )


@pytest.mark.parametrize("name", FILES)
def test_a_file_cut_at_any_percent_is_refused(name: str, signed: tuple[Path, Trust]) -> None:
    path, trust = signed
    content = (path / name).read_bytes()
    try:
        for percent in range(100):
            (path / name).write_bytes(content[: len(content) * percent // 100])
            with pytest.raises(BundleError):
                load_bundle(path, trust)
        (path / name).write_bytes(content + b"\n")
        with pytest.raises(BundleError):
            load_bundle(path, trust)
    finally:
        (path / name).write_bytes(content)


def test_a_cut_an_unsigned_and_a_foreign_bundle_are_refused(
    signed: tuple[Path, Trust], tmp_path: Path, fault_row: FaultRow
) -> None:
    path, trust = signed
    signature, cut = (path / "manifest.sig").read_bytes(), 0
    for file in sorted(path.iterdir()):
        content = file.read_bytes()
        for percent in range(0, 100, 4):
            file.write_bytes(content[: len(content) * percent // 100])
            with pytest.raises(BundleError):
                load_bundle(path, trust)
            cut += 1
        file.write_bytes(content)
    (path / "manifest.sig").unlink()
    with pytest.raises(BundleError, match="not signed"):
        load_bundle(path, trust)
    generate_key(tmp_path / "stranger")
    sign_bundle(path, tmp_path / "stranger")
    with pytest.raises(BundleError):
        load_bundle(path, trust)
    (path / "manifest.sig").write_bytes(signature)
    assert load_bundle(path, trust).signed_by
    note = f"{cut} cuts, no signature, a stranger's signature: all refused"
    fault_row(16, "cut, unsigned, signed by a stranger", state="-", how="in process", note=note)


def test_a_file_that_is_gone_is_refused(signed: tuple[Path, Trust]) -> None:
    path, trust = signed
    for file in sorted(path.iterdir()):
        content = file.read_bytes()
        file.unlink()
        with pytest.raises(BundleError):
            load_bundle(path, trust)
        file.write_bytes(content)


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    write_small_bundle(tmp_path / "bundle", conv_bytes(), size=SIZE, features=8)
    return tmp_path / "bundle"


def change_manifest(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    values = json.loads((path / "manifest.json").read_text())
    change(values)
    (path / "manifest.json").write_text(json.dumps(values))


@pytest.mark.parametrize(
    "name",
    [
        "../model.onnx",
        "/etc/hostname",
        "a/b",
        "..",
        ".",
        "",
        "model.onnx\x00.txt",
        "..\\model.onnx",
        "model\n.onnx",
        "\x1b[2Jmodel.onnx",
        "manifest.json",
        "manifest.sig",
        "./model.onnx",
        "model.onnx/",
    ],
)
def test_no_name_leads_out_of_the_folder(name: str, bundle: Path) -> None:
    change_manifest(bundle, lambda v: v["files"].update({name: v["files"]["model.onnx"]}))
    with pytest.raises(BundleError, match="own folder") as caught:
        load_bundle(bundle)
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize("kind", ["pipe", "folder", "endless", "link in a circle"])
def test_what_is_no_file_is_refused_at_once(kind: str, bundle: Path) -> None:
    file = bundle / "model.onnx"
    file.unlink()
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "folder":
        file.mkdir()
    else:
        file.symlink_to("/dev/zero" if kind == "endless" else file)
    with pytest.raises(BundleError):
        load_bundle(bundle)


def test_a_manifest_that_never_ends_is_refused(bundle: Path) -> None:
    (bundle / "manifest.json").unlink()
    (bundle / "manifest.json").symlink_to("/dev/zero")
    with pytest.raises(BundleError):
        load_bundle(bundle)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"recipe":' * 100_000,
        '{"schema_version": 1, "schema_version": 1}',
        '{"schema_version": NaN}',
        '{"schema_version": 1e999}',
        '{"schema_version": ' + "9" * 10_000 + "}",
        '{"schema_version": true}',
        '{"schema_version": 0}',
        '{"schema_version": "1"}',
        "null",
        "",
        "\ufeff{}",
        '"\ud800"',
        "{} {}",
    ],
    ids=range(14),
)
def test_json_that_is_no_manifest_is_refused(text: str) -> None:
    with pytest.raises(BundleError):
        parse_manifest(text.encode(errors="surrogatepass"), Path("manifest.json"))


def test_keys_that_stand_twice_and_deep_values_are_refused_also_inside(bundle: Path) -> None:
    path = bundle / "manifest.json"
    good = path.read_text()
    path.write_text(good.replace('"seed": 0', '"seed": 0, "seed": 0'))
    with pytest.raises(BundleError, match="not valid") as caught:
        load_bundle(bundle)
    assert "twice" in caught.value.details["got"]
    deep: Any = 1
    for _ in range(DEEPEST):
        deep = {"a": deep}
    path.write_text(good)
    change_manifest(bundle, lambda values: values.update(recipe=deep))
    with pytest.raises(BundleError, match="not valid") as caught:
        load_bundle(bundle)
    assert "nested deeper" in caught.value.details["got"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("classes", ["dry", "wet", "lava"]),
        ("classes", ["dry", "wet"]),
        ("classes", []),
        ("seed", "none"),
        ("unknown", 1),
        ("input_shape", [0, 10**9, 10**9]),
        ("artefacts", {"float64": {}}),
    ],
)
def test_a_manifest_with_other_values_is_refused(key: str, value: Any, bundle: Path) -> None:
    change_manifest(bundle, lambda values: values.update({key: value}))
    with pytest.raises(BundleError, match="not valid"):
        load_bundle(bundle)


def test_what_is_wrong_with_a_manifest_is_told_in_one_line_with_a_way_out(bundle: Path) -> None:
    change_manifest(bundle, lambda values: values.update(clases=values.pop("classes")))
    with pytest.raises(BundleError, match="not valid") as caught:
        load_bundle(bundle)
    assert caught.value.details["got"] == "classes: Field required (and 1 more)"
    assert "copy the bundle again" in caught.value.details["to do"]


def test_a_bundle_that_claims_to_be_vast_is_refused_before_it_is_read(bundle: Path) -> None:
    def claim(values: dict[str, Any]) -> None:
        values["files"]["model.onnx"]["size"] = 2**40

    change_manifest(bundle, claim)
    with pytest.raises(BundleError, match="too large"):
        load_bundle(bundle)


def test_centroids_must_fit_the_classes(bundle: Path) -> None:
    change_manifest(bundle, lambda values: values["artefacts"]["float32"]["radii"].pop())
    with pytest.raises(BundleError, match="not valid") as caught:
        load_bundle(bundle)
    assert "centroids and radii of float32" in caught.value.details["got"]


def test_a_bundle_from_the_future_says_so(bundle: Path) -> None:
    change_manifest(bundle, lambda values: values.update(schema_version=2))
    with pytest.raises(BundleError, match="newer kind") as caught:
        load_bundle(bundle)
    assert caught.value.details["to do"] == "update edge_road on this machine"


# ------------------------------------------------------------------------------ probe.npz


def npz(method: int = zipfile.ZIP_DEFLATED, /, **members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return buffer.getvalue()


def npy(array: np.ndarray, allow_pickle: bool = False) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=allow_pickle)
    return buffer.getvalue()


IMAGES = npy(np.zeros((2, *SIZE, 3), np.uint8))
LABELS = npy(np.zeros(2, np.int64))


class Marker:
    """Unpickling it would leave a file behind."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def test_a_pickle_in_an_array_or_in_its_place_never_runs(tmp_path: Path) -> None:
    import pickle  # noqa: TID251  (to attack ourselves with)

    marker = tmp_path / "ran"
    hostile = npy(np.array([Marker(marker)], dtype=object), allow_pickle=True)
    plain = pickle.dumps(Marker(marker))
    for content in (npz(images=hostile, labels=LABELS), plain, hostile, npz(images=plain, labels=LABELS)):
        with pytest.raises(BundleError, match="probe frames"):
            Probe.from_bytes(content)
    assert not marker.exists()


def test_an_archive_that_would_unpack_to_gigabytes_is_not_unpacked() -> None:
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("images.npy", "w", force_zip64=True) as member,
    ):
        for _ in range(17):
            member.write(bytes(16 * 2**20))
    with pytest.raises(BundleError, match="probe frames") as caught:
        Probe.from_bytes(buffer.getvalue())
    assert "would unpack" in caught.value.details["got"]
    assert len(buffer.getvalue()) < 2**20


def test_an_array_that_claims_to_be_vast_reserves_nothing() -> None:
    header = IMAGES.replace(b"(2, 16, 24, 3)", b"(2, 10**9, 3) "[:14])
    vast = IMAGES.replace(b"(2, 16, 24, 3)", b"(99999999, 3,)")
    for content in (header, vast):
        with pytest.raises(BundleError, match="probe frames"):
            Probe.from_bytes(npz(images=content, labels=LABELS))


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_an_archive_that_lies_about_its_sizes_is_not_unpacked(method: int) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        archive.writestr("images.npy", bytes(64 * 2**20))
    lying = bytearray(buffer.getvalue())
    entry = lying.rindex(b"PK\x01\x02")
    lying[entry + 24 : entry + 28] = (128).to_bytes(4, "little")
    tracemalloc.start()
    try:
        with pytest.raises(BundleError, match="probe frames"):
            Probe.from_bytes(bytes(lying))
        assert tracemalloc.get_traced_memory()[1] < 8 * 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_an_archive_with_any_byte_changed_is_a_probe_or_refused(method: int) -> None:
    content = npz(method, images=IMAGES, labels=LABELS)
    for offset in range(len(content)):
        damaged = bytearray(content)
        damaged[offset] ^= 0xFF
        try:
            Probe.from_bytes(bytes(damaged))
        except BundleError:
            continue


@pytest.mark.parametrize(
    "members",
    [
        {"images": IMAGES},
        {"images": npy(np.zeros((2, 8, 8, 3), np.float32)), "labels": LABELS},
        {"images": npy(np.zeros((2, 8, 8), np.uint8)), "labels": LABELS},
        {"images": IMAGES, "labels": npy(np.zeros(3, np.int64))},
        {"images": IMAGES, "labels": npy(np.zeros(2, np.float64))},
        {"images": IMAGES, "labels": LABELS, "logits_int8": npy(np.full((2, 3), np.nan, np.float32))},
        {"images": IMAGES, "labels": LABELS, "logits_int8": npy(np.zeros((1, 3), np.float32))},
        {"images": IMAGES, "labels": LABELS, **{f"more{n}": LABELS for n in range(20)}},
    ],
    ids=range(8),
)
def test_a_probe_of_the_wrong_shape_is_refused(members: dict[str, bytes]) -> None:
    with pytest.raises(BundleError, match="probe frames"):
        Probe.from_bytes(npz(**members))


def test_our_own_probe_passes(bundle: Path) -> None:
    loaded: Bundle = load_bundle(bundle)
    assert loaded.probe().images_NHWC.shape == (4, *SIZE, 3)
    assert sha256(loaded.probe().to_bytes()) == loaded.manifest.files["probe.npz"].sha256
