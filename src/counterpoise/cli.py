"""The command line: parse, call one function, print."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0 done, 2 bad input."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except (ValueError, OSError, ImportError) as error:
        sys.stderr.write(f"counterpoise: {error}\n")
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="counterpoise", description="Classifiers that meet real-world goals.")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    reproduce = commands.add_parser(
        "reproduce", help="run a paper's experiments", description="Run a paper's experiments on real data."
    )
    reproduce.add_argument("name", choices=["boosted-cvar"], help="boosted-cvar: Zhai et al. 2021, Figures 1 to 4")
    reproduce.add_argument("--seeds", type=int, default=5, metavar="N", help="repeats with other splits (default 5)")
    reproduce.add_argument(
        "--datasets", nargs="+", metavar="NAME", help="only these data sets (default: all that the experiment has)"
    )
    reproduce.add_argument(
        "--output",
        type=Path,
        default=Path("results/boosted_cvar"),
        metavar="FOLDER",
        help="folder for the table, the figures and the page; a run goes on from what is there (default %(default)s)",
    )
    reproduce.set_defaults(run=_reproduce)
    return parser


def _reproduce(options: argparse.Namespace) -> int:
    from counterpoise.experiments import boosted_cvar, boosted_cvar_page  # noqa: PLC0415 - heavy

    protocols: tuple[boosted_cvar.Protocol, ...] = boosted_cvar.PROTOCOLS
    if options.datasets is not None:
        known = sorted({protocol.dataset for protocol in protocols})
        for name in options.datasets:
            if name not in known:
                raise ValueError(f"--datasets must be among {', '.join(known)}; got {name!r}.")
        protocols = tuple(protocol for protocol in protocols if protocol.dataset in options.datasets)
    options.output.mkdir(parents=True, exist_ok=True)
    table = boosted_cvar.reproduce(
        options.output, n_seeds=options.seeds, protocols=protocols, tell=lambda text: _say(f"done: {text}")
    )
    _say(f"page: {boosted_cvar_page.write_page(table)}")
    return 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
