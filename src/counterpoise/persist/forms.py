"""Every value that is stored as plain parts: how it is taken apart and put together."""

from typing import Any

from counterpoise.persist.boosted import BOOSTED, UNCHECKED, boosted_form_of
from counterpoise.persist.scikit_learn import PARTS, part_form_of
from counterpoise.persist.values import VALUES, value_form_of

FORMS = {**VALUES, **BOOSTED, **PARTS}
__all__ = ["FORMS", "UNCHECKED", "form_of"]


def form_of(value: Any) -> str | None:
    """Return the name of the form of a value, or None where it has none."""
    return value_form_of(value) or boosted_form_of(value) or part_form_of(value)
