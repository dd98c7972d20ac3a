"""The supervisor's side of a swap: every step told, the old bundle back whenever something is wrong."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from edge_road.clock import ScriptedClock
from edge_road.runtime.bundle_choice import Outcome
from edge_road.runtime.events.event import Severity
from edge_road.runtime.evidence import Evidence, Loaded, RegionEvidence, SwapStep
from edge_road.runtime.link import Order
from edge_road.runtime.reload import only_bundle_differs
from edge_road.runtime.status import Status
from edge_road.runtime.swap import Swap
from edge_road.runtime.vehicle import Vehicle

OLD = Vehicle(bundle=Path("old"))
NEW = Vehicle(bundle=Path("new"))
LOADED = Loaded(predictor="onnx", model_digest="new digest", confidence_threshold=0.7)
BEFORE = Loaded(predictor="onnx", model_digest="old digest", confidence_threshold=0.6)
GOOD = Evidence(
    number=1, captured_mono_ns=1, regions=(RegionEvidence(name="road", probabilities=(0.9, 0.1, 0.0)),)
)
SICK = Evidence(
    number=1, captured_mono_ns=1, regions=(RegionEvidence(name="road", probabilities=(math.nan, 0.1, 0.0)),)
)


class Notes:
    """A journal that only remembers."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Severity]] = []

    def note(self, kind: str, severity: Severity, details: dict[str, Any]) -> None:
        assert kind == "model"
        self.told.append((details["swap"], severity))


class Scene:
    def __init__(self) -> None:
        self.clock, self.notes = ScriptedClock(), Notes()
        self.orders: list[str] = []
        self.used: list[tuple[Vehicle, Loaded | None]] = []
        self.outcomes: list[Outcome] = []
        self.listens = True
        self.status = Status("van", "boot", self.clock)
        journal: Any = self.notes
        self.swap = Swap(
            journal,
            self.status,
            self.clock,
            order=self.order,
            use=lambda vehicle, loaded: self.used.append((vehicle, loaded)),
            settle=self.outcomes.append,
        )

    def order(self, order: Order) -> bool:
        self.orders.append(order.what)
        return self.listens

    def says(self, stage: str, **more: Any) -> None:
        self.swap.take(SwapStep.model_validate({"stage": stage, "bundle": "new", **more}))

    def swapped(self) -> None:
        self.swap.begin(OLD, NEW)
        self.says("canary")
        self.says("swapped", loaded=LOADED, figures={"slowest_ms": 50.0})

    def stages(self) -> list[str]:
        return [stage for stage, _ in self.notes.told]

    def ends(self) -> list[tuple[str, str]]:
        return [(outcome.stage, outcome.reason) for outcome in self.outcomes]


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_good_bundle_goes_through_all_steps(scene: Scene) -> None:
    scene.swapped()
    assert scene.used == [(NEW, LOADED)]
    scene.swap.watch(GOOD)
    assert scene.swap.busy
    scene.clock.sleep(NEW.swap.trial_s)
    scene.swap.watch(GOOD)
    assert not scene.swap.busy
    assert scene.stages() == ["verifying", "canary", "swapped", "kept"]
    assert scene.orders == ["try", "keep"]
    assert scene.ends() == [("kept", "")]
    assert scene.status.health()["swap"]["swap"] == "kept"


def test_time_alone_does_not_prove_a_model(scene: Scene) -> None:
    scene.swapped()
    scene.clock.sleep(10 * NEW.swap.trial_s)
    assert scene.swap.busy, "no frame has been judged by it"


def test_a_refusal_is_a_warning_and_changes_nothing(scene: Scene) -> None:
    scene.swap.begin(OLD, NEW)
    scene.says("refused", reason="disagrees", figures={"agreement": 0.2})
    assert scene.used == []
    assert scene.notes.told[-1] == ("refused", Severity.WARNING)
    assert scene.ends() == [("refused", "disagrees")]
    assert not scene.swap.busy


def test_a_worker_that_does_not_listen_refuses_it(scene: Scene) -> None:
    scene.listens = False
    scene.swap.begin(OLD, NEW)
    assert scene.ends() == [("refused", "no_model_to_compare_with")]
    assert not scene.swap.busy


def test_a_sick_model_goes_and_the_old_one_is_named_when_it_judges(scene: Scene) -> None:
    scene.swapped()
    for _ in range(5):
        scene.swap.watch(SICK)
    assert scene.orders == ["try", "back"]
    assert scene.used == [(NEW, LOADED)], "the messages still tell what the new model says"
    scene.says("rolled_back", loaded=BEFORE)
    assert scene.used[-1] == (OLD, BEFORE)
    assert scene.ends() == [("rolled_back", "model_output")]
    assert not scene.swap.busy


@pytest.mark.parametrize("how_far", ["trying", "probation", "returning"])
def test_a_lost_worker_brings_the_old_bundle_back(scene: Scene, how_far: str) -> None:
    if how_far == "trying":
        scene.swap.begin(OLD, NEW)
    else:
        scene.swapped()
    for _ in range(3 if how_far == "returning" else 0):
        scene.swap.watch(SICK)
    scene.swap.worker_lost("worker_died")
    scene.swap.worker_lost("worker_died")
    end = {
        "trying": ("refused", "worker_died"),
        "probation": ("rolled_back", "worker_died"),
        "returning": ("rolled_back", "model_output"),
    }
    assert scene.ends() == [end[how_far]]
    assert [vehicle for vehicle, _ in scene.used][-1:] == ([] if how_far == "trying" else [OLD])
    assert not scene.swap.busy


def test_words_of_a_worker_that_was_asked_nothing_are_ignored(scene: Scene) -> None:
    scene.says("swapped", loaded=LOADED)
    scene.swap.watch(SICK)
    assert (scene.used, scene.stages()) == ([], [])


def test_only_a_change_of_the_bundle_is_a_swap() -> None:
    assert only_bundle_differs(OLD, NEW)
    assert not only_bundle_differs(OLD, OLD)
    assert not only_bundle_differs(OLD, NEW.model_copy(update={"rate": 5.0}))
    fake = {"backend": "fake"}
    assert not only_bundle_differs(OLD.model_copy(update=fake), NEW.model_copy(update=fake))
