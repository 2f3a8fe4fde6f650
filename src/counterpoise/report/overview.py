"""The first and last sections of a report: the verdict, what changes for people, the request, data and settings."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from counterpoise.goals.rates import is_maximized
from counterpoise.report import figures
from counterpoise.report.rates import cost_words
from counterpoise.report.sections import (
    JudgedGoal,
    decider_names,
    frontier_points,
    is_at_least,
    is_ratio,
    judged_goals,
    loss_word,
    noun,
    objective_lines,
    parse_or_none,
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
from counterpoise.runs.result import RunResult
from counterpoise.runs.results import DEPLOYED, FIRST, MIXTURE, TEST
from counterpoise.runs.table import ResultTable

_MOST_TIMES = 1000.0  # as many rows: more is no advice
_DIGITS = 2  # of a number of rows that is a guess
_MOST_STEPS = 3  # on the first page
_MOST_GROUPS = 6  # columns of a table of changed decisions
_MOST_DRAWN = 12  # goals in the first figure


def next_steps(result: RunResult) -> list[str]:
    """Return what can be done, in sentences, the most urgent first."""
    goals = judged_goals(result)
    open_ones = [goal for goal in goals if goal.verdict in (FAILS, UNDECIDED)]
    to_reach = list(_to_reach(result))
    steps = [*_misses(result), *to_reach, *(step for goal in open_ones for step in _steps(result, goal))]
    steps += result.advice
    if any(goal.is_met is not True or goal.verdict is FAILS for goal in open_ones):
        steps += () if to_reach else _aim(result)
    elif open_ones and math.isfinite(result.confidence):
        steps.append(f"Or raise confidence above {result.confidence:g}, which keeps larger margins.")
    if goals and all(goal.verdict is HOLDS for goal in goals):
        steps.append("Repeat the audit on new rows from time to time.")
    return [*steps, *_behind_deployed(result), *_margin_price(result), *_dearest(result)]


def _misses(result: RunResult) -> Iterator[str]:
    """Yield every goal that the rows miss: first those that are shown to fail, then by how much."""
    missed = [goal for goal in judged_goals(result) if goal.standing.violation > 0]
    for goal in sorted(missed, key=lambda goal: (goal.verdict is not FAILS, -goal.standing.violation)):
        yield f"{_upper(goal.name)} is {stand_on_rows(goal.standing.violation)} on the {result.judged} rows."


def _to_reach(result: RunResult) -> Iterator[str]:
    """Yield what helps where margins do not reach the confidence, and the rows leave goals open."""
    if any("was not reached" in sentence for sentence in _confidence_reached(result)):
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


def _steps(result: RunResult, goal: JudgedGoal) -> Iterator[str]:
    """Yield about how many rows would decide an undecided goal that is met."""
    standing = goal.standing
    estimate, low, high, bound = standing.estimate, standing.low, standing.high, standing.bound
    gap, width = abs(estimate - bound), estimate - low if estimate >= bound else high - estimate
    if goal.verdict is FAILS or not goal.is_met or not gap > 0 or not math.isfinite(width):
        return
    times, all_rows = (width / gap) ** 2, result.splits[result.judged].rows
    if 1 < times < _MOST_TIMES:
        about = "" if math.isnan(all_rows) else f" (about {count(float(f'{times * all_rows:.{_DIGITS}g}'))})"
        yield (
            f"{_upper(goal.name)} is inside its bound by {number(gap)}: {float(f'{times:.{_DIGITS}g}'):g} times "
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


def _dearest(result: RunResult) -> Iterator[str]:
    """Yield which goal costs most of what was minimised, where the decisions were chosen."""
    aim, costs = reported_objective(result), []
    for one in judged_goals(result):
        points = frontier_points(one.goal)
        at = [value for _, value, _ in points_at(one.standing.bound, points)]
        if at and (result.certificate or is_ratio(one.text)):  # of which a few bounds near its own were tried
            # not the loosest bound, which can cost more: of a lower average loss a budget allows less for the tail
            bound, least, _ = min(points, key=lambda point: point[1])
            costs.append((at[0] - least, at[0], one.name, f"with the bound {number(bound)}"))
        elif at:  # a frontier ends where all is as without its goal
            least = points[0 if is_at_least(one.text) else -1][1]
            costs.append((at[0] - least, at[0], one.name, "without it"))
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
    """Whether to deploy, what that rests on, and what to do next: at most three lines, and what else helps."""

    verdict: Verdict
    title: str
    sentences: Sequence[str]
    steps: Sequence[str]
    more: Sequence[str]


def headline(result: RunResult) -> Headline:
    """Return whether to deploy, and why, in plain words."""
    goals = judged_goals(result)
    title, goal_sentences = _goals_in_words(goals, result.judged)
    decision = decide(result)
    head = decision if result.judged == TEST else f"{decision}, as there are no test rows"
    title = f"{head}: {title[0].lower()}{title[1:]}" if goals else title
    sentences = [*goal_sentences, *_confidence_reached(result), _error_sentence(result)]
    steps = next_steps(result)
    verdict = _SIGNS[decision] if goals else UNKNOWN
    return Headline(verdict, title, [one for one in sentences if one], steps[:_MOST_STEPS], steps[_MOST_STEPS:])


def _error_sentence(result: RunResult) -> str:
    """Return how wrong the model is, beside the others."""
    ours = result.losses().error
    if not math.isfinite(ours):
        return ""
    names = {"the deployed model": DEPLOYED, "plain training": FIRST}
    errors = {name: result.losses(decider).error for name, decider in names.items()}
    others = " and ".join(f"{name} {percent(error)}" for name, error in errors.items() if math.isfinite(error))
    beside = f", {others}" if others else ""
    return f"The {noun(result)} gets {percent(ours)} of the {result.judged} rows wrong{beside}."


def decide(result: RunResult) -> str:
    """Return whether to deploy, as ``RULE`` says."""

    def is_acceptable(goal: JudgedGoal) -> bool:
        """Return whether a goal that the rows leave open is met, or missed by chance, and better so than before."""
        ours, deployed, margin = goal.standing, goal.goal.on(result.judged, DEPLOYED), goal.goal.margin
        has_margin = margin is not None and not margin.reason
        if goal.verdict is not UNDECIDED:
            return False
        if goal.is_met:
            return has_margin or math.isfinite(deployed.violation)
        is_near = abs(ours.estimate - ours.bound) < max(ours.estimate - ours.low, ours.high - ours.estimate) / _ERRORS
        is_nearer = deployed.violation < ours.violation
        return is_near and has_margin and math.isfinite(result.confidence) and not is_nearer

    goals = judged_goals(result)
    can_hold = all(goal.verdict is HOLDS or is_acceptable(goal) for goal in goals)
    if result.judged != TEST or not can_hold or _deployed_is_better(result):
        return DO_NOT_DEPLOY
    is_shown = all(goal.verdict is HOLDS for goal in goals)
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


def _confidence_reached(result: RunResult) -> Iterator[str]:
    """Yield whether margins support goals that the rows are too few to show."""
    if not any(goal.verdict is UNDECIDED for goal in judged_goals(result)) or not result.met_on:
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


def inside_figure(result: RunResult) -> Markup | None:
    """Return the figure of all goals that are measured in shares: how far each is inside of its bound."""
    dots = []
    for goal in judged_goals(result)[:_MOST_DRAWN]:
        standing, parsed = goal.standing, parse_or_none(goal.text)
        numbers = standing.estimate, standing.low, standing.high, standing.bound
        if parsed is None or parsed.is_equality or not all(abs(one) <= 1 for one in numbers):  # NaN is not
            continue
        ends = sorted(parsed.sign * (standing.bound - end) for end in (standing.low, standing.high))
        dots.append(figures.Dot(goal.name, parsed.sign * (standing.bound - standing.estimate), *ends))
    return figures.inside_figure(dots, result.judged) if dots else None


def goals_table(result: RunResult) -> ResultTable:
    """Return every goal with its bound, its estimate and interval, and the verdict."""
    rows: list[list[str | Noted]] = []
    for goal in judged_goals(result):
        standing = goal.standing
        interval = f"{number(standing.estimate)} ({number(standing.low)} to {number(standing.high)})"
        rows.append([f"{goal.name}: {goal.text}", interval, Noted(goal.verdict, stand_on_rows(standing.violation))])
    levels = {goal.confidence for goal in result.goals if math.isfinite(goal.confidence)}
    level = f"; together with confidence {levels.pop():g}" if len(levels) == 1 else ""
    return ResultTable(f"What holds on the {result.judged} rows{level}", ("goal", "measured", "verdict"), rows)


class Swaps(NamedTuple):
    """What changes for people beside today's decisions: in a sentence, a figure and a table."""

    sentence: str
    figure: Markup
    table: ResultTable


def swaps(result: RunResult) -> Swaps | None:
    """Return who gets another decision than the deployed model's; nothing where that is not known."""
    classes = result.data.classes
    names: dict[int | None, str] = {None: "a person", **dict(enumerate(classes))}
    groups = list(dict.fromkeys(one.group for one in result.swaps if one.group))[:_MOST_GROUPS]
    cells = {(one.before, one.after, one.group): one for one in result.swaps}
    changes, rows = {}, []
    for (before, after, group), one in cells.items():
        if group:
            continue
        label = f"newly {names[after]} (today {names[before]})"
        changes[label] = (one.right, one.was_right, max(one.rows - one.right - one.was_right, 0.0))
        own = [cells[before, after, name] for name in groups]
        counts = [f"{count(swap.rows)} ({count(swap.right)} right)" for swap in own]
        rows.append([label, count(one.rows), count(one.right), count(one.was_right), *counts])
    if not changes:
        return None
    total = sum(sum(change) for change in changes.values())
    right, was_right = (sum(change[place] for change in changes.values()) for place in (0, 1))
    share = _share_of(total, result.splits[result.judged].rows)
    sentence = (
        f"{count(total)} of {count(result.splits[result.judged].rows)} people get another decision than today "
        f"({share}). The new decision is right for {count(right)} of them, today's for {count(was_right)}."
    )
    heads = ("decision", "people", "now right", "right today", *groups)
    return Swaps(sentence, figures.swap_figure(changes), ResultTable("Who gets another decision", heads, rows))


def _share_of(part: float, whole: float) -> str:
    return percent(part / whole) if whole else percent(math.nan)


def comparison(result: RunResult) -> ResultTable | None:
    """Return every goal and the error on the rows that count, for the model and those it is compared with."""
    deciders = [decider for decider in (MIXTURE, FIRST, DEPLOYED) if decider in decider_names(result)]
    if len(deciders) == 1 or not result.goals:
        return None
    rows: list[list[str | Noted]] = []
    for goal in judged_goals(result):
        standings = [goal.goal.on(result.judged, decider) for decider in deciders]
        cells = [number(one.estimate) + f"\N{NO-BREAK SPACE}{_MISSED}" * (one.violation > 0) for one in standings]
        rows.append([goal.text, Noted(goal.verdict, ""), *cells])
    errors = [result.losses(decider).error for decider in deciders]
    aim = "minimised" if reported_objective(result).text.startswith("the share wrong of all") else ""
    rows.append(["share wrong" + (", expected" if result.is_drawn else ""), aim, *map(number, errors)])
    heads = ("goal", "verdict", *(decider_names(result)[decider] for decider in deciders))
    return ResultTable(f"On the {result.judged} rows; {_MISSED} misses the bound", heads, rows)


def drawn_table(result: RunResult) -> ResultTable | None:
    """Return what the drawn decisions come to beside what was expected; nothing where nothing is drawn."""
    if result.drawn is None:
        return None
    rows: list[list[str | Noted]] = []
    for goal in result.goals:
        if goal.drawn is not None:
            verdict = Noted(verdict_of(goal.drawn.verdict), stand_on_rows(goal.drawn.violation))
            numbers = number(goal.on(result.judged).estimate), number(goal.drawn.estimate)
            rows.append([goal.text, *numbers, verdict])
    losses = result.losses()
    rows.append(["share wrong", number(losses.error), number(result.drawn.error), ""])
    if result.tail is not None:
        label = f"{loss_word(result)}, worst-off {fraction(result.tail)}"
        rows.append([label, number(losses.tail(result.tail).value), number(result.drawn.cvar), ""])
    heads = ("goal", "expected", "of the drawn decisions", "verdict on the drawn decisions")
    return ResultTable(f"Of the drawn decisions, {result.judged} rows", heads, rows)


def tail_words(result: RunResult) -> str:
    """Return how wrong the model is on the worst-off rows; nothing where all rows count alike."""
    alpha = result.tail
    if alpha is None:
        return ""
    ours, first = result.losses().tail(alpha), result.losses(FIRST).tail(alpha).value
    words: dict[str, Any] = {"rows": result.judged, "noun": noun(result), "cost": cost_words(result)}
    return tail_sentence(mixture=ours.value, first=first, alpha=alpha, realised=ours.realised, **words)


def _goals_in_words(goals: Sequence[JudgedGoal], split: str) -> tuple[str, list[str]]:
    """Return how many goals have which verdict, and sentences on those that are not shown to hold."""
    if not goals:
        return "No goals were set, so there is nothing to decide by", []
    tally = Counter(goal.verdict for goal in goals)
    worst = next(verdict for verdict in (FAILS, UNDECIDED, UNKNOWN, HOLDS) if tally[verdict])
    are_met = all(goal.is_met for goal in goals if goal.verdict is UNDECIDED)
    is_mixed = tally[worst] < len(goals)
    title = _count_verdicts(tally, len(goals), are_met=are_met) if is_mixed else _all_alike(worst, len(goals))
    if worst is HOLDS:
        shown = f"The {split} rows show it{_confidence(goals)}."
        return title, [shown]
    named = {verdict: [goal.name for goal in goals if goal.verdict is verdict] for verdict in tally}
    sentences = []
    if tally[FAILS]:
        sentences.append(f"{_subject(named[FAILS])} shown by the {split} rows to fail{_confidence(goals)}.")
    if tally[UNDECIDED]:
        sentences.append(_undecided_sentence(goals, named[UNDECIDED], split))
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


def _undecided_sentence(goals: Sequence[JudgedGoal], names: Sequence[str], split: str) -> str:
    """Return how the rows themselves stand, and which goals they leave open."""
    n_met = _n_met(goals)
    if n_met is None:
        verb = "hold" if len(names) > 1 else "holds"
        return f"The {split} rows are too few to show whether {_join_names(names)} {verb}."
    if len(goals) == 1:
        return f"On the {split} rows as they are it is {'met' if n_met else 'missed'}; they are too few to be sure."
    standing = f"{n_met} of {len(goals)} goals {'is' if n_met == 1 else 'are'} met"
    which = _join_names(names) if len(names) < len(goals) else "either" if len(names) == _PAIR else "any"
    return f"On the {split} rows as they are {standing}; they are too few to be sure of {which}."


def _n_met(goals: Sequence[JudgedGoal]) -> int | None:
    """Return how many goals are met on the rows as they are; None where that was not measured."""
    met = [goal.is_met for goal in goals if goal.is_met is not None]
    return sum(met) if len(met) == len(goals) else None


def _confidence(goals: Sequence[JudgedGoal]) -> str:
    levels = {goal.goal.confidence for goal in goals}
    level = levels.pop()
    return f", with confidence {level:g}" if not levels and math.isfinite(level) else ""


def _join_names(names: Sequence[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def _subject(names: Sequence[str]) -> str:
    """Return names and a verb as the beginning of a sentence."""
    return _upper(f"{_join_names(names)} {'are' if len(names) > 1 else 'is'}")


def request_lines(result: RunResult) -> list[tuple[str, str]]:
    """Return what the run was to do, as terms and their meaning."""
    lines = [("Data", result.data.name)]
    known = {
        "Predict": _part(result.settings, "data", "target"),
        "Positive class": _part(result.settings, "data", "positive"),
        "Method": result.method or _part(result.settings, "method", "name"),
    }
    lines += [(term, text) for term, text in known.items() if text]
    lines += [("Left to a person", f"hard cases: {cost_words(result)}")] if result.deferral is not None else []
    goals = judged_goals(result)
    inside = [(f"Inside {goal.name}", goal.text) for goal in goals]
    if any(goal.margin is not None for goal in result.goals):
        level = result.settings.get("confidence")
        reached = "reached by the margins; the audit is a separate check"
        if result.proof_rows:
            reached = f"proven by exact tests on {result.proof_rows:,} rows that the choice did not use"
        elif not math.isfinite(result.confidence):
            reached = "not reached: goals may fail on new rows more often"
        elif result.settings.get("proof"):
            reached = "reached about, but not proven: no rule passed the tests"
        reasons = {goal.name: goal.goal.margin.reason for goal in goals if goal.goal.margin is not None}
        without = [name for name, reason in reasons.items() if reason and not result.proof_rows]
        which = f"all goals but {', '.join(without)} together" if without else "all goals together"
        inside.append(("On new rows", f"{which}, with a confidence of {level} ({reached})"))
    return [*lines, *objective_lines(result), *inside]


def _part(settings: Mapping[str, Any], table: str, key: str) -> str:
    """Return one setting of a table of the goals file, nothing where it is not set."""
    part = settings.get(table)
    value = part.get(key) if isinstance(part, Mapping) else None
    return "" if value is None else str(value)


def data_table(result: RunResult) -> ResultTable:
    """Return how many rows each split has, and the plain errors there."""
    deciders, rows = decider_names(result), []
    for split, part in result.splits.items():
        errors = [result.losses(decider, split).error for decider in deciders]
        rows.append([split, count(part.rows), *map(percent, errors)])
    heads = ("rows of", "rows", *(f"wrong: {name}" for name in deciders.values()))
    return ResultTable("Rows and plain errors", heads, rows)


def class_table(result: RunResult) -> ResultTable | None:
    """Return the share of each class in the rows of each split."""
    labels = dict.fromkeys(label for part in result.splits.values() for label in part.classes)
    rows = [
        [label, *(percent(part.classes.get(label, math.nan)) for part in result.splits.values())] for label in labels
    ]
    return ResultTable("Classes", ("class", *(f"{split} rows" for split in result.splits)), rows) if rows else None


def times_table(result: RunResult) -> ResultTable | None:
    """Return how long the run took."""
    rows = [[part, f"{value:,.2f}"] for part, value in result.seconds.items()]
    return ResultTable("Time", ("part", "seconds"), rows) if rows else None


def description(result: RunResult) -> list[str]:
    """Return what the data are."""
    columns = result.data.n_features
    features = [f"The model sees {many(int(columns), 'column')}."] if math.isfinite(columns) else []
    return [*result.data.lines, *features]
