"""From a recipe to a finished run, and from a mistake to a message."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from noise_pictures import write_noise

from edge_road import cli
from edge_road.datasets import load_prepared, open_dataset
from edge_road.files import sha256
from edge_road.nn.predictor import load_run
from edge_road.run_record import load_recipe, load_record

RECIPE = """
name = "tiny"
seed = 3
[data]
kind = "synthetic"
train = 12
validation = 6
test = 6
height = 48
width = 64
[input]
height = 32
width = 48
crop = { top = 0.25 }
[model]
backbone = "mobilenetv3_small_050"
features = 8
[method]
name = "softmax"
[training]
epochs = 2
batch_size = 4
threads = 1
"""

Train = Callable[..., int]


@pytest.fixture
def train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Train:
    """`train(...)` in an empty workspace; the recipe is ours unless the arguments name one."""
    monkeypatch.setenv("EDGE_ROAD_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.toml").write_text(RECIPE)

    def run(*arguments: str, recipe: str | None = "tiny.toml") -> int:
        return cli.command("train", [*(["--recipe", recipe] if recipe else []), *arguments])

    return run


def photographs(folder: Path, classes: tuple[str, ...] = ("dry", "wet", "icy")) -> Path:
    return write_noise(folder, dict.fromkeys(classes, 5), side=40)


def test_a_finished_run_tells_all_that_evaluation_and_export_need(
    train: Train, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train() == 0
    run = tmp_path / "runs" / "tiny-0001"
    record = load_record(run)
    assert record.classes == ("dry", "wet", "icy")
    assert (record.preprocessing.height, record.preprocessing.width) == (32, 48)
    assert record.preprocessing.crop.top == 0.25
    assert (record.method, record.seed, record.epochs) == ("softmax", 3, 2)
    assert record.weights_sha256 == sha256((run / "best.safetensors").read_bytes())
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert record.validation_accuracy == max(line["validation_accuracy"] for line in lines)
    assert lines[record.best_epoch - 1]["validation_accuracy"] == record.validation_accuracy
    said = capsys.readouterr().out
    for words in (str(run), "python training/evaluate_road.py", "python export/to_trt.py"):
        assert words in said


def test_the_weights_of_a_run_give_the_accuracy_that_its_record_claims(train: Train, tmp_path: Path) -> None:
    assert train() == 0
    run = tmp_path / "runs" / "tiny-0001"
    record, recipe = load_record(run), load_recipe(run)
    images_NHWC, labels_N = load_prepared(open_dataset(recipe.data), "validation", record.preprocessing)
    accuracy = (load_run(run).predict(images_NHWC).labels_N == labels_N).mean()
    assert accuracy == pytest.approx(record.validation_accuracy)


def test_training_learns_nothing_from_a_test_picture(train: Train, tmp_path: Path) -> None:
    data = photographs(tmp_path / "photos")
    assert train("--data", "photos") == 0
    runs = [tmp_path / "runs" / f"tiny-000{number}" for number in (1, 2)]
    for key in keys_to_test_on(runs[0]):
        (data / key).write_bytes((data / "dry" / "0.png").read_bytes())
    assert train("--data", "photos") == 0
    for name in ("best.safetensors", "run.json"):
        assert (runs[0] / name).read_bytes() == (runs[1] / name).read_bytes()


def test_a_damaged_test_picture_is_told_before_the_training_and_one_in_its_place_is_taken(
    train: Train, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = photographs(tmp_path / "photos")
    assert train("--data", "photos") == 0
    damaged = data / keys_to_test_on(tmp_path / "runs" / "tiny-0001")[0]
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[:100])
    assert train("--data", "photos") == 2
    said = capsys.readouterr().err
    for words in ("the test split", str(damaged), "under the same names"):
        assert words in said
    assert cli.command("evaluate", ["tiny-0001", "--perturbations", ""]) == 2
    assert "the test split" in capsys.readouterr().err
    damaged.write_bytes(whole)
    assert cli.command("evaluate", ["tiny-0001", "--perturbations", ""]) == 0


def keys_to_test_on(run: Path) -> tuple[str, ...]:
    return open_dataset(load_recipe(run).data).splits["test"].keys


def test_large_data_read_from_disk_trains_the_same_weights(train: Train, tmp_path: Path) -> None:
    photographs(tmp_path / "photos")
    assert train("--data", "photos") == 0
    assert train("--data", "photos", "--set", "training.memory_gb=0") == 0
    in_memory, on_disk = (tmp_path / "runs" / f"tiny-000{n}" / "best.safetensors" for n in (1, 2))
    assert in_memory.read_bytes() == on_disk.read_bytes()


def test_a_finished_run_is_not_trained_again(
    train: Train, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train("--run", "mine") == 0
    before = (tmp_path / "mine" / "run.json").stat().st_mtime_ns
    assert train("--run", "mine", recipe=None) == 0
    assert (tmp_path / "mine" / "run.json").stat().st_mtime_ns == before
    assert capsys.readouterr().out.count("finished:") == 2


def test_a_run_of_another_recipe_is_refused(
    train: Train, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train("--run", "mine") == 0
    assert train("--run", "mine", "--epochs", "9") == 2
    assert "training.epochs differ" in capsys.readouterr().err


def test_interrupted_by_hand_it_says_how_to_continue(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from edge_road.training.trainer import Trainer

    with monkeypatch.context() as patch:
        train_epoch = Trainer._train_epoch
        patch.setattr(Trainer, "_train_epoch", lambda s, e: train_epoch(s, e) if e == 0 else press_ctrl_c())
        assert train() == 130
    assert f"--run {tmp_path}/runs/tiny-0001" in capsys.readouterr().err
    assert train("--resume", recipe=None) == 0
    assert "continuing after epoch 1" in capsys.readouterr().out


def press_ctrl_c() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--set", "optimizer.learning_rat=1"], ["unknown key", "did you mean 'learning_rate'?"]),
        (["--set", "optimizer.learning_rate=fast"], ["optimizer.learning_rate", "number"]),
        (["--data", "nowhere"], ["nowhere"]),
        (["--data", "misspelt"], ["'wet' has no folder", "did you mean 'wett'?"]),
        (["--data", "empty_class"], ["'icy' has no pictures"]),
        (["--data", "unreadable"], ["cannot be used", "dry/"]),
        (["--weights", "absent.safetensors"], ["cannot read the weights", "absent.safetensors"]),
        (["--weights", "wrong.safetensors"], ["the weights are not those of this model"]),
        (["--set", "model.backbone='mobilenetv3_smal_050'"], ["mobilenetv3_smal_050"]),
        (["--method", "sofmax"], ["softmax"]),
        (["--set", "training.device='cuda'"], ["no CUDA device"]),
        (["--resume"], ["there is no unfinished run"]),
    ],
)
def test_a_mistake_gives_a_message_and_leaves_nothing_behind(
    train: Train,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    words: list[str],
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    photographs(tmp_path / "misspelt", ("dry", "wett", "icy"))
    photographs(tmp_path / "empty_class", ("dry", "wet"))
    (tmp_path / "empty_class" / "icy").mkdir()
    for picture in (photographs(tmp_path / "unreadable") / "dry").iterdir():
        picture.write_bytes(b"not a picture")
    (tmp_path / "wrong.safetensors").write_bytes(_some_tensors())
    assert train(*arguments) == 2
    said = capsys.readouterr().err
    for word in words:
        assert word in said
    assert "Traceback" not in said
    assert not list(tmp_path.glob("runs/*"))


def _some_tensors() -> bytes:
    import torch
    from safetensors.torch import save

    content: bytes = save({"conv.weight": torch.zeros(2)})
    return content


def test_help_is_short_quick_and_has_examples(root: Path) -> None:
    script = root / "training" / "train_road.py"
    done = subprocess.run([sys.executable, str(script), "--help"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) <= 30
    assert done.stdout.count("python training/train_road.py") == 2
    imports = "import sys, edge_road.training.main; exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", imports], timeout=60, cwd=root).returncode == 0
