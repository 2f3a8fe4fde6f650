"""The verdicts of the page of results are those that the rules give."""

import pytest

from papers import verdicts


@pytest.mark.slow
@pytest.mark.skipif(not (verdicts.FOLDER / "vadaboost" / "results.parquet").exists(), reason="needs the stored tables")
def test_the_page_has_the_verdicts_of_the_stored_tables():
    found = verdicts.verdicts()
    assert verdicts.table(found) in (verdicts.FOLDER / "README.md").read_text(encoding="utf-8")
    assert verdicts.beside_others() in (verdicts.FOLDER / "README.md").read_text(encoding="utf-8")
    assert {one.word for one in found} == {verdicts.MATCHES, verdicts.IN_PART, verdicts.DIFFERS}
    (robust,) = (one for one in found if one.published.endswith("robustness raises the accuracy"))
    assert robust.word == verdicts.DIFFERS
