"""The report in a real browser, on a desk and on a phone: nothing cut off, nothing fetched."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edge_road.backends.fake import FakePredictor
from edge_road.conditions import ROAD_CLASSES
from edge_road.evaluation.abstention import abstention
from edge_road.evaluation.answers import answers_of
from edge_road.evaluation.comparison import compare_with_first
from edge_road.evaluation.familiarity import ClassGeometry
from edge_road.evaluation.judge import Judged, sum_up
from edge_road.evaluation.lab_result import (
    AttackScore,
    CountGroup,
    CurvatureResult,
    GeometryResult,
    LabResult,
    SurfaceResult,
    ThicknessResult,
)
from edge_road.evaluation.notes import notes_of
from edge_road.evaluation.ood import score_strangers, sum_up_strangers
from edge_road.evaluation.perturbations import PERTURBATIONS
from edge_road.evaluation.reliability import calibration_at
from edge_road.evaluation.report import Entry, PictureSet, Report, Subject, write_report

pytest.importorskip("jinja2")
sync_api = pytest.importorskip("playwright.sync_api")
axe = pytest.importorskip("axe_playwright_python.sync_playwright")
CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium")

WIDTHS = {"phone": 390, "desk": 1280}
NAMES = (*PERTURBATIONS, *(f"fog:{severity}" for severity in range(1, 6)))

CUT_OFF = """() => {
  const wide = [...document.querySelectorAll('.wide')].filter(box => box.scrollWidth > box.clientWidth + 1);
  return wide.map(box => box.innerText.slice(0, 60));
}"""
OUTSIDE = """() => {
  const bad = [];
  for (const svg of document.querySelectorAll('svg')) {
    const frame = svg.getBoundingClientRect();
    for (const text of svg.querySelectorAll('text')) {
      const box = text.getBoundingClientRect();
      if (box.left < frame.left - 2 || box.right > frame.right + 2 ||
          box.top < frame.top - 2 || box.bottom > frame.bottom + 2)
        bad.push(svg.getAttribute('aria-label') + ': ' + text.textContent.trim());
    }
  }
  return bad;
}"""


def lab_result() -> LabResult:
    by_class: dict[str, float | None] = {"dry": 1.25, "wet": 2.5, "icy": None}
    return LabResult(
        pictures=8,
        attacks=(AttackScore(name="PGD-20 L2 0.5", eps=3.0, steps=20, accuracy=0.25),),
        curvature=CurvatureResult(
            median=0.002,
            lowest=(1e-6, 1e-3, 0.1, 30.0, 1e5),
            mean_of_lowest=812.0,
            sigma=40 / 255,
            noisy_runs=10,
            retained=tuple((step / 10, 1 - step / 40) for step in range(1, 11)),
            groups=(
                CountGroup(times_right=0, pictures=2, curvature=3e5),
                CountGroup(times_right=10, pictures=6, curvature=2e-3),
            ),
            correlation=-0.96,
        ),
        surface=SurfaceResult(picture=3, label="wet", offsets=(-1.0, 0.0, 1.0), loss=((0.1, 0.2, 0.3),) * 3),
        thickness=ThicknessResult(mean=0.83, pictures=5),
        flatness=((0.0, 0.1), (0.01, 4.0), (0.02, 250.0)),
        geometry=GeometryResult(
            dispersion=by_class,
            margin=by_class,
            median_margin=3.0,
            centroid_margin=by_class,
            delta_v=0.5,
            within=0.62,
            stability=0.6,
            sigma=40 / 255,
        ),
    )


def entry_of(number: int, judged: Judged, images_NHWC: np.ndarray, labels_N: np.ndarray) -> Entry:
    predictor, clean = FakePredictor(), judged.clean
    subject = Subject(
        name=f"discriminative-mobilenetv3-{number:04d}",
        kind="run",
        sha256="a" * 64,
        method="discriminative",
        seed=3,
        recipe_digest="b" * 64,
        git_commit="c" * 40,
        version="0.1.0",
    )
    geometry = ClassGeometry.of(clean.features_ND, labels_N, ROAD_CLASSES)
    strangers = score_strangers(predictor, clean, images_NHWC[:6], clean, geometry)
    assert strangers is not None
    return Entry(
        subject=subject,
        evaluation=judged.evaluation,
        calibration=calibration_at(clean.logits_NC, labels_N, 1.5, "240 pictures of the validation split"),
        abstention=abstention(clean, labels_N, ROAD_CLASSES, 0.7),
        ood=sum_up_strangers(strangers),
        lab=None if number == 1 else lab_result(),
    )


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three models under all that a report can show; into the second the laboratory cannot look."""
    draw = np.random.default_rng(0)
    labels_N = np.arange(24) % 3
    levels_N = np.array([60, 120, 200])[labels_N] + draw.integers(-30, 31, 24)
    images_NHWC = np.broadcast_to(levels_N[:, None, None, None], (24, 32, 32, 3)).astype(np.uint8)
    judged = []
    for number in range(3):
        seen_NHWC = np.clip(images_NHWC.astype(int) - 12 * number, 0, 255).astype(np.uint8)
        answers = answers_of(FakePredictor(), seen_NHWC, NAMES, runs=2, seed=0)
        judged.append(sum_up("onnx float32 on CPU", ROAD_CLASSES, answers, labels_N, 2, 0))
    entries = tuple(entry_of(n, each, images_NHWC, labels_N) for n, each in enumerate(judged))
    first = entries[0]
    report = Report(
        test_set=PictureSet(kind="folder", split="test", digest="d" * 64, as_trained=True),
        notes=tuple(notes_of(first.title, first.evaluation, as_trained=True, split="test")),
        entries=entries,
        comparisons=compare_with_first(judged, seed=0),
    )
    return write_report(tmp_path_factory.mktemp("report"), report, [images_NHWC] * 3)[1]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        window = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield window
        window.close()


@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
def test_nothing_is_cut_off_and_every_label_lies_in_its_plot(
    browser: Any, page_file: Path, width: int
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    asked, errors = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
    page.goto(page_file.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(CUT_OFF) == []
    assert page.evaluate(OUTSIDE) == []
    assert page.locator("svg").count() == page.locator("svg[aria-label]").count() >= 14
    assert page.locator(".sure").count() > 0
    titles = page.locator("h3", has_text="Loss around").all_inner_texts()
    assert [title[-3:] for title in titles] == ["[1]", "[3]"]
    assert errors == []
    assert all(url == page_file.as_uri() or url.startswith("data:image/") for url in asked)
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_readable_for_all(browser: Any, page_file: Path, scheme: str) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme=scheme)
    page.goto(page_file.as_uri())
    found = axe.Axe().run(page).response["violations"]
    assert [(rule["id"], rule["nodes"][0]["html"][:120]) for rule in found] == []
    page.close()
