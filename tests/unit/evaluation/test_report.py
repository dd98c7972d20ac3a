"""The report shows what was computed, says what was not, and needs nothing from outside."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from edge_road.backends.fake import NAN_COLOR, FakePredictor
from edge_road.conditions import ROAD_CLASSES, RSCD_CLASSES, ClassList
from edge_road.errors import ConfigError
from edge_road.evaluation.abstention import abstention
from edge_road.evaluation.comparison import Comparison
from edge_road.evaluation.judge import judge
from edge_road.evaluation.page import render_page
from edge_road.evaluation.perturbations import SUITES
from edge_road.evaluation.report import Entry, PictureSet, Report, Subject, load_report, write_report
from edge_road.evaluation.report_text import as_text
from edge_road.evaluation.significance import Difference
from edge_road.frames import Images
from edge_road.predictor import Predictor

pytest.importorskip("jinja2")  # pages are made where models are trained

LEVELS = (60, 120, 200)


def pictures(labels: list[int], levels: tuple[int, ...] = LEVELS) -> tuple[Images, np.ndarray]:
    images_NHWC = np.empty((len(labels), 32, 32, 3), np.uint8)
    for position, label in enumerate(labels):
        images_NHWC[position] = levels[label]
    return images_NHWC, np.array(labels)


def entry_of(
    images: tuple[Images, np.ndarray],
    conditions: tuple[str, ...] = ("gaussian_10", "dark"),
    predictor: Predictor | None = None,
    name: str = "road-0001",
) -> Entry:
    subject = Subject(
        name=name,
        kind="run",
        sha256="a" * 64,
        method="softmax",
        seed=3,
        recipe_digest="b" * 64,
        git_commit=None,
        version="0.1.0",
    )
    keys = [f"photo/{i}.jpg" for i in range(len(images[1]))]
    evaluation = judge(predictor or FakePredictor(), *images, conditions, runs=2, keys=keys)
    return Entry(subject=subject, evaluation=evaluation)


def report_of(*entries: Entry) -> Report:
    return Report(
        test_set=PictureSet(kind="folder", split="test", digest="c" * 64, as_trained=True), entries=entries
    )


class Text(HTMLParser):
    """What a reader sees, and every address that a browser would fetch."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.addresses: list[str] = []
        self.attributes: set[str] = set()
        self.hidden = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.hidden = tag in ("style", "script", "title")
        self.attributes |= {name for name, _ in attrs}
        self.addresses += [
            value or "" for name, value in attrs if name in ("src", "href", "xlink:href", "data")
        ]

    def handle_data(self, data: str) -> None:
        if not self.hidden and data.strip():
            self.words.append(data.strip())

    @property
    def all(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.words))


def test_headline_table_and_provenance_are_the_computed_numbers() -> None:
    images = pictures([0, 1, 2, 2, 2, 2])
    images[0][5] = LEVELS[0]  # an icy picture that looks dry
    text = Text(render_page(report_of(entry_of(images)), [images[0]])).all
    assert "25.0 % danger rate of 4 icy pictures" in text
    assert "83.3 % accuracy on clean pictures" in text
    assert "16.7 % accuracy under the worst perturbation 30 % of the light" in text
    assert "said dry, 100 %" in text
    assert "photo/5.jpg" in text
    for fact in ("c" * 64, "a" * 64, "b" * 64, "training seed 3", "edge_road 0.1.0", "2 seeded runs"):
        assert fact in text


def test_a_class_without_pictures_gets_no_number() -> None:
    images = pictures([0, 1, 0, 1])
    text = Text(
        render_page(
            report_of(
                entry_of(images, conditions=()),
            ),
            [images[0]],
        )
    ).all
    assert "– danger rate not measured: no icy pictures" in text
    assert "icy 0 –" in text
    assert "– accuracy under the worst perturbation not measured: no perturbations" in text
    assert "Accuracy against noise" not in text
    assert "None of 4." in text
    assert "nan" not in text.lower()


def test_every_percentage_on_the_page_was_computed() -> None:
    """Each number with a percent sign is a value of report.json, rounded, or a fixed phrase."""
    images = pictures([0, 1, 2, 2, 0, 1, 1])
    images[0][0] = 88
    report = report_of(entry_of(images, conditions=("gaussian_60", "occlusion", "dark")))
    shown = set(re.findall(r"(\d+\.\d) %", Text(render_page(report, [images[0]])).all))
    known = {f"{100 * float(number):.1f}" for number in re.findall(r": (\d\.\d+)", report.to_json())}
    assert shown
    assert shown <= known


def test_outputs_that_are_not_finite_are_shown_as_such() -> None:
    images = pictures([0, 1, 2])
    images[0][1] = NAN_COLOR
    text = Text(render_page(report_of(entry_of(images, conditions=())), [images[0]])).all
    assert "outputs not finite 1" in text
    assert "no finite output" in text
    assert "no answer" in text


def test_a_ring_is_explained_where_there_is_one() -> None:
    images = pictures([0, 1, 2] * 4)
    prediction = FakePredictor().predict(images[0])
    for threshold in (None, 0.6):
        found = abstention(prediction, images[1], ROAD_CLASSES, threshold)
        entry = entry_of(images).model_copy(update={"abstention": found})
        text = Text(render_page(report_of(entry, entry_of(images)), [images[0]] * 2)).all
        assert "What answering “unknown” costs" in text
        assert ("○" in text) == ("A ring" in text) == (threshold is not None)


def test_the_page_is_self_contained() -> None:
    images = pictures([0, 1, 2, 2])
    images[0][0] = 210
    page = render_page(report_of(entry_of(images), entry_of(images, name="road-0002")), [images[0]] * 2)
    assert "http://" not in page
    assert "https://" not in page
    assert "url(" not in re.sub(r"url\(#", "", page)
    assert "<script" not in page
    addresses = Text(page).addresses
    assert any(address.startswith("data:image/jpeg;base64,") for address in addresses)
    assert all(address.startswith(("data:image/", "#")) for address in addresses)
    assert "default-src 'none'" in page


def test_several_artefacts_stand_side_by_side() -> None:
    images = pictures([0, 1, 2, 2])
    first, second = entry_of(images), entry_of(images, conditions=("dark", "jpeg"), name="road-0002")
    page = render_page(report_of(first, second), [images[0]] * 2)
    text = Text(page).all
    assert "road-0001, fake" in text
    assert "road-0002, fake" in text
    assert re.search(r"JPEG quality 10 \[1\] – – \[2\] \d", text)


def test_names_from_outside_cannot_inject_markup() -> None:
    images = pictures([0, 1, 2])
    images[0][0] = 200
    entry = entry_of(images, name='<img src=x onerror="alert(1)">$x$')
    page = render_page(report_of(entry, entry), [images[0]] * 2)
    assert "<img src=x" not in page
    assert not [name for name in Text(page).attributes if name.startswith("on")]


def test_27_classes_fit_on_the_page() -> None:
    classes = ClassList(RSCD_CLASSES)
    levels = {"dry": 60, "wet": 120, "icy": 200}
    labels_N = np.arange(27)
    images_NHWC = np.empty((27, 32, 32, 3), np.uint8)
    for label in labels_N:
        images_NHWC[label] = levels[classes.states[label]]
    entry = entry_of((images_NHWC, labels_N), conditions=(), predictor=FakePredictor(classes=classes))
    text = Text(render_page(report_of(entry), [images_NHWC])).all
    assert "100.0 % of road states right" in text
    assert "and 0 more" not in text
    assert all(name in text for name in RSCD_CLASSES)


def test_both_files_are_written_and_the_json_reads_back(tmp_path: Path) -> None:
    images = pictures([0, 1, 2])
    report = report_of(entry_of(images))
    json_path, html_path = write_report(tmp_path / "out", report, [images[0]])
    assert load_report(json_path) == report
    assert html_path.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert '"schema": "edge_road.report/2"' in json_path.read_text()
    first = html_path.read_bytes()
    write_report(tmp_path / "out", report, [images[0]])
    assert html_path.read_bytes() == first


@pytest.mark.parametrize("text", ["{}", "not json", '{"schema": "edge_road.report/9"}'])
def test_a_foreign_report_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "report.json").write_text(text)
    with pytest.raises(ConfigError, match="not a report"):
        load_report(tmp_path / "report.json")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_report(tmp_path / "missing.json")


def test_a_report_of_schema_1_can_still_be_read(tmp_path: Path) -> None:
    values = json.loads(report_of(entry_of(pictures([0, 1, 2]))).to_json())
    values["schema"] = "edge_road.report/1"
    del values["notes"], values["comparisons"]
    for entry in values["entries"]:
        for name in ("calibration", "abstention", "ood", "mce", "lab"):
            del entry[name]
    (tmp_path / "report.json").write_text(json.dumps(values))
    assert load_report(tmp_path / "report.json").entries[0].calibration is None


def test_the_page_of_three_models_under_everything_stays_below_3_mb() -> None:
    """The hardest pictures for JPEG, all of them wrong, every perturbation at every severity."""
    draw = np.random.default_rng(0)
    images_NHWC = draw.integers(0, 256, (60, 192, 192, 3), dtype=np.uint8)
    labels_N = np.zeros(60, np.int64)
    predictor = FakePredictor(size=(192, 192))
    entry = entry_of((images_NHWC, labels_N), conditions=("dark",), predictor=predictor)
    (score,) = entry.evaluation.perturbed
    everything = tuple(score.model_copy(update={"name": name}) for name in SUITES["all"])
    entry = entry.model_copy(
        update={"evaluation": entry.evaluation.model_copy(update={"perturbed": everything})}
    )
    assert len(entry.evaluation.mistakes) == 60
    report = report_of(entry, entry, entry)
    page = render_page(report, [images_NHWC] * 3)
    assert len(page.encode()) < 3_000_000
    text = Text(page).all
    assert "By severity" in text
    assert "and 52 more, listed in report.json" in text


def test_differences_stand_beside_the_second_model_and_sure_ones_are_marked() -> None:
    images = pictures([0, 1, 2, 2])
    first, second = entry_of(images), entry_of(images, name="road-0002")
    gap = Difference(difference=-0.25, low=-0.5, high=-0.01)
    tie = Difference(difference=0.0, low=-0.1, high=0.1)
    comparison = Comparison(entry=1, conditions={"clean": gap, "dark": tie}, danger={}, families={})
    report = report_of(first, second).model_copy(update={"comparisons": (comparison,)})
    page = render_page(report, [images[0]] * 2)
    assert "−25.0 −50.0 to −1.0" in Text(page).all
    assert "0.0 −10.0 to +10.0" in Text(page).all
    assert page.count('class="sure worse"') == 1
    shown = as_text(report)
    assert "-25.0 *" in shown
    assert "0.0 *" not in shown
