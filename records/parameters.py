"""Types of command line parameters that commands of every family take: lists, ranges and parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    Typed = click.ParamType
else:  # click before 8.5 does not take a type argument at run time

    class Typed(click.ParamType):
        """A type of parameters that says what its values are."""

        def __class_getitem__(cls, item: object) -> type:
            return cls


class Integers(Typed[tuple[int, ...]]):
    """A list of integers such as 4,8,16."""

    name = "N,N,…"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        """Return the integers in the order given."""
        if isinstance(value, tuple):
            return value
        items = value if isinstance(value, list) else str(value).split(",")  # a list in a file of settings
        try:
            return tuple(int(str(item)) for item in items)
        except ValueError:
            self.fail(f"{value!r} is not a list of integers such as 4,8,16", param, ctx)


class Names(Typed[tuple[str, ...]]):
    """A list of names such as yes-no,counting."""

    name = "NAME,NAME,…"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """Return the names in the order given."""
        if isinstance(value, tuple):
            return value
        items = map(str, value) if isinstance(value, list) else str(value).split(",")
        return tuple(item.strip() for item in items if item)


class Range(Typed[tuple[int, int]]):
    """A range of integers such as 100-250, or one integer."""

    name = "LOW-HIGH"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        """Return both ends."""
        if isinstance(value, tuple):
            return (value[0], value[1])
        low, dash, high = str(value).partition("-")
        try:
            return (int(low), int(high if dash else low))
        except ValueError:
            self.fail(f"{value!r} is not a range such as 100-250", param, ctx)


class Part(Typed[tuple[int, int]]):
    """A part such as 2/8: the second of eight."""

    name = "I/N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        """Return part and number of parts."""
        if isinstance(value, tuple):
            return (value[0], value[1])
        one, _, of = str(value).partition("/")
        if not (one.isdecimal() and of.isdecimal() and 1 <= int(one) <= int(of)):
            self.fail(f"{value!r} is not a part such as 2/8", param, ctx)
        return (int(one), int(of))
