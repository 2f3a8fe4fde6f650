"""What figures of a report draw and say is what the results table holds, and nothing of it lies outside of the axes."""

import math

import numpy as np
import pytest
from run_folders import result_of, row

from counterpoise.report import figures
from counterpoise.report.rates import deferral_panel, rate_panels, score_panels
from counterpoise.report.sections import curve_panels, goal_panels
from counterpoise.report.wording import number, percent

Figure = pytest.importorskip("matplotlib.figure", reason="matplotlib is not installed").Figure

GROUP_SIZES = {"all": 900, **{f"group {place}": 20 * place for place in range(1, 17)}}


@pytest.fixture
def drawn(monkeypatch):
    """Return what is drawn: by name the axes, and what a reader hears."""
    found = {}

    def draw(name, title, message, fill, **_):
        axes = Figure().subplots()
        fill(axes)
        found[name] = axes, message, title

    monkeypatch.setattr(figures, "draw", draw)
    return found


def lines_of(axes):
    """Return the curves by their labels."""
    return {line.get_label(): line.get_xydata() for line in axes.lines if not line.get_label().startswith("_")}


def upright(axes):
    """Return where upright lines stand."""
    ends = [list(line.get_xdata()) for line in axes.lines]
    return [one[0] for one in ends if len(one) == 2 and one[0] == one[1]]


def spans(axes):
    """Return the ends of shaded parts."""
    return [(patch.get_x(), patch.get_x() + patch.get_width()) for patch in axes.patches if hasattr(patch, "get_x")]


def rate_record(value_of, sizes=GROUP_SIZES, more=()):
    rows = [row("mixture", "error", "test", 0.1)]
    for place, (name, size) in enumerate(sizes.items()):
        where = {"settings": f"group {place}"}
        rows.append(row("mixture", "group n_samples", "test", size, **where))
        rows.append(row("mixture", "group recall", "test", value_of(name), **where))
        rows += [row("mixture", f"group {quantity}", "test", value, **where) for quantity, value in more]
    words = {"groups": [{"name": f"group {place}", "text": name} for place, name in enumerate(sizes)]}
    return result_of(tuple(rows), words, {}, {})


def test_a_rate_is_drawn_for_all_rows_and_the_largest_groups(drawn):
    values = {name: 0.2 + size / 2000 for name, size in GROUP_SIZES.items()}
    (panel,) = rate_panels(rate_record(values.get, more=[("recall low", 0.1), ("recall high", 0.8)]))
    axes, told, _ = drawn["rate-recall"]
    shown = ["all", *(f"group {place}" for place in range(5, 17))]  # the smaller ones are left out, in their order
    assert panel.title == "recall"
    np.testing.assert_allclose(axes.lines[0].get_xdata(), [values[name] for name in shown])
    assert [label.get_text() for label in axes.get_yticklabels()] == shown
    assert told == "; ".join(f"{name} {percent(values[name])}" for name in shown) + "."
    (bars,) = axes.collections
    np.testing.assert_allclose([path[:, 0] for path in bars.get_segments()], [[0.1, 0.8]] * 13)
    assert upright(axes) == [values["all"]]
    low, high = axes.get_xlim()
    assert -0.02 <= low < 0.1
    assert 0.8 < high <= 1.02


@pytest.mark.parametrize(
    ("values", "ends", "show"),
    [
        ((0.0, 1.0), (-0.02, 1.02), percent),  # shares of rows are never outside of 0 and 1
        ((0.4, 0.4), (0.35, 0.45), percent),
        ((-2.0, 8.0), (-2.02, 8.02), number),  # a metric of a user's own may be any number
    ],
)
def test_the_axis_of_a_rate_has_every_dot_and_nothing_impossible(drawn, values, ends, show):
    rate_panels(rate_record(dict(zip(("all", "F"), values, strict=True)).get, {"all": 40, "F": 10}))
    axes, told, _ = drawn["rate-recall"]
    np.testing.assert_allclose(axes.get_xlim(), ends)
    assert told == f"all {show(values[0])}; F {show(values[1])}."


def test_a_rate_that_one_group_has_is_not_drawn(drawn):
    record = rate_record({"all": 0.4, "F": math.nan}.get, {"all": 40, "F": 10})
    assert rate_panels(record) == []
    assert drawn == {}


def test_rates_that_are_counts_are_shares_and_others_plain_numbers():
    from counterpoise.report.rates import group_table  # noqa: PLC0415

    counted = rate_record(lambda _: 0.5, {"all": 40}, [("recall rows", 20), ("cost", 0.25)])
    assert group_table(counted).rows == [["all", "40", percent(0.5), number(0.25)]]
    weighted = rate_record(lambda _: 0.5, {"all": 40}, [("cost", 1.25)])
    assert group_table(weighted).rows == [["all", "40", percent(0.5), number(1.25)]]


def score_record(rules):
    bars = {"positive": (1, 2, 5, 8), "negative": (4, 3, 2, 1)}
    rows = [
        row(f"panel {panel}", f"scores {kind}", "validation", panel * count, settings=f"bin {place}")
        for panel in (1, 2)
        for kind, counts in bars.items()
        for place, count in enumerate(counts, start=1)
    ]
    entries = [{"name": f"panel {panel}", "text": f"sex={panel}", "low": -1.0, "high": 3.0} for panel in (1, 2)]
    entries[1]["rules"] = rules
    return result_of(tuple(rows), {"scores": entries}, {}, {}), bars


def test_scores_are_drawn_as_parts_of_their_class_with_thresholds(drawn):
    record, bars = score_record([{"threshold": 0.5, "share": 0.75}, {"threshold": 1.5, "share": 0.1, "lower": 0.25}])
    assert [panel.title for panel in score_panels(record)] == ["sex=1", "sex=2"]
    plain, told, _ = drawn["scores-1"]
    assert told == "Thresholds: none inside."
    assert plain.get_xlabel() == "score; upright: thresholds"
    axes, told, _ = drawn["scores-2"]
    assert told == (
        f"Thresholds: 0.5000 for {percent(0.75)} of the people; 1.5000 (deferred from 0.2500) for {percent(0.1)} of "
        "the people."
    )
    assert axes.get_xlabel() == "score; shaded: deferred"
    for patch, (kind, counts) in zip(axes.patches, bars.items(), strict=False):
        heights, edges, _ = patch.get_data()
        assert patch.get_label() == kind
        np.testing.assert_allclose(heights, np.array(counts) / sum(counts))
        np.testing.assert_allclose(edges, [-1, 0, 1, 2, 3])
    found = {line.get_xdata()[0]: line.get_alpha() for line in axes.lines}
    assert found == {0.5: 0.75, 1.5: 0.25, 0.25: 0.25}  # the likelier the darker, but none too faint to see
    (shade,) = [patch for patch in axes.patches if hasattr(patch, "get_x")]
    assert spans(axes) == [(0.25, 1.5)]
    assert shade.get_alpha() == pytest.approx(0.06)


def test_what_deferring_buys_is_drawn_by_limit(drawn):
    values = {"defer rate": (0.0, 0.04, 0.1), "tail": (0.9, 0.7, 0.4), "error": (0.3, 0.2, 0.1)}
    values["decided error"] = (0.31, 0.22, 0.13)
    rows = [row("mixture", "defer rate", "test", 0.07), row("mixture", "error", "test", 0.3)]
    for part, three in values.items():
        for limit, value in reversed(list(zip((0.0, 0.05, 0.2), three, strict=True))):
            for split, factor in (("validation", 0.5), ("test", 1.0)):
                where = {"settings": f"rate={limit!r}"}
                rows.append(row("mixture", f"deferral {part}", split, factor * value, **where))
    panel = deferral_panel(result_of(tuple(rows), {"deferral": {"cost": 0.2}}, {"alpha": 0.1}, {}))
    axes, told, _ = drawn["deferral"]
    tail = "loss of the worst-off 10\N{NO-BREAK SPACE}%"
    curves = lines_of(axes)
    np.testing.assert_allclose(curves[tail], np.column_stack([[0, 5, 20], values["tail"]]))
    np.testing.assert_allclose(curves["wrong"], np.column_stack([[0, 5, 20], values["error"]]))
    assert upright(axes) == pytest.approx([7.0])
    ends = {percent(0.0): (0.9, 0.3), percent(0.2): (0.4, 0.1)}
    assert (
        told
        == ". ".join(
            f"At most {limit} deferred: {tail} {percent(worst)}, wrong {percent(wrong)}"
            for limit, (worst, wrong) in ends.items()
        )
        + "."
    )
    assert panel.note.startswith("Each limit is on the validation rows")
    assert "the other columns are on rows not used for choosing" in panel.note


@pytest.mark.parametrize("sense", [">=", "<="])
def test_a_goal_is_drawn_with_the_side_that_it_allows(drawn, sense):
    rows = [row("mixture", "error", "test", 0.1)]
    values = {"train": (0.9, 0.85, 0.97, 0.6), "test": (0.7, 0.4, 0.75, 0.98)}
    for split, parts in values.items():
        for name, value in zip(("estimate", "low", "high"), parts, strict=False):
            rows.append(row("mixture", f"goal {name}", split, value, settings="goal 1"))
        rows.append(row("first model", "goal estimate", split, parts[3], settings="goal 1"))
        rows.append(row("mixture", "goal bound", split, 0.8, settings="goal 1"))
    texts = {"goals": [{"name": "goal 1", "text": f"recall {sense} 0.8"}]}
    goal_panels(result_of(tuple(rows), texts, {}, {}))
    axes, told, _ = drawn["goal-1"]
    dots, plain, *_ = axes.lines
    np.testing.assert_allclose(dots.get_xydata(), [[0.9, 0], [0.7, 1]])
    np.testing.assert_allclose(plain.get_xydata(), [[0.6, 0], [0.98, 1]])
    assert upright(axes) == [0.8]
    low, high = axes.get_xlim()
    assert low < 0.4
    assert high > 0.98
    np.testing.assert_allclose(spans(axes), [(0.8, high) if sense == ">=" else (low, 0.8)])
    assert told == "train 0.9000, from 0.8500 to 0.9700; test 0.7000, from 0.4000 to 0.7500. The bound is 0.8000."


def test_curves_of_three_methods_are_drawn_on_each_split(drawn):
    alphas, methods = (0.01, 0.1, 1.0), ("mixture", "first model", "average", "deployed model")
    rows, values = [], {}
    for place, method in enumerate(methods):
        for split, more in (("train", 0.0), ("test", 0.01)):
            values[method, split] = [0.9 - 0.1 * place + more, 0.5 - 0.1 * place + more, 0.4 - 0.1 * place + more]
            pairs = zip(alphas, values[method, split], strict=True)
            rows += [row(method, "cvar", split, value, alpha=alpha) for alpha, value in reversed(list(pairs))]
    curve_panels(result_of(tuple(rows), {}, {"alpha": 0.1}, {}))
    for place, split in enumerate(("train", "test"), start=1):
        axes, told, _ = drawn[f"cvar-{place}"]
        curves = lines_of(axes)
        for method, name in zip(methods, ("model", "plain training", "average of all"), strict=False):
            np.testing.assert_allclose(curves[name], np.column_stack([alphas, values[method, split]]))
        assert len(curves) == 3
        assert upright(axes) == [0.1]
        for alpha, level in zip(alphas, ("1", "10", "100"), strict=True):
            text = ", ".join(
                f"{name} {percent(values[method, split][alphas.index(alpha)])}"
                for method, name in zip(methods, ("model", "plain training", "average of all"), strict=False)
            )
            assert f"Worst-off {level}\N{NO-BREAK SPACE}%: {text}" in told


def test_a_frontier_is_drawn_and_told_with_its_ends(drawn):
    points = [(0.05 * place, 0.5 - 0.02 * place, 0.5 - 0.03 * place) for place in range(11)]
    figures.frontier_figure("frontier-1", "goal", points, "least error", percent, 0.25)
    axes, told, _ = drawn["frontier-1"]
    np.testing.assert_allclose(axes.lines[0].get_xydata(), [point[:2] for point in points])
    assert 0.25 in upright(axes)
    shown = [points[place] for place in (0, 2, 5, 8, 10)]
    assert told == "; ".join(f"bound {number(bound)}: {percent(value)}" for bound, value, _ in shown) + "."


def test_names_that_begin_alike_are_told_apart_beside_an_axis(drawn):
    names = ["all", *(f"marital_status=Married-{kind}-spouse" for kind in ("civ", "AF", "absent"))]
    figures.rate_figure("rates", "recall", [figures.Dot(name, 0.5) for name in names], percent)
    labels = [label.get_text() for label in drawn["rates"][0].get_yticklabels()]
    assert len(set(labels)) == len(names)
    assert all(len(label) <= 20 for label in labels)


def test_noise_of_a_frontier_is_no_slope(drawn):
    points = [(bound, 0.14 + 1e-6 * bound, 0.14) for bound in (0.1, 0.2, 0.3)]
    figures.frontier_figure("frontier", "recall >= 0.2", points, "least share wrong", percent, 0.2)
    low, high = drawn["frontier"][0].get_ylim()
    assert high - low == pytest.approx(0.05 * 0.14, rel=0.01)
