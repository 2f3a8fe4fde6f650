"""A small server for one session: one page, one module, one style sheet, one socket, for this machine alone.

Whoever has the address has the token in it; without it nothing is told, not even that there is a page. Pages of other
origins are refused, and so are names of hosts that others may point here. No table of rows is sent.
"""

import asyncio
import logging
import secrets
import socket
from collections.abc import Callable
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from counterpoise.explorer.assets import asset
from counterpoise.explorer.client import Client
from counterpoise.explorer.conversation import Conversation
from counterpoise.explorer.worker import Worker

MOST_CLIENTS = 64
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
ASSETS = {
    "": ("index.html", "text/html; charset=utf-8"),
    "explorer.js": ("explorer.js", "text/javascript; charset=utf-8"),
    "explorer.css": ("explorer.css", "text/css; charset=utf-8"),
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",  # the address holds the token
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_POLICY_VIOLATION, _TRY_LATER = 1008, 1013  # codes with which a socket is closed
_MOST_RECEIVED = 1 << 22  # bytes of a message that is looked at, and refused in a sentence; beyond, the socket closes
_WAITING = 100  # messages for a page that does not read: then it is let go
_LOG = logging.getLogger("counterpoise.explorer")


def make_app(conversation: Conversation, token: str, hosts: Callable[[], tuple[str, ...]]) -> Starlette:
    """Return the application that serves a session.

    Parameters
    ----------
    conversation : Conversation
    token : str
        That addresses must hold.
    hosts : callable
        Returns the names with ports by which the server may be called, known once it listens.
    """
    worker = Worker()
    clients: set[Client] = set()

    def is_known(given: str) -> bool:
        return secrets.compare_digest(given.encode(), token.encode())

    async def page(request: Request) -> Response:
        if request.headers.get("host", "") not in hosts():
            _LOG.warning("refused: a request for another host")
            return _refused("This server answers by the name of this machine alone.", 421)
        found = ASSETS.get(request.path_params.get("name", ""))
        if not is_known(request.path_params["token"]) or found is None:
            _LOG.warning("refused: a request for what is not here")
            return _refused("There is nothing here. Open the address that counterpoise explore printed.", 404)
        name, kind = found
        return Response(asset(name), headers=HEADERS | {"Content-Type": kind})

    async def nothing(_request: Request) -> Response:
        _LOG.warning("refused: a request for what is not here")
        return _refused("There is nothing here. Open the address that counterpoise explore printed.", 404)

    async def talk(websocket: WebSocket) -> None:
        origin, names = websocket.headers.get("origin"), hosts()
        is_own = websocket.headers.get("host", "") in names and origin in {f"http://{name}" for name in names}
        if not is_known(websocket.path_params["token"]) or not is_own:
            _LOG.warning("refused: a socket with a wrong token, or of another origin")
            await websocket.close(_POLICY_VIOLATION)
            return
        if len(clients) >= MOST_CLIENTS:
            _LOG.warning("refused: more than %d pages at a time", MOST_CLIENTS)
            await websocket.close(_TRY_LATER, f"At most {MOST_CLIENTS} pages can be open at a time.")
            return
        await websocket.accept()
        await _talk(websocket, conversation, worker, clients)

    routes = [
        WebSocketRoute("/{token}/socket", talk),
        Route("/{token}/", page, methods=["GET"]),
        Route("/{token}/{name}", page, methods=["GET"]),
        Route("/{path:path}", nothing, methods=["GET"]),
    ]
    app = Starlette(routes=routes, exception_handlers={405: _not_allowed, 404: _not_found})
    app.state.worker, app.state.clients = worker, clients
    return app


async def _talk(websocket: WebSocket, conversation: Conversation, worker: Worker, clients: set[Client]) -> None:
    """Read messages until the page leaves; answers go out in the order in which they are found."""
    loop, outgoing = asyncio.get_running_loop(), asyncio.Queue[str](_WAITING)

    def send(text: str) -> None:
        loop.call_soon_threadsafe(_put, outgoing, text)

    client = Client(conversation, worker, send)
    clients.add(client)
    writer = asyncio.create_task(_write(websocket, outgoing))
    try:
        send(conversation.hello())
        while True:
            client.hear(await websocket.receive_text())
    except (WebSocketDisconnect, RuntimeError, KeyError):
        pass
    finally:
        client.leave()
        clients.discard(client)
        writer.cancel()


def _put(outgoing: "asyncio.Queue[str]", text: str) -> None:
    """Queue a text; of a page that does not read the oldest are dropped."""
    while outgoing.full():
        outgoing.get_nowait()
    outgoing.put_nowait(text)


async def _write(websocket: WebSocket, outgoing: "asyncio.Queue[str]") -> None:
    while True:
        await websocket.send_text(await outgoing.get())


def _refused(why: str, status: int) -> Response:
    return PlainTextResponse(why, status, headers=HEADERS)


async def _not_allowed(_request: Request, _error: Exception) -> Response:
    return PlainTextResponse("Only GET is answered here.", 405, headers=HEADERS | {"Allow": "GET, HEAD"})


async def _not_found(_request: Request, _error: Exception) -> Response:
    return _refused("There is nothing here. Open the address that counterpoise explore printed.", 404)


class Serving:
    """A server that listens: its address, and how to run and end it."""

    def __init__(self, conversation: Conversation, *, host: str = "127.0.0.1", port: int = 0) -> None:
        import uvicorn  # noqa: PLC0415 - optional

        self.token = secrets.token_urlsafe(24)
        self._socket = _listening(host, port)
        self.port = int(self._socket.getsockname()[1])
        self._host = f"[{host}]" if ":" in host else host
        self._hosts = tuple(f"{name}:{self.port}" for name in dict.fromkeys((*LOOPBACK, self._host)))
        self.app = make_app(conversation, self.token, lambda: self._hosts)
        settings: dict[str, Any] = {
            "log_level": "error",
            "access_log": False,
            "server_header": False,
            "lifespan": "off",
        }
        config = uvicorn.Config(
            self.app,
            ws="websockets-sansio",
            ws_max_size=_MOST_RECEIVED,
            ws_ping_interval=20.0,
            limit_concurrency=256,
            **settings,
        )
        self._server = uvicorn.Server(config)

    @property
    def address(self) -> str:
        """Return the address of the page, with the token."""
        return f"http://{self._host}:{self.port}/{self.token}/"

    def run(self) -> None:
        """Serve until Ctrl-C, or ``stop`` from another thread."""
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self.app.state.worker.close()

    def stop(self) -> None:
        """End ``run``."""
        self._server.should_exit = True


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
        found.listen()  # whoever comes before the server runs waits a moment
    except OSError as error:
        found.close()
        raise ValueError(f"The server cannot listen on {host}, port {port}: {error.strerror}. Name another.") from error
    return found
