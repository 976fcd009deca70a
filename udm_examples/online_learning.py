"""Online learning as user-defined operators: a model that learns from each event of a window after it was asked about it.

To test first and train then is the prequential evaluation of J. Gama, R. Sebastião, P. Rodrigues, "On Evaluating Stream Learning
Algorithms", Machine Learning 90(3), 2013. The models are those of the package river (J. Montiel et al., "River: Machine Learning
for Streaming Data in Python", Journal of Machine Learning Research 22, 2021), an extra: `pip install 'streamdsl[learning]'`.

What a model says depends on the order in which it learns, and events may come in any. So order is part of each module: it sorts
the events of its window by start, asks about all that start together before it learns from them, and learns from these in payload
order. The answer depends on the window's events alone, whatever their order of arrival. The price is that a window whose events
change is learned from the beginning: an event that comes late changes all that comes after it, so there is no state that could be
corrected.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, TypeVar

import streamdsl as sd
from streamdsl.errors import QueryError
from udm_examples.sequence import instants
from udm_examples.settings import positive, whole

I = TypeVar("I")  # noqa: E741
O = TypeVar("O")  # noqa: E741
T = TypeVar("T")


class OnlineModel(sd.TimeSensitiveUDO[I, O]):
    """What all online models share: each event of the window is answered by a model that has learned from the earlier ones.

    Answers are points at the starts of the events. The model learns from an event that starts before the window too, but the
    answer to it is left to an earlier window. Ends do not count, so right clipping changes nothing; left clipping makes what
    began earlier start with the window.

    Time-bound: an event that starts at s changes no answer before s. Not so over count windows, whose bounds depend on later
    events.
    """

    time_bound: ClassVar[bool] = True
    ignores_ends_beyond_window: ClassVar[bool] = True

    @abstractmethod
    def create_model(self) -> Any:
        """Return a model that has learned nothing."""

    @abstractmethod
    def ask(self, model: Any, payload: I) -> O:
        """Return what the model says of a payload."""

    @abstractmethod
    def teach(self, model: Any, payload: I) -> None:
        """Let the model learn from a payload."""

    def compute_result(self, events: Sequence[sd.IntervalEvent[I]], window: sd.WindowDescriptor) -> Iterator[sd.IntervalEvent[O]]:
        """Yield the answers to the events that start in the window, in order of time."""
        model = self.create_model()
        for time, payloads in instants(events):
            if time >= window.start_time:
                yield from (sd.IntervalEvent(time, time + 1, self.ask(model, payload)) for payload in payloads)
            for payload in payloads:
                self.teach(model, payload)


@dataclass(frozen=True, slots=True)
class Sample:
    """What is known, and what is to be predicted from it."""

    x: tuple[float, ...]
    y: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """A sample's y, and what was expected of it."""

    y: float
    expected: float


class OnlineRegression(OnlineModel[Sample, Prediction]):
    """The y of each sample as a linear function of its x, learned by stochastic gradient descent from the samples before it.

    Each component of x is standardized by what was seen of it so far. The model does not learn from a sample that holds a NaN or
    an infinity, after which it would expect nothing but NaN.

    Raises `QueryError` if `rate` is not positive and finite, or if river is not installed.

    >>> samples = [sd.IntervalEvent(t, t + 1, Sample((float(t % 7),), 3.0 * (t % 7) + 5.0)) for t in range(300)]
    >>> answers = list(OnlineRegression(rate=0.1).compute_result(samples, sd.WindowDescriptor(0, 300)))
    >>> [(answer.start_time, answer.payload.y, round(answer.payload.expected, 1)) for answer in answers[:1] + answers[-2:]]
    [(0, 5.0, 0.0), (298, 17.0, 17.0), (299, 20.0, 20.0)]

    In a query, the mean error in each part of the window:

    >>> stream = sd.from_rows([(e.start_time, e.end_time, e.payload) for e in samples])
    >>> predictions = stream.tumbling_window(300, output=sd.Output.TIME_BOUND).apply(OnlineRegression(rate=0.1))
    >>> errors = predictions.tumbling_window(100).aggregate(sd.avg(lambda e: abs(e.y - e.expected)))
    >>> for le, re, error in errors.run():
    ...     print(le, re, round(error, 2))
    0 100 0.61
    100 200 0.05
    200 300 0.03
    """

    def __init__(self, rate: float = 0.01) -> None:
        self.rate = positive("rate", rate)
        self.create_model()

    def create_model(self) -> Any:
        """Return a linear model that predicts 0."""
        descent = _river("optim").SGD(self.rate)
        linear = _river("linear_model").LinearRegression(optimizer=descent, intercept_lr=self.rate)
        return _river("preprocessing").StandardScaler() | linear

    def ask(self, model: Any, payload: Sample) -> Prediction:
        """Return the prediction for a sample."""
        return Prediction(payload.y, float(model.predict_one(_named(payload.x))))

    def teach(self, model: Any, payload: Sample) -> None:
        """Let the model learn from a sample, if all of it is finite."""
        if all(map(math.isfinite, (*payload.x, payload.y))):
            model.learn_one(_named(payload.x), payload.y)


@dataclass(frozen=True, slots=True)
class Scored:
    """A point, and how strange it is: from 0, which is usual, to 1."""

    x: tuple[float, ...]
    score: float


class OnlineAnomalies(OnlineModel[tuple[float, ...], Scored]):
    """How strange each point is to half-space trees that were grown from the points before it.

    The method is that of S. Tan, K. Ting, T. Liu, "Fast Anomaly Detection for Streaming Data", IJCAI 2011. The trees compare with
    the last full block of `memory` points: the first block is not judged, its scores are 0. `limits` are the smallest and the
    largest value that each component usually takes; what lies beyond, or is NaN, counts as at the end of them. The trees are
    drawn from `seed`; equal seeds give equal scores.

    Raises `QueryError` for limits that are no ranges, numbers that are not positive, or if river is not installed; `ValueError`
    for a point that has not as many components as there are limits.

    >>> readings = [(t, t + 1, (20.0 + t % 3,)) for t in range(100)] + [(100, 101, (90.0,)), (101, 102, (21.0,))]
    >>> events = [sd.IntervalEvent(*reading) for reading in readings]
    >>> anomalies = OnlineAnomalies(limits=[(0.0, 100.0)], memory=30)
    >>> scores = [answer.payload.score for answer in anomalies.compute_result(events, sd.WindowDescriptor(0, 200))]
    >>> max(scores[:30]), round(max(scores[30:100]), 2), round(scores[100], 2), round(scores[101], 2)
    (0.0, 0.26, 0.99, 0.18)

    In a query:

    >>> day = sd.from_rows(readings).tumbling_window(200, output=sd.Output.TIME_BOUND)
    >>> for le, re, scored in day.apply(anomalies).where(lambda e: e.score > 0.9).run():
    ...     print(le, re, scored.x)
    100 101 (90.0,)
    """

    def __init__(
        self, limits: Sequence[tuple[float, float]], trees: int = 10, height: int = 6, memory: int = 100, seed: int = 0
    ) -> None:
        if not limits or not all(-math.inf < low < high < math.inf for low, high in limits):
            raise QueryError(
                f"limits={limits} are no ranges",
                hint="give the smallest and the largest value of each component, as [(0.0, 100.0), (-20.0, 40.0)]",
            )
        self.limits = tuple(limits)
        self.trees = whole("trees", trees)
        self.height = whole("height", height)
        self.memory = whole("memory", memory)
        self.seed = whole("seed", seed, 0)
        self.create_model()

    def create_model(self) -> Any:
        """Return trees that have seen nothing."""
        return _river("anomaly").HalfSpaceTrees(
            n_trees=self.trees,
            height=self.height,
            window_size=self.memory,
            limits=_named(self.limits),
            seed=self.seed,
        )

    def ask(self, model: Any, payload: tuple[float, ...]) -> Scored:
        """Return the score of a point."""
        return Scored(payload, float(model.score_one(self._features(payload))))

    def teach(self, model: Any, payload: tuple[float, ...]) -> None:
        """Let the trees count a point."""
        model.learn_one(self._features(payload))

    def _features(self, payload: tuple[float, ...]) -> dict[str, float]:
        if len(payload) != len(self.limits):
            raise ValueError(f"{payload} has {len(payload)} components, and there are {len(self.limits)} limits")
        return _named(payload)


def _named(x: Sequence[T]) -> dict[str, T]:
    return {f"x{i}": value for i, value in enumerate(x)}


def _river(module: str) -> Any:
    try:
        return import_module(f"river.{module}")
    except ModuleNotFoundError:
        raise QueryError(
            "online learning needs river, which is not installed", hint="pip install 'streamdsl[learning]'"
        ) from None
