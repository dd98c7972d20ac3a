"""Whatever the recipe says, the learning rate stays between nothing and the rate that it names."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from edge_road.recipe import OptimizerSettings
from edge_road.training.optim import learning_rate

SETTINGS = st.builds(
    OptimizerSettings,
    learning_rate=st.floats(1e-6, 10.0),
    schedule=st.sampled_from(["constant", "step", "cosine"]),
    milestones=st.lists(st.integers(0, 100), max_size=4).map(tuple),
    factor=st.floats(0.01, 1.0),
    warmup_epochs=st.floats(0.0, 0.9),
)


@given(settings=SETTINGS, epochs=st.integers(1, 100), share=st.floats(0.0, 1.0))
def test_the_rate_is_never_negative_and_never_above_the_recipes(
    settings: OptimizerSettings, epochs: int, share: float
) -> None:
    rate = learning_rate(settings, epochs, share * epochs)
    assert 0.0 <= rate <= settings.learning_rate * (1 + 1e-12)


@given(settings=SETTINGS, epochs=st.integers(2, 100), first=st.floats(0.0, 1.0), second=st.floats(0.0, 1.0))
def test_after_the_warm_up_the_rate_never_rises(
    settings: OptimizerSettings, epochs: int, first: float, second: float
) -> None:
    warm = settings.warmup_epochs
    early, late = sorted(warm + share * (epochs - warm) for share in (first, second))
    assert learning_rate(settings, epochs, late) <= learning_rate(settings, epochs, early) * (1 + 1e-9)
