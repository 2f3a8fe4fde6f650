"""The first and last sections of a report: the verdict, what to do next, the request, data, settings, commands."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from counterpoise.goals.rates import is_maximized
from counterpoise.report.rates import cost_words, deferral_fact, deferral_sentence
from counterpoise.report.sections import (
    GoalCard,
    PageTable,
    decider_names,
    frontier_points,
    is_at_least,
    is_ratio,
    loss_word,
    noun,
    objective_fact,
    objective_lines,
    objective_sentence,
    points_at,
    reported_objective,
)
from counterpoise.report.wording import (
    FAILS,
    HOLDS,
    UNDECIDED,
    UNKNOWN,
    Noted,
    Verdict,
    cost_sentence,
    count,
    fraction,
    many,
    number,
    percent,
    points,
    stand_on_rows,
    tail_sentence,
    verdict_of,
)
from counterpoise.runs.result import GoalResult, RunResult
from counterpoise.runs.results import DEPLOYED, FIRST, MIXTURE, TEST

_MOST_TIMES = 1000.0  # as many rows: more is no advice
_DIGITS = 2  # of a number of rows that is a guess


def next_steps(result: RunResult, cards: Sequence[GoalCard]) -> list[str]:
    """Return what can be done, in sentences, the most urgent first."""
    open_ones = [card for card in cards if card.verdict in (FAILS, UNDECIDED)]
    to_reach = list(_to_reach(result, cards))
    steps = [
        *_misses(result, cards),
        *to_reach,
        *(step for card in open_ones for step in _steps(result, card)),
        *result.advice,
    ]
    if any(card.is_met is not True for card in open_ones) or any(card.verdict is FAILS for card in open_ones):
        steps += () if to_reach else _aim(result)
    elif open_ones and math.isfinite(result.confidence):
        steps.append(f"Or raise confidence above {result.confidence:g}, which keeps larger margins.")
    if cards and all(card.verdict is HOLDS for card in cards):
        steps.append("Repeat the audit on new rows from time to time.")
    return [*steps, *_behind_deployed(result), *_margin_price(result), *_dearest(result, cards)]


def _misses(result: RunResult, cards: Sequence[GoalCard]) -> Iterator[str]:
    """Yield every goal that the rows miss: first those that are shown to fail, then by how much."""
    standings = [(card, goal.on(result.judged)) for card, goal in zip(cards, result.goals, strict=True)]
    missed = [(card, one) for card, one in standings if one.violation > 0]
    for card, one in sorted(missed, key=lambda pair: (pair[0].verdict is not FAILS, -pair[1].violation)):
        yield f"{_upper(card.name)} is {stand_on_rows(one.violation)} on the {result.judged} rows."


def _to_reach(result: RunResult, cards: Sequence[GoalCard]) -> Iterator[str]:
    """Yield what helps where margins do not reach the confidence, and the rows leave goals open."""
    if any("was not reached" in sentence for sentence in _confidence_reached(result, cards)):
        yield "To be surer, loosen a bound, or train and choose on more rows, until the confidence is reached."


def _behind_deployed(result: RunResult) -> Iterator[str]:
    """Yield in what the deployed model is better, a goal that it misses by less or the errors, and in what worse."""
    behind, ahead = [], []
    for place, goal in enumerate(result.goals, start=1):
        ours, deployed = goal.on(result.judged), goal.on(result.judged, DEPLOYED)
        if ours.violation > 0 and ours.violation > deployed.violation:
            behind.append(f"goal {place} ({number(deployed.estimate)} in place of {number(ours.estimate)})")
        elif deployed.violation > max(ours.violation, 0.0):
            ahead.append(f"goal {place} ({number(deployed.estimate)} in place of {number(ours.estimate)})")
    ours_wrong, deployed_wrong = result.losses().error, result.losses(DEPLOYED).error
    if deployed_wrong < ours_wrong and percent(deployed_wrong) != percent(ours_wrong):
        behind.append(f"the share wrong ({percent(deployed_wrong)} in place of {percent(ours_wrong)})")
    elif ours_wrong < deployed_wrong and percent(deployed_wrong) != percent(ours_wrong):
        ahead.append(f"the share wrong ({percent(deployed_wrong)} in place of {percent(ours_wrong)})")
    if behind:
        worse = f", and worse in {_join_names(ahead)}" if ahead else ""
        yield f"The deployed model is better in {_join_names(behind)}{worse}."


def _steps(result: RunResult, card: GoalCard) -> Iterator[str]:
    """Yield about how many rows would decide an undecided goal that is met."""
    standing = result.goals[int(card.name.removeprefix("goal ")) - 1].on(result.judged)
    estimate, low, high, bound = standing.estimate, standing.low, standing.high, standing.bound
    gap, width = abs(estimate - bound), estimate - low if estimate >= bound else high - estimate
    if card.verdict is FAILS or not card.is_met or not gap > 0 or not math.isfinite(width):
        return
    times, all_rows = (width / gap) ** 2, result.splits[result.judged].rows
    if 1 < times < _MOST_TIMES:
        about = "" if math.isnan(all_rows) else f" (about {count(float(f'{times * all_rows:.{_DIGITS}g}'))})"
        yield (
            f"{_upper(card.name)} is inside its bound by {number(gap)}: {float(f'{times:.{_DIGITS}g}'):g} times "
            f"as many {result.judged} rows{about} would show it, if it stays there."
        )


def _aim(result: RunResult) -> Iterator[str]:
    """Yield how to get on the right side of bounds."""
    if result.settings.get("confidence") == "none" and result.met_on and not result.is_drawn:
        yield "Set confidence = 0.9, which keeps a margin inside of each bound, so that the goals hold on new rows."
    elif result.is_mixture or result.met_on:
        yield "Loosen a bound, add rows, or let decisions use more columns (method.parameters.by)."


def _margin_price(result: RunResult) -> Iterator[str]:
    """Yield what the margins cost, where that shows."""
    cost, aim = result.margin_cost, reported_objective(result)
    if math.isfinite(cost) and aim.show(cost) != aim.show(0.0):
        yield f"The margins for new rows raise {aim.text} by {number(cost) if aim.is_code else points(cost)}."


def _dearest(result: RunResult, cards: Sequence[GoalCard]) -> Iterator[str]:
    """Yield which goal costs most of what was minimised, where the decisions were chosen."""
    aim, costs = reported_objective(result), []
    for card, goal in zip(cards, result.goals, strict=True):
        points = frontier_points(goal)
        at = [value for _, value, _ in points_at(card.bound, points)]
        if at and (result.certificate or is_ratio(card.text)):  # of which a few bounds near its own were tried
            # not the loosest bound, which can cost more: of a lower average loss a budget allows less for the tail
            bound, least, _ = min(points, key=lambda point: point[1])
            costs.append((at[0] - least, at[0], card.name, f"with the bound {number(bound)}"))
        elif at:  # a frontier ends where all is as without its goal
            least = points[0 if is_at_least(card.text) else -1][1]
            costs.append((at[0] - least, at[0], card.name, "without it"))
    cost, value, name, changed = max(costs, default=(0.0, 0.0, "", ""))
    if len(costs) > 1 and cost > 0 and aim.show(value) != aim.show(value - cost):
        yield (
            f"{_upper(name)} costs most: {changed} {aim.text} could be {aim.show(value - cost)} in place of "
            f"{aim.show(value)} where decisions were chosen."
        )


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


DEPLOY, DEPLOY_WITH_CAUTIONS, DO_NOT_DEPLOY = "Deploy", "Deploy with cautions", "Do not deploy"
_SIGNS = {DEPLOY: HOLDS, DEPLOY_WITH_CAUTIONS: UNDECIDED._replace(sign="!"), DO_NOT_DEPLOY: FAILS}
RULE = {
    DEPLOY: "the test rows show that every goal holds, and the deployed model, if there is one, is better in nothing.",
    DEPLOY_WITH_CAUTIONS: "no goal is shown to fail, and no deployed model meets every goal at a better objective. "
    "Where the test rows are too few to show that a goal holds, they meet it, and decisions were chosen with margins "
    "or would replace those of a deployed model; or they miss it by less than a standard error, the margins reach the "
    "confidence requested, and the deployed model is no nearer to it.",
    DO_NOT_DEPLOY: "in all other cases.",
}
_MISSED = FAILS.sign
_PAIR = 2  # goals: "both" and "either" in a sentence
_ERRORS = 2.0  # standard errors, at least, from an estimate to the end of its interval


class Headline(NamedTuple):
    """Whether to deploy, what that rests on, and what to do next."""

    verdict: Verdict
    title: str
    sentences: Sequence[str]
    steps: Sequence[str]


def headline(result: RunResult, cards: Sequence[GoalCard]) -> Headline:
    """Return whether the goals hold, how small the objective is and what it costs, in plain words."""
    title, goal_sentences = _goals_in_words(cards, result.judged)
    decision = decide(result, cards)
    mixture, first, deployed = (result.losses(decider).error for decider in (MIXTURE, FIRST, DEPLOYED))
    words = {"rows": result.judged, "noun": noun(result), "cause": _what_costs(result, cards)}
    sentences = [
        *goal_sentences,
        *_confidence_reached(result, cards),
        deferral_sentence(result),
        objective_sentence(result),
        _tail(result),
    ]
    sentences += [cost_sentence(mixture=mixture, first=first, **words), _beside_deployed(mixture, deployed)]
    sentences += _misses_of_deployed(result, cards)
    head = decision if result.judged == TEST else f"{decision}, as there are no test rows"
    title = f"{head}: {title[0].lower()}{title[1:]}" if cards else title
    verdict = _SIGNS[decision] if cards else UNKNOWN
    return Headline(verdict, title, [one for one in sentences if one], next_steps(result, cards))


def decide(result: RunResult, cards: Sequence[GoalCard]) -> str:
    """Return whether to deploy, as ``RULE`` says."""

    def is_acceptable(card: GoalCard, goal: GoalResult) -> bool:
        """Return whether a goal that the rows leave open is met, or missed by chance, and better so than before."""
        ours, deployed, margin = goal.on(result.judged), goal.on(result.judged, DEPLOYED), goal.margin
        has_margin = margin is not None and not margin.reason
        if card.verdict is not UNDECIDED:
            return False
        if card.is_met:
            return has_margin or math.isfinite(deployed.violation)
        is_near = abs(ours.estimate - ours.bound) < max(ours.estimate - ours.low, ours.high - ours.estimate) / _ERRORS
        is_nearer = deployed.violation < ours.violation
        return is_near and has_margin and math.isfinite(result.confidence) and not is_nearer

    pairs = zip(cards, result.goals, strict=True)
    can_hold = all(card.verdict is HOLDS or is_acceptable(card, goal) for card, goal in pairs)
    if result.judged != TEST or not can_hold or _deployed_is_better(result):
        return DO_NOT_DEPLOY
    is_shown = all(card.verdict is HOLDS for card in cards)
    return DEPLOY if is_shown and not any(_behind_deployed(result)) else DEPLOY_WITH_CAUTIONS


def _deployed_is_better(result: RunResult) -> bool:
    """Return whether the deployed model meets all goals on the rows that count, at a better objective."""
    standings = [goal.on(result.judged, DEPLOYED) for goal in result.goals]
    if not all(one.violation <= 0 for one in standings):  # or was not measured
        return False
    aim, ours, deployed = reported_objective(result), result.losses(), result.losses(DEPLOYED)
    if aim.has_values:
        better = deployed.objective > ours.objective if is_maximized(aim.text) else deployed.objective < ours.objective
        return better and aim.show(ours.objective) != aim.show(deployed.objective)
    one, other = (losses.tail(result.tail).value if aim.is_tail else losses.error for losses in (ours, deployed))
    return other < one and percent(other) != percent(one)


def _confidence_reached(result: RunResult, cards: Sequence[GoalCard]) -> Iterator[str]:
    """Yield whether margins support goals that the rows are too few to show."""
    if not any(card.verdict is UNDECIDED for card in cards) or not result.met_on:
        return
    level = result.settings.get("confidence")
    if math.isfinite(result.confidence):
        yield f"Where decisions were chosen, margins reach the confidence of {result.confidence:g}."
    elif level in (None, "none"):
        yield "Decisions were chosen without margins, so goals that are just met may fail on new rows."
    else:
        likely = result.probability
        how = f": the goals hold together with a probability of about {likely:.2f}" if math.isfinite(likely) else ""
        yield f"The confidence of {level} was not reached where decisions were chosen{how}."


def _beside_deployed(ours: float, deployed: float) -> str:
    """Return how much better, or worse, the model is than the one in its place."""
    if not math.isfinite(deployed) or not math.isfinite(ours):
        return ""
    text = f"The deployed model gets {percent(deployed)} wrong"
    if percent(deployed) == percent(ours):
        return f"{text}, as many."
    return f"{text}: {points(deployed - ours)} {'more' if deployed > ours else 'less'}."


def _misses_of_deployed(result: RunResult, cards: Sequence[GoalCard]) -> Iterator[str]:
    """Yield which goals the deployed model misses."""
    standings = [goal.on(result.judged, DEPLOYED) for goal in result.goals]
    missed = [
        f"{card.name} ({number(standing.estimate)})"
        for card, standing in zip(cards, standings, strict=True)
        if standing.violation > 0
    ]
    if missed:
        yield f"It misses {_join_names(missed)}."


def comparison(result: RunResult, cards: Sequence[GoalCard]) -> PageTable | None:
    """Return every goal and the error on the rows that count, for the model and those it is compared with."""
    deciders = [decider for decider in (MIXTURE, FIRST, DEPLOYED) if decider in decider_names(result)]
    if len(deciders) == 1 or not cards:
        return None
    rows: list[list[str | Noted]] = []
    for card, goal in zip(cards, result.goals, strict=True):
        standings = [goal.on(result.judged, decider) for decider in deciders]
        cells = [number(one.estimate) + f"\N{NO-BREAK SPACE}{_MISSED}" * (one.violation > 0) for one in standings]
        rows.append([card.text, Noted(card.verdict, ""), *cells])
    errors = [result.losses(decider).error for decider in deciders]
    aim = "minimised" if reported_objective(result).text.startswith("the share wrong of all") else ""
    rows.append(["share wrong" + (", expected" if result.is_drawn else ""), aim, *map(number, errors)])
    heads = ("goal", "verdict", *(decider_names(result)[decider] for decider in deciders))
    caption = f"On the {result.judged} rows, which goals without a dataset are about; {_MISSED} misses the bound"
    return PageTable(caption, heads, rows, wide=(1,))


def drawn_table(result: RunResult, cards: Sequence[GoalCard]) -> PageTable | None:
    """Return what the drawn decisions come to beside what was expected; nothing where nothing is drawn."""
    if result.drawn is None:
        return None
    rows: list[list[str | Noted]] = []
    for card, goal in zip(cards, result.goals, strict=True):
        if goal.drawn is not None:
            verdict = Noted(verdict_of(goal.drawn.verdict), stand_on_rows(goal.drawn.violation))
            numbers = number(goal.on(result.judged).estimate), number(goal.drawn.estimate)
            rows.append([card.text, *numbers, verdict])
    losses = result.losses()
    rows.append(["share wrong", number(losses.error), number(result.drawn.error), ""])
    if result.tail is not None:
        label = f"{loss_word(result)}, worst-off {fraction(result.tail)}"
        rows.append([label, number(losses.tail(result.tail).value), number(result.drawn.cvar), ""])
    heads = ("goal", "expected", "of the drawn decisions", "verdict on the drawn decisions")
    return PageTable(f"Of the drawn decisions, {result.judged} rows", heads, rows, wide=(3,))


def _what_costs(result: RunResult, cards: Sequence[GoalCard]) -> str:
    """Return what was wanted beside few errors; nothing where the model was not chosen for it."""
    tail = "The tail" if reported_objective(result).is_tail else ""
    if result.deferral is not None:  # who decides about fewer rows errs on fewer
        return ""
    inside = bool(cards) and bool(result.met_on)
    return f"{tail} and the goals" if tail and inside else tail


def _tail(result: RunResult) -> str:
    alpha = result.tail
    if alpha is None:
        return ""
    ours, first = result.losses().tail(alpha), result.losses(FIRST).tail(alpha).value
    words: dict[str, Any] = {"rows": result.judged, "noun": noun(result), "cost": cost_words(result)}
    return tail_sentence(mixture=ours.value, first=first, alpha=alpha, realised=ours.realised, **words)


def _goals_in_words(cards: Sequence[GoalCard], split: str) -> tuple[str, list[str]]:
    """Return how many goals have which verdict, and sentences on those that are not shown to hold."""
    if not cards:
        return "No goals were set, so there is nothing to decide by", []
    tally = Counter(card.verdict for card in cards)
    worst = next(verdict for verdict in (FAILS, UNDECIDED, UNKNOWN, HOLDS) if tally[verdict])
    are_met = all(card.is_met for card in cards if card.verdict is UNDECIDED)
    is_mixed = tally[worst] < len(cards)
    title = _count_verdicts(tally, len(cards), are_met=are_met) if is_mixed else _all_alike(worst, len(cards))
    if worst is HOLDS:
        shown = f"The {split} rows show it{_confidence(cards)}."
        return title, [shown]
    named = {verdict: [card.name for card in cards if card.verdict is verdict] for verdict in tally}
    sentences = []
    if tally[FAILS]:
        sentences.append(f"{_subject(named[FAILS])} shown by the {split} rows to fail{_confidence(cards)}.")
    if tally[UNDECIDED]:
        sentences.append(_undecided_sentence(cards, named[UNDECIDED], split))
    if tally[UNKNOWN]:
        sentences.append(f"{_subject(named[UNKNOWN])} not measured on the {split} rows.")
    return title, sentences


def _all_alike(verdict: Verdict, n_goals: int) -> str:
    """Return a title for goals of one verdict."""
    one, more = {
        HOLDS: ("holds", "hold"),
        FAILS: ("fails", "fail"),
        UNDECIDED: ("is not shown to hold", "are not shown to hold"),
        UNKNOWN: ("was not measured", "were not measured"),
    }[verdict]
    if n_goals == 1:
        return f"The goal {one}"
    if verdict is UNDECIDED:
        return f"{'Neither goal' if n_goals == _PAIR else f'None of {n_goals} goals'} is shown to hold"
    return f"{'Both' if n_goals == _PAIR else f'All {n_goals}'} goals {more}"


def _count_verdicts(tally: Mapping[Verdict, int], n_goals: int, *, are_met: bool) -> str:
    """Return a title for goals of several verdicts; ``are_met`` says that the rows meet those that are undecided."""
    words = {FAILS: "fails" if tally[FAILS] == 1 else "fail", UNDECIDED: "not shown", UNKNOWN: "not measured"}
    words |= {UNDECIDED: "met but not shown"} if are_met else {}
    holding = f"{tally[HOLDS]} of {many(n_goals, 'goal')} {'holds' if tally[HOLDS] == 1 else 'hold'}"
    return ", ".join([holding, *(f"{tally[verdict]} {word}" for verdict, word in words.items() if tally[verdict])])


def _undecided_sentence(cards: Sequence[GoalCard], names: Sequence[str], split: str) -> str:
    """Return how the rows themselves stand, and which goals they leave open."""
    n_met = _n_met(cards)
    if n_met is None:
        verb = "hold" if len(names) > 1 else "holds"
        return f"The {split} rows are too few to show whether {_join_names(names)} {verb}."
    if len(cards) == 1:
        return f"On the {split} rows as they are it is {'met' if n_met else 'missed'}; they are too few to be sure."
    standing = f"{n_met} of {len(cards)} goals {'is' if n_met == 1 else 'are'} met"
    which = _join_names(names) if len(names) < len(cards) else "either" if len(names) == _PAIR else "any"
    return f"On the {split} rows as they are {standing}; they are too few to be sure of {which}."


def _n_met(cards: Sequence[GoalCard]) -> int | None:
    """Return how many goals are met on the rows as they are; None where that was not measured."""
    met = [card.is_met for card in cards if card.is_met is not None]
    return sum(met) if len(met) == len(cards) else None


def _confidence(cards: Sequence[GoalCard]) -> str:
    levels = {card.confidence for card in cards}
    return f", with confidence {levels.pop()}" if len(levels) == 1 and "" not in levels else ""


def _join_names(names: Sequence[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def _subject(names: Sequence[str]) -> str:
    """Return names and a verb as the beginning of a sentence."""
    return _upper(f"{_join_names(names)} {'are' if len(names) > 1 else 'is'}")


def facts(result: RunResult, cards: Sequence[GoalCard]) -> list[tuple[str, str, str]]:
    """Return the numbers to see at a glance."""
    split, lines = result.judged, []
    if cards:
        holding = sum(card.verdict is HOLDS for card in cards)
        n_met = _n_met(cards)
        beside = f"on the {split} rows" if n_met is None else f"{n_met} met on the {split} rows as they are"
        lines.append(("Goals shown to hold", f"{holding} of {len(cards)}", beside))
    lines += [one for one in (objective_fact(result), deferral_fact(result)) if one]
    expected = ", expected" if result.is_drawn else ""  # over the draws
    names = {MIXTURE: "", FIRST: "plain training", DEPLOYED: "deployed"}
    tails = {name: result.losses(one).tail(result.tail) for one, name in names.items()}
    errors = {name: result.losses(one).error for one, name in names.items()}
    quantities = {"Wrong, all rows": errors}
    if result.tail is not None:
        worst = f"{loss_word(result)}, worst-off {fraction(result.tail)}"
        quantities = {worst: {name: one.value for name, one in tails.items()}, **quantities}
    for label, values in quantities.items():
        if math.isfinite(values[""]):
            others = [f"{name}: {percent(value)}" for name, value in values.items() if name and math.isfinite(value)]
            if values is not errors and math.isfinite(tails[""].realised):
                others.insert(0, f"once drawn: {percent(tails[''].realised)}")
            if values is not errors and tails[""].high < 1:
                others.append(f"new rows: at most {percent(tails[''].high)} (confidence 0.95)")
            lines.append((label + expected, percent(values[""]), ", ".join(others)))
    rows = result.splits[split].rows if split in result.splits else math.nan
    if math.isfinite(rows):
        lines.append((f"{split.capitalize()} rows", count(rows), "used for the audit"))
    return lines


def request_lines(result: RunResult, cards: Sequence[GoalCard]) -> list[tuple[str, str]]:
    """Return what the run was to do, as terms and their meaning."""
    lines = [("Data", result.data.name)]
    known = {
        "Predict": _part(result.settings, "data", "target"),
        "Positive class": _part(result.settings, "data", "positive"),
        "Method": result.method or _part(result.settings, "method", "name"),
    }
    lines += [(term, text) for term, text in known.items() if text]
    lines += [("Left to a person", f"hard cases: {cost_words(result)}")] if result.deferral is not None else []
    inside = [(f"Inside {card.name}", card.text) for card in cards]
    if any(goal.margin is not None for goal in result.goals):
        level = result.settings.get("confidence")
        reached = "reached by the margins; the audit is a separate check"
        if result.proof_rows:
            reached = f"proven by exact tests on {result.proof_rows:,} rows that the choice did not use"
        elif not math.isfinite(result.confidence):
            reached = "not reached: goals may fail on new rows more often"
        elif result.settings.get("proof"):
            reached = "reached about, but not proven: no rule passed the tests"
        pairs = zip(cards, result.goals, strict=False)
        without = [card.name for card, goal in pairs if goal.margin and goal.margin.reason and not result.proof_rows]
        which = f"all goals but {', '.join(without)} together" if without else "all goals together"
        inside.append(("On new rows", f"{which}, with a confidence of {level} ({reached})"))
    return [*lines, *objective_lines(result), *inside]


def _part(settings: Mapping[str, Any], table: str, key: str) -> str:
    """Return one setting of a table of the goals file, nothing where it is not set."""
    part = settings.get(table)
    value = part.get(key) if isinstance(part, Mapping) else None
    return "" if value is None else str(value)


def data_table(result: RunResult) -> PageTable:
    """Return how many rows each split has, and the plain errors there."""
    deciders, rows = decider_names(result), []
    for split, part in result.splits.items():
        errors = [result.losses(decider, split).error for decider in deciders]
        rows.append([split, count(part.rows), *map(percent, errors)])
    heads = ("rows of", "rows", *(f"wrong: {name}" for name in deciders.values()))
    return PageTable("Rows and plain errors", heads, rows)


def class_table(result: RunResult) -> PageTable | None:
    """Return the share of each class in the rows of each split."""
    labels = dict.fromkeys(label for part in result.splits.values() for label in part.classes)
    rows = [
        [label, *(percent(part.classes.get(label, math.nan)) for part in result.splits.values())] for label in labels
    ]
    return PageTable("Classes", ("class", *(f"{split} rows" for split in result.splits)), rows) if rows else None


def times_table(result: RunResult) -> PageTable | None:
    """Return how long the run took."""
    rows = [[part, f"{value:,.2f}"] for part, value in result.seconds.items()]
    return PageTable("Time", ("part", "seconds"), rows) if rows else None


def description(result: RunResult) -> list[str]:
    """Return what the data are."""
    columns = result.data.n_features
    features = [f"The model sees {many(int(columns), 'column')}."] if math.isfinite(columns) else []
    return [*result.data.lines, *features]
