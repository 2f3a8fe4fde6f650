"""Goals files: what is read, and what is said about those that are wrong."""

import re
from pathlib import Path

import pytest

from counterpoise.runs import GoalsFileError, RunSettings, read_goals_file
from counterpoise.runs.goals_file import goals_of, parse_goals_file
from counterpoise.runs.methods import METHODS, check_method
from counterpoise.runs.settings import MethodSettings, ModelSettings

DATA = '[data]\nfiles = "a.csv"\ntarget = "y"\n'
GOAL = "recall >= 0.9"

WRONG = {  # text of the file -> what the error says
    "": r"data is missing; expected a table \[data\]",
    "alpha =": "must be TOML: Invalid value",
    DATA + 'target = "z"': "must be TOML: Cannot overwrite",
    "data = 3": "line 1, data: expected a valid dictionary.*; got 3",
    '[data]\ntarget = "y"': "data.files is missing; expected a CSV or Parquet file",
    '[data]\nfiles = "a.csv"': "data.target is missing; expected the column to predict",
    '[data]\nfiles = ""\ntarget = "y"': "data.files.*: expected string should have at least 1 character; got ''",
    DATA + 'targt = "z"': "line 4: unknown key 'targt' in the table data. Did you mean 'target'?",
    "alhpa = 0.2\n" + DATA: "line 1: unknown key 'alhpa' in a goals file. Did you mean 'alpha'?",
    "alpha = 2\n" + DATA: "line 1, alpha: expected less than or equal to 1; got 2",
    "alpha = nan\n" + DATA: "alpha: expected",
    'alpha = "a tenth"\n' + DATA: "alpha: expected .* got 'a tenth'",
    "alpha = true\n" + DATA: "alpha: expected .* got True",
    'seed = "one"\n' + DATA: "seed: expected a valid integer; got 'one'",
    "confidence = 1.0\n" + DATA: "confidence: expected less than 1; got 1.0",
    DATA + "positive = [1]": "data.positive: expected .* got .1.",
    DATA + "groups = [1]": r"data.groups\[1\]: expected a valid string; got 1",
    DATA + 'groups = ["y"]': "data.groups: expected columns beside the target; got the target 'y'",
    DATA + 'columns = ["y"]': "data.columns: expected columns beside the target",
    DATA + 'drop = "y"': "data.drop: expected columns beside the target",
    DATA + 'drop = ["a", "a"]': "data.drop: expected each column once; got 'a' twice",
    DATA + 'use_groups_as_features = "yes"': "use_groups_as_features: expected a valid boolean; got 'yes'",
    DATA + 'baseline = "b"\nbaseline_model = "b.cp"': "expected baseline or baseline_model; got both",
    'goals = ["recal(train) >= 0.9"]\n' + DATA: r"line 1, goals\[1\]: expected a goal .* Did you mean 'recall'?",
    'goals = ["recall > 0.9"]\n' + DATA: r"goals\[1\]: expected a goal such as recall >= 0.9; got",
    'goals = ["recall"]\n' + DATA: r"goals\[1\]: expected a goal such as",
    f'goals = ["{GOAL}", "recall(mial) >= 0.9"]\n{DATA}[datasets.mail]\nfiles = "m.csv"': (
        r"goals\[2\]: unknown dataset 'mial' .* Did you mean 'mail'?"
    ),
    f'[[goals]]\ngoal = "{GOAL}"\nconfidence = 2.0\n{DATA}': "confidence: expected less than 1; got 2.0",
    f'[[goals]]\ngoal = "{GOAL}"\nsurely = 0.9\n{DATA}': "unknown key 'surely' in the table goals",
    DATA + "[splits]\ntest = 1.5": "line 5, splits.test: expected less than 1; got 1.5",
    DATA + "[splits]\ntest = 0.5\nvalidation = 0.6": "must leave rows to train on; together they are 1.1",
    DATA + '[splits]\ntest = 0.5\ntest_files = "t.csv"': "splits.test: expected a fraction or test_files; got both",
    DATA + "[splits]\ntests = 0.5": "unknown key 'tests' in the table splits. Did you mean 'test'?",
    DATA + '[preprocessing]\nnumeric = "z"': "numeric: expected 'auto', 'standardize' or 'as-is'; got 'z'",
    DATA + '[datasets.train]\nfiles = "x.csv"': "datasets.train: a dataset must not be called 'train'",
    DATA + '[datasets.mail]\nfile = "x.csv"': "unknown key 'file' in the table datasets.mail. Did you mean 'files'?",
    DATA
    + '[method]\nname = "adalpbost"': "line 5, method.name: unknown method 'adalpbost'. Did you mean 'adalpboost'?",
    DATA + '[method]\nname = "pool"': 'the method "pool" needs models',
    DATA + '[method]\nname = "svm"\n[[method.models]]\nname = "tree"': 'models are for the methods "goals" and "pool"',
    DATA + '[method]\nname = "pool"\n[[method.models]]\nname = "logistc"': "unknown model 'logistc'. Did you mean",
    DATA + '[method]\nname = "pool"\n[[method.models]]\nname = "pool"': "unknown model 'pool'",
    DATA + '[method]\nname = "pool"\n[[method.models]]\nname = "deployed"': (
        r"method.models\[1\]: 'deployed' is the model in the file that data.baseline_model names; it names none"
    ),
    DATA + 'baseline_model = "b.cp"\n[method]\nname = "pool"\n[[method.models]]\nname = "deployed"\n'
    "parameters = {C = 1}": "the deployed model takes no parameters; got some",
    DATA + '[method]\nname = "deployed"': "unknown method 'deployed'",
    DATA + '[method]\nname = "adaboost"\nlearner = {name = "deployed"}': "unknown model 'deployed'",
    DATA + 'baseline_model = "b.cp"\n[method]\n[[method.models]]\nname = "deployed"': "unknown model 'deployed'",
    DATA + '[method.parameters]\nby = ["a", "a"]': "method.parameters: by names a column twice",
    DATA + "[method.parameters]\nbudget = 2": "method.parameters: budget must lie in ",
    DATA + 'ids = "y"': "data.ids: expected a column that is no feature and not the target; got 'y'",
    DATA + '[splits]\ncolumn = "y"': "splits.column: expected a column that is no feature and not the target; got 'y'",
    DATA + '[method]\nname = "svm"\nlearner = {name = "tree"}': "a learner is for boosters; got one with 'svm'",
    DATA + "[method.parameters]\ndecison = 3": "unknown parameter of goals 'decison'. Did you mean 'decision'",
    DATA + '[method]\nname = "lpboost"\nparameters.n_estimators = 0': "n_estimators must be at least 1; got 0",
    DATA + '[method]\nname = "adalpboost"\nparameters.stopping = 3': (
        r"method.parameters.stopping: stopping is a table, as in stopping = \{ patience = 10 \}; got 3"
    ),
    DATA + '[method]\nname = "lpboost"\nparameters.stopping = {patiance = 3}': (
        "stopping: unknown key 'patiance'. Did you mean 'patience'"
    ),
    DATA + '[method]\nname = "lpboost"\nparameters.stopping = {validation_fraction = 0.3}': (
        "validation_fraction is set by splits.validation; got it as a part of stopping"
    ),
    DATA + '[method]\nname = "lpboost"\nparameters.stopping = {patience = 0}': "patience must be at least 1; got 0",
    DATA + '[method]\nname = "adaboost"\nparameters.stopping = {n_folds = 5}': "n_folds=5 is for LPBoostClassifier",
    DATA + '[method]\nname = "lpboost"\nparameters.patience = 3': "unknown parameter of lpboost 'patience'",
    DATA + '[method]\nname = "lpboost"\nparameters.checkpoint = "a"': "checkpoint is set by nothing: runs keep",
    DATA + "[method.parameters]\nalpha = 0.5": "alpha is set by alpha at the top of the file",
    DATA + "[method.parameters]\nrandom_state = 1": "random_state is set by seed",
    DATA
    + '[method]\nname = "lpboost"\nlearner = {name = "logistic", parameters = {C = "x"}}': "method.learner.*: .*'C'",
    f'goals = ["{GOAL}"]\n{DATA}[method]\nname = "adaboost"': "adaboost cannot be fitted inside goals",
    DATA + '[datasets.largest_value]\nfile = "x.csv"': "unknown key 'file' in the table datasets.largest_value",
    f'goals = ["{GOAL}"]\n{DATA}[method]\nname = "lpboost"\nparameters.mixture = "average"': "goals need 'optimal'",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_file_is_refused_in_one_line_that_names_it(text, tmp_path):
    path = tmp_path / "goals.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(GoalsFileError, match=WRONG[text]) as caught:
        read_goals_file(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_or_no_text(tmp_path):
    with pytest.raises(GoalsFileError, match=r"There is no goals file .* counterpoise init"):
        read_goals_file(tmp_path / "none.toml")
    with pytest.raises(GoalsFileError, match="it is a folder"):
        read_goals_file(tmp_path)
    (tmp_path / "latin.toml").write_bytes("# caf\xe9".encode("latin-1"))
    with pytest.raises(GoalsFileError, match="must be UTF-8 text; byte 5 is not"):
        read_goals_file(tmp_path / "latin.toml")


def test_defaults_and_short_forms(tmp_path):
    settings = parse_goals_file(f'goals = ["{GOAL}"]\n{DATA}groups = "sex"'.encode(), tmp_path)
    assert settings.data.files == ["a.csv"]
    assert settings.data.groups == ["sex"]
    assert (settings.alpha, settings.seed, settings.confidence, settings.method.name) == (1.0, 0, 0.9, "goals")
    assert settings.audit_confidence == 0.95
    assert [str(goal) for goal in goals_of(settings)] == [GOAL]


def test_confidence_comes_from_the_text_or_from_its_key(tmp_path):
    text = f'[[goals]]\ngoal = "{GOAL}"\nconfidence = 0.8\n[[goals]]\ngoal = "{GOAL} with confidence 0.9"\n{DATA}'
    found = goals_of(parse_goals_file(text.encode(), tmp_path))
    assert [goal.confidence for goal in found] == [0.8, 0.9]


def test_settings_come_back_from_their_dump():
    asked = RunSettings(
        data={"files": "a.csv", "target": "y", "positive": True},
        method={"name": "pool", "models": [{"name": "tree", "parameters": {"max_depth": 2}}]},
        goals=[GOAL],
    )
    assert RunSettings.model_validate(asked.model_dump(mode="json")) == asked


@pytest.mark.parametrize("name", METHODS)
def test_every_method_can_be_made_with_its_defaults(name):
    models = [ModelSettings(name="logistic")] if name == "pool" else []
    assert list(check_method(MethodSettings(name=name, models=models))) == []


def test_the_guide_has_an_example_of_every_key():
    page = (Path(__file__).parents[2] / "docs" / "api" / "goals_file.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```toml\n(.*?)```", page, flags=re.DOTALL)
    settings = parse_goals_file(example.encode(), Path("goals.toml"))
    assert settings.goals[2].confidence == 0.9
    tables = [settings, settings.data, settings.datasets["mail"], settings.splits]
    for table in [*tables, settings.preprocessing, settings.method]:
        for key in type(table).model_fields:
            assert re.search(rf"\b{key}\b", page), key
    for name in METHODS:
        assert f"`{name}`" in page
