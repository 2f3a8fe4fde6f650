"""Boosting on images survives interrupts, and results are functions of the losses it keeps."""

import time

import numpy as np
import pytest

from counterpoise.learners.networks import Perceptron
from papers.boosted_cvar import image_runs
from papers.boosted_cvar import networks as boosted_cvar_networks
from papers.boosted_cvar.image_runs import LPBOOST, Limit, Run, run_rounds, split_images
from papers.boosted_cvar.images import ImageData
from papers.boosted_cvar.losses import result_rows
from papers.boosted_cvar.networks import PLANS, Where, run_all
from papers.boosted_cvar.plans import Plan
from papers.kept_losses import PARTS, KeptLosses

TINY = Plan("cifar10", "cifar10", "tiny", Perceptron((8,)), 4, 1, 5, (3,))


def toy_images(n_train=200, n_test=60):
    """Return images that are brighter for larger labels, with much noise."""
    rng = np.random.default_rng(0)
    n_rows = n_train + n_test
    y = np.arange(n_rows) % 4
    X = rng.integers(0, 160, (n_rows, 3, 32, 32)) + 20 * y[:, None, None, None]
    return ImageData("cifar10", X.astype(np.uint8), y, np.arange(n_rows) >= n_train, "made up")


@pytest.fixture(scope="module")
def images():
    return split_images(toy_images(), seed=0)


@pytest.fixture
def needs_torch():
    pytest.importorskip("torch", reason="needs torch: pip install counterpoise[torch]")


def boosted(run, images, limit, state, output=None, say=lambda _line: None):
    return run_rounds(run, images, limit, run.plan.make_learner("cpu"), state=state, output=output, say=say)


def same_losses(kept, other):
    return all((kept.losses(part) == other.losses(part)).all() for part in PARTS)


def test_the_official_test_part_is_kept_and_a_tenth_of_the_rest_validates(images):
    assert images.sizes() == {"train": 180, "validation": 20, "test": 60}
    assert np.bincount(images.validation.codes).tolist() == [5, 5, 5, 5]
    np.testing.assert_array_equal(images.test.X, toy_images().X[200:])


@pytest.mark.usefixtures("needs_torch")
@pytest.mark.parametrize("run", [Run(TINY), Run(TINY, LPBOOST, 0.2)], ids=["adalpboost", "lpboost"])
def test_an_interrupted_run_ends_as_one_that_was_not(run, images, tmp_path):
    lines = []
    whole = boosted(run, images, Limit(4), tmp_path / "whole", say=lines.append)
    assert [line.split(":")[0] for line in lines[2:]] == ["round 1", "round 2", "round 3", "round 4"]

    def interrupt(line):
        if line.startswith("round 2"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        boosted(run, images, Limit(4), tmp_path / "parts", say=interrupt)
    resumed = boosted(run, images, Limit(4), tmp_path / "parts", tmp_path / "output")
    assert same_losses(resumed, whole)
    assert resumed.weighted_losses == whole.weighted_losses
    assert same_losses(KeptLosses.read(tmp_path / "output" / run.file), whole)


def all_of(runs, tmp_path, n_rounds, say=lambda _line: None, device="cpu"):
    where = Where(lambda _name, seed: split_images(toy_images(), seed), tmp_path, device=device)
    return run_all(runs, where, Limit(n_rounds), say)


RUNS = [Run(TINY), Run(TINY, seed=1), Run(TINY, LPBOOST, 0.2), Run(TINY, LPBOOST, 0.5)]


@pytest.mark.usefixtures("needs_torch")
def test_several_runs_keep_the_losses_of_each_alone_also_after_an_interrupt(tmp_path):
    def interrupt(line):
        if "alpha 0.2: round 2" in line:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        all_of(RUNS, tmp_path / "together", 3, interrupt)
    lines = []
    together = all_of(RUNS, tmp_path / "together", 3, lines.append)
    assert any(line.startswith("cifar10, seed 0, alpha 0.2: round 3: ") for line in lines)
    assert not any("alpha 0.2: round 2: " in line or "warmed up" in line for line in lines)
    for run, kept in zip(RUNS, together, strict=True):
        alone = boosted(run, split_images(toy_images(), run.seed), Limit(3), tmp_path / "alone")
        assert same_losses(kept, alone)
        assert kept.weighted_losses == alone.weighted_losses


@pytest.mark.usefixtures("needs_torch")
def test_runs_that_share_a_warm_up_make_it_once_and_seconds_are_kept(tmp_path):
    lines = []
    kept = all_of(RUNS[2:], tmp_path, 2, lines.append)
    assert sum("warmed up in" in line for line in lines) == 1
    found = KeptLosses.read(tmp_path / RUNS[2].file)
    assert found.took == kept[0].took
    assert all(min(one[:3]) >= 0 and one.seconds == sum(one[:3]) for one in found.took)
    assert found.warmup_seconds == kept[1].warmup_seconds > 0


@pytest.mark.usefixtures("needs_torch")
def test_an_interrupt_inside_a_round_loses_that_round_only(images, tmp_path, monkeypatch):
    run = Run(TINY)
    whole = boosted(run, images, Limit(3), tmp_path / "whole")
    ask, answers = image_runs.predict_codes, []

    def interrupt(*arguments):
        answers.append(arguments)
        if len(answers) == 4:  # between validation and test rows of the second round
            raise KeyboardInterrupt
        return ask(*arguments)

    monkeypatch.setattr(image_runs, "predict_codes", interrupt)
    with pytest.raises(KeyboardInterrupt):
        boosted(run, images, Limit(3), tmp_path / "parts")
    assert KeptLosses.read(tmp_path / "parts" / run.file).n_rounds == 1
    assert same_losses(boosted(run, images, Limit(3), tmp_path / "parts"), whole)


@pytest.mark.usefixtures("needs_torch")
def test_it_stops_after_a_round_when_time_is_up_and_warms_up_once(images, tmp_path):
    late = Limit(4, seconds=1e-3, started=time.monotonic() - 1)
    assert boosted(Run(TINY), images, late, tmp_path).n_rounds == 1
    warm = tmp_path / "warmup_cifar10_seed0.npz"
    written = warm.stat().st_mtime_ns
    assert boosted(Run(TINY), images, late, tmp_path).n_rounds == 2
    first = boosted(Run(TINY, LPBOOST, 0.1), images, late, tmp_path)
    assert warm.stat().st_mtime_ns == written
    other = KeptLosses.read(tmp_path / Run(TINY).file)
    np.testing.assert_array_equal(first.losses("test")[:, 0], other.losses("test")[:, 0])


@pytest.mark.usefixtures("needs_torch")
def test_a_state_of_another_run_is_refused(images, tmp_path):
    boosted(Run(TINY), images, Limit(1), tmp_path)
    other = TINY._replace(n_iterations=6)
    with pytest.raises(ValueError, match=r"losses_cifar10_adalpboost_seed0.npz must be of this run.*iterations=6"):
        boosted(Run(other), images, Limit(1), tmp_path)
    (tmp_path / Run(TINY).file).unlink()
    with pytest.raises(ValueError, match=r"warmup_cifar10_seed0.npz must be of .*iterations=6"):
        boosted(Run(other), images, Limit(1), tmp_path)


def made_up(method="adalpboost", alpha=None, seed=0, n_rounds=6):
    """Return losses as a boosting might leave them: the first model is the best."""
    rng = np.random.default_rng(seed)
    run = Run(TINY, method, alpha, seed)
    sizes = {"train": 45, "validation": 101, "test": 200}
    kept = KeptLosses(run.settings, sizes)
    for number in range(n_rounds):
        rate = 0.1 if number == 0 else 0.3
        kept.append({part: (rng.random(size) < rate).astype(np.uint8) for part, size in sizes.items()}, rate)
    return run, kept


def test_losses_come_back_from_their_file_bit_for_bit(tmp_path):
    run, kept = made_up()
    kept.memory = {"mixture": np.array([0.25, 0.75])}
    kept.write(tmp_path / run.file)
    found = KeptLosses.read(tmp_path / run.file)
    assert (found.settings, found.sizes, found.weighted_losses) == (kept.settings, kept.sizes, kept.weighted_losses)
    assert same_losses(found, kept)
    assert found.losses("train").shape == (45, 6)
    np.testing.assert_array_equal(found.memory["mixture"], [0.25, 0.75])


def test_files_that_know_no_seconds_are_read_too(tmp_path):
    run, kept = made_up()
    kept.write(tmp_path / run.file)
    with np.load(tmp_path / run.file) as arrays:
        np.savez(tmp_path / run.file, **{name: arrays[name] for name in set(arrays) - {"took", "warmup_seconds"}})
    found = KeptLosses.read(tmp_path / run.file)
    assert same_losses(found, kept)
    assert [np.isnan(one.seconds) for one in found.took] == [True] * 6
    assert np.isnan(found.warmup_seconds)


@pytest.mark.parametrize("cut", [0, 10, 300, -1])
def test_a_torn_file_of_losses_is_one_sentence(cut, tmp_path):
    run, kept = made_up()
    path = tmp_path / run.file
    kept.write(path)
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(ValueError, match="must hold kept losses of this version; it is damaged or another file"):
        KeptLosses.read(path)


@pytest.mark.slow
def test_any_altered_byte_of_a_file_of_losses_is_one_sentence_or_of_no_matter(tmp_path):
    run, kept = made_up()
    path = tmp_path / run.file
    kept.write(path)
    content = path.read_bytes()
    n_refused = 0
    for place in range(0, len(content), 3):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :])
        try:
            found = KeptLosses.read(path)
        except ValueError as error:
            assert "it is damaged or another file" in str(error)  # noqa: PT017 - some bytes, such as dates, do not matter
            n_refused += 1
        else:
            assert same_losses(found, kept)
    assert n_refused > len(content) / 10


@pytest.mark.usefixtures("needs_torch")
@pytest.mark.parametrize("content", [b"", b"PK", b"not an archive"])
def test_a_torn_warm_up_is_one_sentence(content, images, tmp_path):
    (tmp_path / "warmup_cifar10_seed0.npz").write_bytes(content)
    with pytest.raises(ValueError, match=r"seed0\.npz must hold a warmed-up network; it is damaged.*another --state"):
        boosted(Run(TINY), images, Limit(1), tmp_path)


def test_a_file_with_fewer_losses_than_it_states_is_refused(tmp_path):
    run, kept = made_up()
    kept.packed["test"].pop()
    kept.write(tmp_path / run.file)
    with pytest.raises(ValueError, match=r"losses on test of shape \(5, 25\), not \(6, 25\)"):
        KeptLosses.read(tmp_path / run.file)


def test_results_are_what_theory_says_of_the_losses():
    _, kept = made_up()
    rows = list(result_rows(kept))
    error = kept.losses("test")[:, 0].mean()
    erm = {row.alpha: row.value for row in rows if row.method == "ERM" and row.quantity == "cvar"}
    assert len(erm) == 50
    assert all(value == pytest.approx(min(1, error / alpha)) for alpha, value in erm.items())
    averages = [row.value for row in rows if row.method == "ERM" and row.quantity == "error"]
    assert averages == [pytest.approx(error)] * 10
    assert rows[0].settings == "T=6 eta=1 rows=45/101/200 warmup=1 iterations=5 decay=3"
    assert {row.settings.split("rounds=")[1] for row in rows if "rounds=" in row.settings} == {"1", "2", "5"}


@pytest.mark.usefixtures("needs_torch")
def test_the_command_runs_some_rounds_and_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(boosted_cvar_networks, "load_images", lambda _name, _places: toy_images())
    monkeypatch.setitem(PLANS, "cifar10", TINY)
    command = ["--data", str(tmp_path), "--state", str(tmp_path / "state"), "--output", str(tmp_path / "out")]
    command += ["--rounds", "2", "--minutes", "9", "--device", "cpu", "--method", "lpboost", "--alpha", "0.2"]
    assert boosted_cvar_networks.main(command) == 0
    assert "round 2: " in capsys.readouterr().out
    assert KeptLosses.read(tmp_path / "out" / "losses_cifar10_lpboost_0.2_seed0.npz").n_rounds == 2


def test_a_command_without_data_is_one_sentence_and_exit_code_2(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("COUNTERPOISE_DATA", raising=False)
    monkeypatch.setenv("COUNTERPOISE_CACHE", str(tmp_path / "cache"))
    assert boosted_cvar_networks.main(["--data", str(tmp_path), "--state", str(tmp_path)]) == 2
    assert "data set 'cifar10' needs the file data_batch_1.bin" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        boosted_cvar_networks.main(["--data", str(tmp_path), "--state", str(tmp_path), "--alpha", "0.1"])
    assert "--alpha is for --method lpboost" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "text"),
    [
        (["--rounds", "0"], "--rounds must be above 0; got 0"),
        (["--minutes", "nan"], "--minutes must be above 0; got nan"),
        (["--method", "lpboost", "--alpha", "0"], "--alpha must lie above 0 and be at most 1; got 0"),
        (["--seed", "0", "1", "0"], "--seed must name each once; got 0 1 0"),
    ],
)
def test_numbers_out_of_range_are_refused_and_not_taken_for_defaults(option, text, tmp_path, capsys):
    with pytest.raises(SystemExit):
        boosted_cvar_networks.main(["--data", str(tmp_path), "--state", str(tmp_path), *option])
    assert text in capsys.readouterr().err
