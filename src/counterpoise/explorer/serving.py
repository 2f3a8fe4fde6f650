"""From a run folder to an address in a browser."""

import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from counterpoise._base.checks import check_number


def explore_run(
    folder: str | Path,
    *,
    output: str | Path = ".",
    host: str = "127.0.0.1",
    port: int = 0,
    say: Callable[[str], None] = lambda _: None,
    ready: Callable[[Any], None],
) -> None:
    """Serve the explorer of a run until Ctrl-C.

    Parameters
    ----------
    folder : path
        What ``counterpoise fit`` wrote.
    output : path, default="."
        The folder that models and reports are exported to.
    host : str, default="127.0.0.1"
        The name of this machine that is listened on: by default nobody else can reach it.
    port : int, default=0
        0 for any that is free.
    say : callable, optional
        Told in a line what is being done before that.
    ready : callable
        Called with the server, once it listens: ``ready(server)`` may show ``server.address``.
    """
    try:
        from counterpoise.explorer.server import Serving  # noqa: PLC0415 - needs optional packages
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f'The explorer needs {error.name}, which is not installed: pip install "counterpoise[explorer]"'
        ) from error
    from counterpoise.explorer.conversation import Conversation  # noqa: PLC0415 - heavy: only where asked
    from counterpoise.explorer.of_run import RunExporter, read_run  # noqa: PLC0415 - as above
    from counterpoise.explorer.session import Session  # noqa: PLC0415 - as above
    from counterpoise.runs import open_run  # noqa: PLC0415 - as above

    check_number(port, "port", "[0, 65535]", "0 for any that is free")
    logging.getLogger("counterpoise.explorer").setLevel(logging.INFO)
    say("reads the run, its models and its data files")
    read = read_run(open_run(folder))
    say("solves its setting, which compiles what is not compiled yet")
    session = Session(read.parts)
    session.answer(session.start)  # whatever compiles, compiles now
    serving = Serving(Conversation(session, RunExporter(session, read, output)), host=host, port=port)
    ready(serving)
    with suppress(KeyboardInterrupt):  # that is how it ends
        serving.run()
