import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gniah.generator.graphniah.bit_rows import as_matrix, first_one_sided, grown_group, member, members

ROWS = st.integers(0, 24).flatmap(
    lambda count: st.lists(st.integers(0, max(2**count - 1, 0)), min_size=count, max_size=count)
)


def rows_of(graph: nx.Graph) -> list[int]:
    return [sum(1 << other for other in graph[node]) for node in sorted(graph)]


def plainly_grown(rows: list[int], first: int) -> list[int]:
    """The rule as it is written, one comparison after the other."""
    group, left = [first], rows[first]
    while left:
        place = max(members(left), key=lambda other: (rows[other] & left).bit_count())
        group.append(place)
        left &= rows[place]
    return group


@given(st.integers(0, 2**300 - 1))
def test_a_member_is_the_one_that_a_list_of_them_has_there(bits: int) -> None:
    listed = list(members(bits))
    assert listed == [place for place in range(300) if bits >> place & 1]
    assert [member(bits, number) for number in range(len(listed))] == listed
    for number in (-1, len(listed)):
        with pytest.raises(IndexError, match=f"no member {number} among {len(listed)}"):
            member(bits, number)


def test_members_of_large_sets_are_found() -> None:
    bits = (1 << 10_000) - 1
    assert [member(bits, number) for number in (0, 1, 4_999, 9_999)] == [0, 1, 4_999, 9_999]
    assert member(1 << 9_999, 0) == 9_999


@given(ROWS)
def test_a_matrix_has_the_bits_of_its_rows(rows: list[int]) -> None:
    matrix = as_matrix(rows)
    assert matrix.tolist() == [[row >> place & 1 for place in range(len(rows))] for row in rows]


@given(ROWS)
def test_the_first_place_without_its_mirror_image_is_found(rows: list[int]) -> None:
    alone = [(place, other) for place, row in enumerate(rows) for other in members(row) if not rows[other] >> place & 1]
    assert first_one_sided(as_matrix(rows)) == (alone[0] if alone else None)


def test_a_place_without_its_mirror_image_is_found_in_large_matrices() -> None:
    rows = rows_of(nx.gnp_random_graph(700, 0.2, seed=3))
    assert first_one_sided(as_matrix(rows)) is None
    place, other = 611, next(members(rows[611]))
    rows[other] ^= 1 << place
    assert first_one_sided(as_matrix(rows)) == (place, other)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 40), st.floats(0, 1), st.integers(0, 1000))
def test_a_group_grows_as_the_plain_way_says(count: int, chance: float, seed: int) -> None:
    rows = rows_of(nx.gnp_random_graph(count, chance, seed=seed))
    for first in range(count):
        assert grown_group(as_matrix(rows), first) == plainly_grown(rows, first)


@pytest.mark.parametrize("chance", [0.5, 0.98])
def test_a_group_of_more_paths_than_a_byte_counts_grows_the_same(chance: float) -> None:
    rows = rows_of(nx.gnp_random_graph(900, chance, seed=1))
    assert grown_group(as_matrix(rows), 17) == plainly_grown(rows, 17)
