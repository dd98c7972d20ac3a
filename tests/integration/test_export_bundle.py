"""From a run to a bundle and back, on a small real model; and everything that must stop it."""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
import pytest
from fake_cuda import install_fake_gpu, remove_gpu
from fake_tensorrt import install_fake_tensorrt
from onnx import TensorProto, numpy_helper
from tiny_run import draw_pictures, write_tiny_run

from edge_road.backends.engine_store import store_of
from edge_road.backends.onnxrt import OnnxPredictor
from edge_road.backends.probe_check import PROBE_TOLERANCE
from edge_road.bundle import Bundle, Precision, load_bundle, record_files, write_bundle
from edge_road.cli import command
from edge_road.datasets.decode import read_image
from edge_road.evaluation.smoke import SMOKE_TESTS
from edge_road.export import exporting, onnx_graph
from edge_road.export.footprint import Footprint
from edge_road.export.gate_file import read_verify_file
from edge_road.export.half import to_float16
from edge_road.export.last_bias import FARTHEST
from edge_road.export.onnx_edit import read_model, write_model
from edge_road.export.rtx_check import RtxReport
from edge_road.keys import generate_key, public_path
from edge_road.nn.predictor import load_run
from edge_road.preprocess import Crop
from edge_road.trust import Trust

TARGET = """
name = "test"
[samples]
parity = 24
robustness = 24
[calibration]
images = 48
sensitivity_images = 4
keep_float = 2
"""
QUICK = TARGET.replace('name = "test"', 'name = "test"\ntensorrt = false\nfloat16 = false').replace(
    "keep_float = 2", "keep_float = 0"
)
QUICK += "[machine_limits]\nmeasure = false\n"
NO_TENSORRT = RtxReport("not installed", reasons=("no package",))

# Torch's exporter alone takes ten seconds of one core.
pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with pictures, one finished run and targets."""
    place = tmp_path_factory.mktemp("place")
    write_tiny_run(place / "runs" / "tiny-0001", draw_pictures(place / "pictures"))
    (place / "test.toml").write_text(TARGET)
    (place / "quick.toml").write_text(QUICK)
    return place


@pytest.fixture(scope="module")
def bundle(place: Path) -> Bundle:
    """Exported with everything, TensorRT-RTX included, from the newest run to the default folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EDGE_ROAD_HOME", str(place))
        generate_key(place / "key")
        assert command("to-trt", ["--target", str(place / "test.toml"), "--sign", str(place / "key")]) == 0
    return load_bundle(place / "bundles" / "tiny-0001")


@pytest.fixture
def quick(place: Path, bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the workspace in which torch's slow export is answered from the first one."""
    copy = place.with_name(f"{place.name}-copy")
    shutil.copytree(place, copy, ignore=shutil.ignore_patterns("bundles"))
    monkeypatch.setenv("EDGE_ROAD_HOME", str(copy))
    monkeypatch.setattr(onnx_graph, "export_graph", lambda *_: bundle.model_bytes("float32"))
    yield copy
    shutil.rmtree(copy)


def export_quickly(quick: Path, *arguments: str) -> int:
    run = ["--data", str(quick / "pictures"), "--target", str(quick / "quick.toml"), *arguments]
    return command("to-trt", [str(quick / "runs" / "tiny-0001"), *run])


def test_the_bundle_holds_both_models_and_what_a_vehicle_must_know(bundle: Bundle) -> None:
    manifest = bundle.manifest
    assert set(manifest.artefacts) == {"float32", "float16", "int8"}
    assert manifest.input_shape == (0, 64, 64, 3)
    assert manifest.calibration is not None
    assert manifest.calibration.images == 48
    for artefact in manifest.artefacts.values():
        assert np.array(artefact.centroids).shape == (3, 16)
        assert all(radius > 0 for radius in artefact.radii)
        assert 0.4 <= artefact.confidence_threshold <= 0.8
    assert set(manifest.smoke_limits) == set(SMOKE_TESTS)
    assert len(bundle.probe().labels_N) == 24
    assert set(bundle.probe().logits_NC) == {"float32", "float16", "int8"}
    assert len(json.loads(bundle.contents["report.json"])["sensitivity"]["worst"]) == 10


def test_the_bundle_computes_what_torch_computes(place: Path, bundle: Bundle) -> None:
    images_NHWC = bundle.probe().images_NHWC
    torch_says = load_run(place / "runs" / "tiny-0001").predict(images_NHWC)
    float_says = OnnxPredictor.from_bundle(bundle).predict(images_NHWC)
    int8_says = OnnxPredictor.from_bundle(bundle, "int8").predict(images_NHWC)
    np.testing.assert_allclose(float_says.logits_NC, torch_says.logits_NC, atol=1e-4)
    np.testing.assert_allclose(float_says.features_ND, torch_says.features_ND, atol=1e-4)
    assert (int8_says.labels_N == torch_says.labels_N).mean() >= 0.95
    assert (float_says.labels_N == bundle.probe().labels_N).all()


@pytest.fixture(scope="module")
def photographs(place: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two of each class, larger than the model's input; as PNG, and one of them as JPEG."""
    folder = tmp_path_factory.mktemp("photographs")
    sources = [place / "pictures" / name / f"00{n}.png" for name in ("dry", "icy", "wet") for n in (1, 2)]
    pictures = [cv2.resize(cv2.imread(str(path)), (150, 110)) for path in sources]
    paths = [folder / f"{number}.png" for number in range(len(pictures))] + [folder / "photo.jpg"]
    for path, picture in zip(paths, [*pictures, pictures[0]]):
        cv2.imwrite(str(path), picture)
    return paths


@pytest.mark.parametrize("decoder", ["pil", "opencv"])
@pytest.mark.parametrize("precision", ["float32", "float16", "int8"])
def test_a_program_that_knows_only_the_manifest_gets_the_same_answers(
    place: Path, bundle: Bundle, photographs: list[Path], root: Path, decoder: str, precision: Precision
) -> None:
    """From the picture file to the logits: torch here, the bundle there, to the documented tolerance."""
    consumer = [sys.executable, "-I", str(root / "tests" / "bundle_consumer.py"), str(bundle.path)]
    words = [*consumer, precision, decoder, *map(str, photographs)]
    answer = subprocess.run(words, capture_output=True, check=True, timeout=300)
    prepare = bundle.manifest.preprocessing.prepare
    images_NHWC = np.stack([prepare(read_image(path)) for path in photographs])
    torch_NC = load_run(place / "runs" / "tiny-0001").predict(images_NHWC).logits_NC
    there_NC = np.array(json.loads(answer.stdout))
    tolerance = PROBE_TOLERANCE[precision] * max(1.0, float(np.abs(torch_NC).max()))
    tolerance += FARTHEST if precision == "int8" else 0  # the logits of ice lean on purpose
    np.testing.assert_allclose(there_NC, torch_NC, atol=tolerance)
    assert (there_NC.argmax(axis=1) == torch_NC.argmax(axis=1)).all()


@pytest.mark.parametrize(("fit", "shrink"), [("stretch", "area"), ("cover", "area"), ("stretch", "halves")])
def test_such_a_program_cuts_and_shrinks_as_the_manifest_says(
    fit: str, shrink: str, place: Path, bundle: Bundle, photographs: list[Path], root: Path, tmp_path: Path
) -> None:
    crop = Crop(left=0.13, top=0.29, right=0.97)
    cut = bundle.manifest.preprocessing.model_copy(update={"crop": crop, "fit": fit, "shrink": shrink})
    manifest = bundle.manifest.model_copy(update={"preprocessing": cut})
    write_bundle(tmp_path / "cut", manifest, bundle.contents)
    consumer = [sys.executable, "-I", str(root / "tests" / "bundle_consumer.py"), str(tmp_path / "cut")]
    words = [*consumer, "float32", "opencv", *map(str, photographs)]
    answer = subprocess.run(words, capture_output=True, check=True, timeout=300)
    images_NHWC = np.stack([cut.prepare(read_image(path)) for path in photographs])
    torch_NC = load_run(place / "runs" / "tiny-0001").predict(images_NHWC).logits_NC
    np.testing.assert_allclose(np.array(json.loads(answer.stdout)), torch_NC, atol=1e-3)


def test_probabilities_are_cooled_by_the_temperature_of_their_own_model(bundle: Bundle) -> None:
    for precision, artefact in bundle.manifest.artefacts.items():
        answer = OnnxPredictor.from_bundle(bundle, precision).predict(bundle.probe().images_NHWC)
        powers_NC = np.exp(answer.logits_NC / artefact.temperature)
        expected_NC = powers_NC / powers_NC.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(answer.probabilities_NC, expected_NC, atol=1e-5)


def test_nothing_in_the_bundle_tells_where_it_was_made(place: Path, bundle: Bundle, root: Path) -> None:
    for name, content in bundle.contents.items():
        for secret in (str(place), str(root), "site-packages", "stack_trace"):
            assert secret.encode() not in content, name
    assert str(place) not in (bundle.path / "manifest.json").read_text()


@pytest.mark.slow
def test_a_second_export_of_the_run_has_the_same_digest(
    place: Path, bundle: Bundle, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "again"
    run, target = place / "runs" / "tiny-0001", place / "test.toml"
    assert command("to-trt", [str(run), "--target", str(target), "--out", str(out)]) == 0
    assert load_bundle(out).digest == bundle.digest
    text = capsys.readouterr().out
    assert "gate: int8 released" in text
    assert "On the device: copy the bundle and run edge-road engine build" in text
    in_float = json.loads(bundle.contents["report.json"])["artefacts"]["int8"]["tensorrt_rtx"]["int8_work"]
    assert text.count("not INT8: ") == (2 if in_float else 0)  # keep_float; without TensorRT-RTX nobody knows


def test_a_refused_int8_model_stays_out_and_the_float_one_is_the_fallback(
    quick: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Every activation cut off at its median, and the weights not fitted to that.
    harsh = QUICK.replace(
        "keep_float = 0", 'keep_float = 0\nrefit = false\nmethod = "percentile"\npercentile = 51.0'
    )
    (quick / "quick.toml").write_text(harsh)
    assert export_quickly(quick, "--accept-fallback") == 0
    made = load_bundle(quick / "bundles" / "tiny-0001")
    assert list(made.manifest.artefacts) == ["float32"]
    assert made.manifest.calibration is None
    assert "model.int8.onnx" not in made.contents
    report = json.loads(made.contents["report.json"])
    assert not report["artefacts"]["int8"]["released"]
    text = capsys.readouterr().out
    assert "gate: int8 REFUSED, not in the bundle; instead of it: float32" in text
    verdicts = json.loads((quick / "bundles" / "tiny-0001.verify.json").read_text())
    assert verdicts["bundle_digest"] == made.digest
    assert not verdicts["artefacts"]["int8"]["released"]
    assert report["artefacts"]["int8"]["reasons"][0] in text
    assert command("verify", [str(made.path)]) == 0
    assert "int8 was refused at export" in capsys.readouterr().out


def test_a_missing_tensorrt_is_told_and_stored(
    quick: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(exporting, "rtx_check", lambda *_: NO_TENSORRT)
    (quick / "quick.toml").write_text(QUICK.replace("tensorrt = false", "tensorrt = true"))
    assert export_quickly(quick) == 0
    text = capsys.readouterr().out
    assert "gate: TensorRT-RTX not asked: no package; the INT8 share was not judged" in text
    assert "0 of 0" not in text
    report = json.loads(load_bundle(quick / "bundles" / "tiny-0001").contents["report.json"])
    stored = report["artefacts"]["int8"]["tensorrt_rtx"]
    assert (stored["status"], stored["reasons"]) == ("not installed", ["no package"])
    assert stored["int8_share"] is None


def test_a_target_may_require_tensorrt(
    quick: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(exporting, "rtx_check", lambda *_: NO_TENSORRT)
    (quick / "quick.toml").write_text(QUICK.replace("tensorrt = false", 'tensorrt = "required"'))
    assert export_quickly(quick) == 4
    assert "no package" in capsys.readouterr().err
    assert not (quick / "bundles").exists()


def test_models_that_overflow_stay_out_and_the_float_one_is_the_fallback(
    quick: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def overflowing(*arguments: object) -> bytes:
        model = read_model(to_float16(*arguments))  # type: ignore[arg-type]
        for tensor in model.graph.initializer:
            if tensor.data_type == TensorProto.FLOAT16:
                values = np.full(tuple(tensor.dims), 6e4, np.float16)
                tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
        return write_model(model)

    monkeypatch.setattr(exporting, "to_float16", overflowing)
    (quick / "quick.toml").write_text(QUICK.replace("float16 = false", "float16 = true"))
    assert export_quickly(quick) == 6
    captured = capsys.readouterr()
    for name in ("float16", "int8"):
        assert f"gate: {name} REFUSED, not in the bundle; instead of it: float32" in captured.out
        assert f"float32 instead of {name}" in captured.err
    made = load_bundle(quick / "bundles" / "tiny-0001")
    assert list(made.manifest.artefacts) == ["float32"]
    report = json.loads(made.contents["report.json"])["artefacts"]
    assert report["float16"]["reasons"] == report["int8"]["reasons"] == ["its outputs are not finite"]


def heavy_inputs(bundle: Bundle) -> list[str]:
    graph = read_model(bundle.model_bytes("int8")).graph
    return [name for node in graph.node if node.op_type in ("Conv", "Gemm") for name in node.input[:2]]


def test_trained_with_int8_every_layer_is_int8_and_the_labels_stay(
    quick: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (quick / "quick.toml").write_text(QUICK.replace("robustness = 24", "robustness = 24\ngeometry = 24"))
    assert export_quickly(quick, "--qat", "1") == 0
    text = capsys.readouterr().out
    assert "train INT8" in text
    assert "1 epochs, error" in text
    made = load_bundle(quick / "bundles" / "tiny-0001")
    assert made.manifest.calibration is not None
    assert made.manifest.calibration.method.endswith("1 epochs of training")
    assert all(name.endswith("_dq") for name in heavy_inputs(made))
    checks = read_verify_file(quick / "bundles" / "tiny-0001.verify.json").artefacts["int8"].checks
    assert {check.name: check.value for check in checks}["agreement with float"] >= 0.95


def test_every_layer_int8_without_training(quick: Path) -> None:
    (quick / "quick.toml").write_text(QUICK.replace("tensorrt =", 'quantization = "all"\ntensorrt ='))
    assert export_quickly(quick) == 0
    assert all(name.endswith("_dq") for name in heavy_inputs(load_bundle(quick / "bundles" / "tiny-0001")))


def test_no_epochs_of_training_are_a_mistake(quick: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert export_quickly(quick, "--qat", "0") == 2
    assert "--qat" in capsys.readouterr().err


def test_a_machine_too_slow_for_the_limits_refuses_the_model_and_the_digest_holds_no_time(
    quick: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    times = iter([5.0, 50.0])
    measured = lambda *_: Footprint(latency_ms=next(times), memory_mb=90)  # noqa: E731
    monkeypatch.setattr(exporting, "footprint", measured)
    limits = "measure = true\nlatency_ms = 20.0"
    (quick / "quick.toml").write_text(QUICK.replace("measure = false", limits))
    assert export_quickly(quick) == 6
    assert "time of an image here, ms 50 (at most 20)" in capsys.readouterr().out
    made = load_bundle(quick / "bundles" / "tiny-0001")
    assert list(made.manifest.artefacts) == ["float32"]
    report = json.loads(made.contents["report.json"])["artefacts"]["int8"]
    assert report["released"] is False
    assert "50" not in " ".join(report["reasons"])
    assert command("verify", [str(made.path)]) == 0
    assert "int8 was refused at export: beyond the limits of the machine" in capsys.readouterr().out
    assert (quick / "bundles" / "tiny-0001.verify.html").read_text().count("<svg") == 2


def test_a_machine_too_slow_for_the_float_model_says_what_to_do(
    quick: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(exporting, "footprint", lambda *_: Footprint(latency_ms=2000.0, memory_mb=90))
    (quick / "quick.toml").write_text(QUICK.replace("measure = false", "measure = true"))
    assert export_quickly(quick) == 6
    assert "wider machine_limits in the target" in capsys.readouterr().err
    assert not (quick / "bundles").exists()


def test_a_refused_model_is_exit_6_and_the_bundle_and_its_engine_are_made_of_the_others(
    quick: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install_fake_gpu(monkeypatch)
    install_fake_tensorrt(monkeypatch)
    (quick / "quick.toml").write_text(QUICK + "[int8_limits]\nsize_share = 0.01\n")
    assert export_quickly(quick) == 6
    told = capsys.readouterr().err
    assert "refused and not in the bundle: int8" in told
    assert "int8: file size against float" in told
    assert "float32 instead of int8 with --accept-fallback" in told
    made = load_bundle(quick / "bundles" / "tiny-0001")
    assert list(made.manifest.artefacts) == ["float32"]
    assert [record.key.precision for record in store_of(made.path).records()] == ["float32"]


def test_a_refused_float_model_leaves_no_bundle(quick: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (quick / "quick.toml").write_text(QUICK + "[float_limits]\nlogit_difference = 1e-30\n")
    assert export_quickly(quick) == 6
    assert "largest logit difference" in capsys.readouterr().err
    assert not (quick / "bundles").exists()


def test_changed_pictures_are_noticed(quick: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (quick / "pictures" / "dry" / "000.png").rename(quick / "pictures" / "icy" / "zzz.png")
    assert export_quickly(quick) == 2
    assert "have changed since the run was trained" in capsys.readouterr().err


def test_changed_weights_and_unfinished_runs_are_noticed(
    quick: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = quick / "runs" / "tiny-0001"
    weights = bytearray((run / "best.safetensors").read_bytes())
    weights[-1] ^= 1
    (run / "best.safetensors").write_bytes(weights)
    assert export_quickly(quick) == 2
    assert "weights" in capsys.readouterr().err
    (run / "run.json").unlink()
    assert export_quickly(quick) == 2
    assert "not a finished run" in capsys.readouterr().err
    assert not (quick / "bundles").exists()


@pytest.mark.parametrize("manifest", [False, True])
def test_a_folder_of_the_user_is_never_replaced(
    manifest: bool, quick: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    precious = quick / "photos"
    precious.mkdir()
    (precious / "wedding.jpg").write_bytes(b"x")
    if manifest:  # web applications and browser extensions have one too
        (precious / "manifest.json").write_text("{}")
    assert export_quickly(quick, "--out", str(precious)) == 3
    assert "something else" in capsys.readouterr().err
    assert (precious / "wedding.jpg").read_bytes() == b"x"


def test_a_place_that_cannot_be_written_is_told_before_the_work(
    quick: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting, "export_run", None)
    (quick / "file").touch()
    assert export_quickly(quick, "--out", str(quick / "file" / "bundle")) == 3
    assert "the bundle cannot be written" in capsys.readouterr().err


def test_an_older_bundle_is_replaced_as_a_whole(quick: Path, bundle: Bundle) -> None:
    shutil.copytree(bundle.path, quick / "bundles" / "tiny-0001")
    (quick / "quick.toml").write_text(QUICK + "\n[int8_limits]\n" + "recall_drop = 1.0\n")
    assert export_quickly(quick) == 0
    made = load_bundle(quick / "bundles" / "tiny-0001")
    assert made.digest != bundle.digest
    names = sorted(path.name for path in (quick / "bundles").iterdir())
    assert names == ["tiny-0001", "tiny-0001.verify.html", "tiny-0001.verify.json"]


def test_a_full_disk_leaves_nothing_behind(quick: Path, capsys: pytest.CaptureFixture[str]) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        code = export_quickly(quick)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert code == 3
    assert "cannot be written" in capsys.readouterr().err
    assert not list((quick / "bundles").iterdir())


def test_verdicts_that_cannot_be_written_are_told_and_the_bundle_is_there(
    quick: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (quick / "bundles" / "tiny-0001.verify.json").mkdir(parents=True)
    assert export_quickly(quick) == 3
    assert "not the verdicts beside it" in capsys.readouterr().err
    assert load_bundle(quick / "bundles" / "tiny-0001").manifest.artefacts


def test_ctrl_c_leaves_nothing_behind(quick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(exporting, "measure", interrupted)
    assert export_quickly(quick) == 130
    assert not (quick / "bundles").exists()


def test_the_bundle_is_signed_by_who_exported_it(bundle: Bundle, place: Path) -> None:
    assert bundle.trust_text == "signature not checked"
    trusted = Trust(trusted_keys=(str(public_path(place / "key")),))
    assert load_bundle(bundle.path, trusted).signed_by


def test_a_key_that_cannot_be_used_fails_before_any_work(
    quick: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert export_quickly(quick, "--sign", str(quick / "nothing")) == 2
    assert "a key file cannot be read" in capsys.readouterr().err
    assert not (quick / "bundles").exists()


def test_a_required_engine_without_a_gpu_fails_before_any_work(
    quick: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    remove_gpu(monkeypatch)
    assert export_quickly(quick, "--require-engine") == 4
    captured = capsys.readouterr()
    assert "no NVIDIA GPU" in captured.err
    assert captured.out == ""


def test_on_a_device_a_bundle_becomes_engines(
    bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    copied = Path(shutil.copytree(bundle.path, tmp_path / "tiny"))
    install_fake_gpu(monkeypatch)
    install_fake_tensorrt(monkeypatch)
    assert command("to-trt", [str(copied), "--require-engine", "--target", "jetson_orin_nano"]) == 0
    records = store_of(copied).records()
    assert {record.key.precision for record in records} == set(bundle.manifest.artefacts)
    assert all(record.off_by is not None for record in records)
    assert load_bundle(copied).digest == bundle.digest
    text = capsys.readouterr().out
    assert "build int8 engine" in text
    assert "best here: " in text


def test_verify_shows_what_the_bundle_keeps(
    place: Path, bundle: Bundle, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("verify", [str(bundle.path), "--data", str(place / "pictures")]) == 0
    text, anew = capsys.readouterr().out.split("120 images")
    assert bundle.digest in text
    assert text.count("passed") == 3
    assert "gate at export" in text
    assert "int8 against float32" in anew
    assert anew.count("agreement under perturbation") == 2
    assert "BREACHED" not in anew


def test_verify_refuses_a_model_that_is_beyond_its_limits_on_these_images(
    place: Path, bundle: Bundle, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = json.loads(bundle.contents["report.json"])
    report["target"]["int8_limits"]["size_share"] = 0.01
    contents = {**bundle.contents, "report.json": json.dumps(report).encode()}
    manifest = bundle.manifest.model_copy(update={"files": record_files(contents)})
    write_bundle(tmp_path / "strict", manifest, contents)
    assert command("verify", [str(tmp_path / "strict")]) == 0
    assert command("verify", [str(tmp_path / "strict"), "--data", str(place / "pictures")]) == 6
    captured = capsys.readouterr()
    assert "BREACHED        file size against float" in captured.out
    assert "int8: file size against float" in captured.err


def test_verify_names_files_that_are_not_the_bundles(
    bundle: Bundle, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = Path(shutil.copytree(bundle.path, tmp_path / "more"))
    assert command("verify", [str(more)]) == 0
    assert "never read" not in capsys.readouterr().out
    (more / "notes.txt").write_text("x")
    assert command("verify", [str(more)]) == 0
    assert "not the bundle's and never read: notes.txt" in capsys.readouterr().out


def test_verify_refuses_a_cut_file_and_a_bundle_below_its_gate(
    bundle: Bundle, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cut = Path(shutil.copytree(bundle.path, tmp_path / "cut"))
    (cut / "model.onnx").write_bytes(bundle.contents["model.onnx"][:-10])
    assert command("verify", [str(cut)]) == 3
    report = json.loads(bundle.contents["report.json"])
    report["artefacts"]["int8"]["verdict"]["checks"][0]["value"] = 0.5
    contents = {**bundle.contents, "report.json": json.dumps(report).encode()}
    manifest = bundle.manifest.model_copy(update={"files": record_files(contents)})
    write_bundle(tmp_path / "below", manifest, contents)
    assert command("verify", [str(tmp_path / "below")]) == 6
    assert "agreement with float 0.5" in capsys.readouterr().err


def test_verify_refuses_a_model_that_gives_other_outputs(bundle: Bundle, tmp_path: Path) -> None:
    """The hashes fit, so only the golden vectors can tell."""
    contents = {**bundle.contents, "model.onnx": bundle.contents["model.int8.onnx"]}
    manifest = bundle.manifest.model_copy(update={"files": record_files(contents)})
    write_bundle(tmp_path / "swapped", manifest, contents)
    assert command("verify", [str(tmp_path / "swapped")]) == 4


def test_to_onnx_writes_one_checked_file(quick: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = quick / "runs" / "tiny-0001"
    assert command("to-onnx", ["--data", str(quick / "pictures"), "--target", str(quick / "test.toml")]) == 0
    content = (run / "model.onnx").read_bytes()
    predictor = OnnxPredictor(content, load_run(run).classes, (64, 64), name="file")
    assert len(predictor.predict(np.zeros((2, 64, 64, 3), np.uint8))) == 2
    assert "fit temperature" in capsys.readouterr().out


@pytest.mark.parametrize("where", ["file/model.onnx", "folder"])
def test_to_onnx_tries_its_place_before_the_work(
    where: str, quick: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (quick / "file").touch()
    (quick / "folder").mkdir()
    assert command("to-onnx", ["--out", str(quick / where), "--target", str(quick / "test.toml")]) == 2
    said = capsys.readouterr()
    assert "the model cannot be written" in said.err
    assert "export ONNX" not in said.out
