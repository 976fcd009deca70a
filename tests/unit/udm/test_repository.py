"""Modules by name: registered in the program, as what they may be, and found again."""

from __future__ import annotations

import inspect
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

import streamdsl as sd
import streamdsl.udm as package
from streamdsl.errors import QueryError
from streamdsl.udm.bases import UDM
from streamdsl.udm.repository import Repository, repository

ROOT = Path(__file__).parents[3]
ROWS = [(1, 3, {"x": 3.0}), (2, 4, {"x": 1.0}), (4, 9, {"x": 7.0}), (12, 14, {"x": 5.0})]


class Middle(sd.UDA[float, float]):
    """The middle value, or the lower of two."""

    def compute_result(self, payloads: Sequence[float]) -> float:
        return sorted(payloads)[(len(payloads) - 1) // 2]


class Smallest(sd.UDO[float, float]):
    def __init__(self, k: int = 1) -> None:
        self.k = k

    def compute_result(self, payloads: Sequence[float]) -> list[float]:
        return sorted(payloads)[: self.k]


class Scaled(sd.UDA[float, float]):
    def __init__(self, factor: float, /, *, offset: float = 0.0) -> None:
        self.factor, self.offset = factor, offset

    def compute_result(self, payloads: Sequence[float]) -> float:
        return self.factor * max(payloads) + self.offset


class Unfinished(sd.IncrementalUDA[float, float, float]):
    def create_state(self) -> float:
        return 0.0


@sd.uda
def spread(values: Sequence[float]) -> float:
    return max(values) - min(values)


@sd.udo
def extremes(values: Sequence[float]) -> list[float]:
    return [min(values), max(values)]


@sd.udf
def doubled(value: float) -> float:
    return 2 * value


@pytest.fixture
def udm() -> Repository:
    return Repository()


@pytest.fixture
def middle() -> Iterator[None]:
    """`Middle` under that name in the one repository of this program."""
    sd.udm.register("middle", Middle)
    yield
    del repository._registered["middle"]


def rows(query: sd.Stream[Any], engine: Any = "local") -> list[tuple[int, int, Any]]:
    return [(row.le, row.re, row.payload) for row in query.run(engine=engine).cht().rows]


@pytest.mark.parametrize("engine", ["local", "reference"])
def test_a_registered_aggregate_is_used_by_its_name(udm: Repository, engine: str) -> None:
    udm.register("middle", Middle)
    windows = sd.from_rows(ROWS).tumbling_window(10)
    by_name = windows.aggregate(m=udm("middle", lambda e: e.x), n=sd.count())
    assert rows(by_name, engine) == [(0, 10, {"m": 3.0, "n": 3}), (10, 20, {"m": 5.0, "n": 1})]


@pytest.mark.parametrize("engine", ["local", "reference"])
def test_a_registered_operator_is_used_by_its_name(udm: Repository, engine: str) -> None:
    udm.register("smallest", Smallest)
    windows = sd.from_rows(ROWS).tumbling_window(10)
    assert rows(windows.apply(udm.get("smallest"), lambda e: e.x), engine) == [(0, 10, 1.0), (10, 20, 5.0)]
    assert rows(windows.apply(udm.get("smallest", k=2), lambda e: e.x), engine) == [(0, 10, 1.0), (0, 10, 3.0), (10, 20, 5.0)]


def test_a_module_found_by_name_goes_wherever_one_at_hand_goes(udm: Repository) -> None:
    udm.register("middle", Middle)
    middle = udm.get("middle")
    windows = sd.from_rows(ROWS).tumbling_window(10)
    expected = rows(windows.aggregate(Middle(), lambda e: e.x))
    assert rows(windows.aggregate(middle, lambda e: e.x)) == expected
    assert rows(windows.aggregate(lambda w: w.udm(middle, lambda e: e.x))) == expected
    assert rows(windows.aggregate(lambda w: w.udm(udm.get("middle"), lambda e: e.x))) == expected
    assert rows(windows.aggregate(udm("middle", lambda e: e.x))) == expected


def test_where_leaves_rows_out(udm: Repository) -> None:
    udm.register("middle", Middle)
    windows = sd.from_rows(ROWS).tumbling_window(10)
    query = windows.aggregate(m=udm("middle", lambda e: e.x, where=lambda e: e.x > 3))
    assert rows(query) == [(0, 10, {"m": 7.0}), (10, 20, {"m": 5.0})]


def test_without_an_expression_an_aggregate_is_of_whole_payloads(udm: Repository) -> None:
    udm.register("middle", Middle)
    query = sd.from_rows([(1, 2, 4.0), (2, 3, 2.0), (3, 4, 9.0)]).tumbling_window(10).aggregate(m=udm("middle"))
    assert rows(query) == [(0, 10, {"m": 4.0})]


@pytest.mark.parametrize("module", [Middle, Middle(), Smallest, Smallest(2), spread, extremes, doubled])
def test_what_is_registered_is_returned_and_found(udm: Repository, module: Any) -> None:
    assert udm.register("it", module) is module
    found = udm.get("it")
    assert type(found) is module if isinstance(module, type) else found is module


def test_register_is_a_decorator_too(udm: Repository) -> None:
    @udm.register("range")
    class Range(sd.UDA[float, float]):
        def compute_result(self, payloads: Sequence[float]) -> float:
            return max(payloads) - min(payloads)

    @udm.register("rise")
    @sd.uda
    def rise(values: Sequence[float]) -> float:
        return values[-1] - values[0]

    assert type(udm.get("range")) is Range
    assert udm.get("rise") is rise


def test_a_function_of_expressions_is_found_for_lambdas(udm: Repository) -> None:
    udm.register("doubled", doubled)
    double = udm.get("doubled")
    assert rows(sd.from_rows(ROWS[:1]).select(lambda e: double(e.x))) == [(1, 3, 6.0)]


def test_parameters_go_by_name_beside_the_expression_and_by_position_into_get(udm: Repository) -> None:
    udm.register("scaled", Scaled)
    assert udm.get("scaled", 2.0, offset=1.0).compute_result([1.0, 3.0]) == 7.0
    udm.register("smallest", Smallest)
    assert udm.get("smallest", 3).k == udm.get("smallest", k=3).k == 3
    agg = udm("quantile", lambda e: e.x, q=0.25, method="inverted_cdf")
    assert agg.function == sd.quantile(lambda e: e.x, 0.25, "inverted_cdf").function


def test_each_use_makes_a_module_of_its_own(udm: Repository) -> None:
    udm.register("smallest", Smallest)
    assert udm.get("smallest") is not udm.get("smallest")


# What is refused, and how.


def refusal(make: Callable[[], object]) -> tuple[str, str | None]:
    with pytest.raises(QueryError) as caught:
        make()
    return str(caught.value).partition("\nHint: ")[0], caught.value.hint


def test_an_unknown_name_lists_the_names_and_the_closest(udm: Repository) -> None:
    udm.register("middle", Middle)
    message, hint = refusal(lambda: udm("midle", lambda e: e.x))
    assert message.startswith("no module is named 'midle'; there are avg, collect, count,")
    assert "middle" in message
    assert hint == "did you mean 'middle'?"
    assert refusal(lambda: udm.get("zzz"))[1] == "register it: sd.udm.register('zzz', MyModule)"


def test_a_name_of_another_module_is_refused_unless_replaced(udm: Repository) -> None:
    udm.register("middle", Middle)
    udm.register("middle", Middle)
    message, hint = refusal(lambda: udm.register("middle", spread))
    assert message == f"'middle' is registered already: {__name__}:Middle"
    assert hint == "choose another name, or register it with replace=True, as in a notebook's cell that is run again"
    assert type(udm.get("middle")) is Middle
    udm.register("middle", spread, replace=True)
    assert udm.get("middle") is spread
    udm.register("middle", replace=True)(Middle)
    assert type(udm.get("middle")) is Middle


def test_a_registered_name_hides_the_built_in(udm: Repository) -> None:
    built_in = udm.get("median")
    udm.register("median", Middle)
    assert type(udm.get("median")) is Middle
    assert type(Repository().get("median")) is type(built_in) is not Middle


@pytest.mark.parametrize(
    ("module", "said", "hint"),
    [
        (len, "is no module", "@sd.uda"),
        (lambda values: 1, "is no module", "@sd.uda"),
        (int, "is no module", "derives from sd.UDA, sd.UDO or streamdsl.udm.UDSO"),
        (UDM, "is no module", "derives from sd.UDA, sd.UDO or streamdsl.udm.UDSO"),
        (3, "3 is no module", "derives from sd.UDA, sd.UDO or streamdsl.udm.UDSO"),
        (sd.count(), "is no module", "derives from sd.UDA, sd.UDO or streamdsl.udm.UDSO"),
        (Unfinished, "does not define add_event_to_state, compute_result", None),
        (sd.UDA, "does not define compute_result", None),
    ],
)
def test_only_modules_are_registered(udm: Repository, module: Any, said: str, hint: str | None) -> None:
    message, advice = refusal(lambda: udm.register("it", module))
    assert said in message
    assert advice is None if hint is None else hint in str(advice)
    assert refusal(lambda: udm.get("it"))[0].startswith("no module is named 'it'")


@pytest.mark.parametrize("name", [Middle, "", None, 3])
def test_a_module_is_registered_by_a_name(udm: Repository, name: Any) -> None:
    message, hint = refusal(lambda: udm.register(name))
    assert message == f"a module is registered by a name, not by {name!r}"
    assert hint == 'write @sd.udm.register("median") before the class'


def test_a_module_in_the_place_of_the_name_is_refused(udm: Repository) -> None:
    module: Any = Middle
    assert refusal(lambda: udm(module, lambda e: e.x))[1] == "a module at hand needs no name: Median().of(lambda e: e.x)"


def test_parameters_are_checked_when_the_query_is_written(udm: Repository) -> None:
    udm.register("smallest", Smallest)
    udm.register("spread", spread)
    assert refusal(lambda: udm("quantile", lambda e: e.x)) == (
        "'quantile' cannot be made: missing a required argument: 'q'; "
        "it is quantile(q: float, method: Literal['linear', 'inverted_cdf'] = 'linear')",
        None,
    )
    assert "got an unexpected keyword argument 'n'; it is smallest(k: int = 1)" in refusal(lambda: udm.get("smallest", n=2))[0]
    assert "unexpected keyword argument 'q'; it is median()" in refusal(lambda: udm("median", lambda e: e.x, q=1))[0]
    assert refusal(lambda: udm("spread", lambda e: e.x, k=2))[0] == "'spread' is not a class, so it takes no parameters"


def test_an_error_of_the_module_itself_is_not_covered(udm: Repository) -> None:
    @udm.register("picky")
    class Picky(Middle):
        def __init__(self, k: int) -> None:
            raise TypeError("k is odd")

    with pytest.raises(TypeError, match=r"^k is odd$"):
        udm.get("picky", k=1)


def test_what_is_no_aggregate_says_where_it_goes(udm: Repository) -> None:
    udm.register("smallest", Smallest)
    udm.register("doubled", doubled)
    message, hint = refusal(lambda: udm("smallest", lambda e: e.x))
    assert (message, hint) == ("'smallest' is a UDO, not an aggregate", "write apply(sd.udm.get('smallest'))")
    message, hint = refusal(lambda: udm("doubled", lambda e: e.x))
    assert (message, hint) == ("'doubled' is a UDF, not an aggregate", "write f = sd.udm.get('doubled'), then f(e.x)")


def test_what_is_no_expression_is_refused(udm: Repository) -> None:
    given: Any = "fare"
    assert refusal(lambda: udm("median", given))[0] == "'fare' is not an expression over a row"
    assert refusal(lambda: udm("median", lambda e: e.x, where=given))[0] == "'fare' is not an expression over a row"
    expression: Any = sd.col("x")
    assert rows(sd.from_rows(ROWS).tumbling_window(20).aggregate(m=udm("max", expression))) == [(0, 20, {"m": 7.0})]


# `sd.udm` is the package and the repository.


def test_the_package_is_called_as_the_repository_is() -> None:
    assert sd.udm is package is sys.modules["streamdsl.udm"]  # type: ignore[comparison-overlap]
    assert list(inspect.signature(sd.udm).parameters) == list(inspect.signature(repository).parameters)
    public = {name for name in vars(Repository) if not name.startswith("_")}
    assert public == {"register", "get", "catalog"}
    assert all(getattr(package, name).__self__ is repository for name in public)


def test_importing_modules_of_the_package_leaves_the_repository_in_place() -> None:
    code = (
        "import streamdsl as sd, streamdsl.udm, streamdsl.udm.invoke, streamdsl.udm.window_lambda, streamdsl.udm.listing\n"
        "import streamdsl.udm as udm\n"
        "from streamdsl.udm import UDA, builtin\n"
        "from streamdsl.udm.bases import UDA as base\n"
        "assert udm is sd.udm and udm.UDA is UDA is base is sd.UDA and udm.builtin is builtin\n"
        "print(sd.udm('median', lambda e: e.x).function.label, len(udm.catalog()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.split()[0] == "median"


@pytest.mark.usefixtures("middle")
def test_what_is_registered_is_found_by_the_package() -> None:
    assert type(sd.udm.get("middle")) is Middle
    windows = sd.from_rows(ROWS).tumbling_window(10)
    assert rows(windows.aggregate(sd.udm("middle", lambda e: e.x))) == [(0, 10, 3.0), (10, 20, 5.0)]
    assert rows(windows.aggregate(lambda w: w.udm(sd.udm.get("middle"), lambda e: e.x))) == [(0, 10, 3.0), (10, 20, 5.0)]


def test_the_package_is_pickled_by_name() -> None:
    assert pickle.loads(pickle.dumps(package)) is package
    cloudpickle = pytest.importorskip("pyspark.cloudpickle")
    assert cloudpickle.loads(cloudpickle.dumps(lambda: package))() is package


# What a query holds is the module, so that no other process needs the name.


def test_an_aggregate_by_name_is_pickled_with_its_module(udm: Repository) -> None:
    udm.register("scaled", Scaled(2.0))
    copy = pickle.loads(pickle.dumps(udm("scaled", attrgetter("x"))))
    assert copy.function.compute_result([1.0, 3.0]) == 6.0


def test_an_aggregate_by_name_runs_where_the_name_is_unknown(udm: Repository, tmp_path: Path) -> None:
    cloudpickle = pytest.importorskip("pyspark.cloudpickle")

    @udm.register("here_alone")
    @sd.uda(empty=0.0)
    def here_alone(values: Sequence[float]) -> float:
        return 10 * sum(values)

    query = sd.from_rows(ROWS).tumbling_window(20).aggregate(m=udm("here_alone", lambda e: e.x))
    (tmp_path / "query").write_bytes(cloudpickle.dumps(query))
    code = (
        "import pickle, sys, streamdsl as sd\n"
        "assert 'here_alone' not in [entry.name for entry in sd.udm.catalog()]\n"
        "print(pickle.load(open(sys.argv[1], 'rb')).run().cht().rows[0].payload['m'])"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "query")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.stdout == "160.0\n", done.stderr
