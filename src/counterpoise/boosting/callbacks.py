"""Callbacks for boosters: anything that takes a ``Round`` and may return true to stop; here, a progress bar.

A fit that goes on from a checkpoint does not call them for the rounds that it restores. Where a callback has a method
``resume``, that is called once instead, with the number of rounds so far.
"""

from types import TracebackType
from typing import Any, Self

from counterpoise._base.checks import check_count
from counterpoise.boosting.rounds import Round


class ProgressBar:
    """A progress bar in the terminal, with time left and the loss of the newest model under its weights.

    Inside goals it shows the least risk of a mixture so far and its bound, or by how much the goals are missed yet.

    Needs the package ``rich`` (``pip install "counterpoise[progress]"``). Use it as a context manager, so that the bar
    ends with the fit; outside of its ``with`` block, or in another process, it counts rounds and shows nothing.

    Parameters
    ----------
    total : int
        Number of rounds expected.
    quiet : bool, default=False
        Count rounds, but show nothing.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from counterpoise import AdaLPBoostClassifier
    >>> from counterpoise.boosting.callbacks import ProgressBar
    >>> X, y = load_iris(return_X_y=True)
    >>> with ProgressBar(5, quiet=True) as bar:
    ...     model = AdaLPBoostClassifier(n_estimators=5, callbacks=[bar]).fit(X, y)
    >>> bar.n_rounds
    5
    """

    def __init__(self, total: int, *, quiet: bool = False) -> None:
        self.total, self.quiet, self.n_rounds = check_count(total, "total"), quiet, 0
        self._progress: Any = None

    def __enter__(self) -> Self:
        if self.quiet:
            return self
        try:
            from rich.progress import Progress  # noqa: PLC0415 - an optional package
        except ImportError as error:
            raise ImportError('ProgressBar needs the package rich: pip install "counterpoise[progress]".') from error
        self._progress = Progress()
        self._progress.start()
        self._task = self._progress.add_task("boosting", total=self.total)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.stop()

    def __getstate__(self) -> dict[str, Any]:
        """Leave the terminal behind: copies, as cross-validation makes them, and saved models do not show anything."""
        return {**self.__dict__, "_progress": None}

    def resume(self, n_rounds: int) -> None:
        """Begin after rounds that were restored; they do not count in the time left."""
        self.n_rounds = n_rounds
        if self._progress is not None:
            self._progress.reset(self._task, completed=n_rounds, description=f"restored {n_rounds} rounds")

    def __call__(self, latest: Round) -> None:
        self.n_rounds = latest.number
        if self._progress is not None:
            text = f"round {latest.number}, {latest.summary}"
            self._progress.update(self._task, completed=latest.number, description=text)
