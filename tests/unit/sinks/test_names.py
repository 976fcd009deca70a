"""Names of columns: databases can hold them, no two fields have one, and fields can be read from them again."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from streamdsl.sinks.names import LONGEST, column_of, field_of

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=90)
HARD = st.text(st.sampled_from("~%aAé\0\"'2e"), max_size=8)
FIELDS = st.lists(st.one_of(TEXT, HARD, st.sampled_from(["id", "ID", "Le", "ctid", "CTID", "x" * 63, "x" * 64])), unique=True)


@example(["V", "v", "Id"])
@given(FIELDS)
def test_every_field_has_a_column_of_its_own_that_tells_the_field(fields: list[str]) -> None:
    columns: dict[str, str] = {}
    for field in fields:
        columns[field] = column_of(field, ["id", "le", "re", *columns.values()])
    assert len({column.lower() for column in [*columns.values(), "id", "le", "re", "ctid"]}) == len(fields) + 4
    for field, column in columns.items():
        assert 0 < len(column.encode()) <= LONGEST
        assert not {"\0", "%"} & set(column)
        assert "~~" in column or field_of(column) == field


def test_a_name_that_can_be_held_stays() -> None:
    names = ["fare", "Zone", "select", "a b", "é", "q\"uo'te", "new\nline", "rowid", "x" * 63]
    assert [column_of(name, ["id"]) for name in names] == names
