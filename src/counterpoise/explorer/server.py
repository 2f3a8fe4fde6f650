"""A small server for one session: one page, one module, one style sheet, one socket, for this machine alone.

The address holds a token. Without it the server reveals nothing, not even that there is a page. It refuses pages of
other origins, and host names that others may point here. It sends no table of rows.
"""

import asyncio
import secrets
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from counterpoise.explorer.conversation import LOG, TOO_MANY, Client, Conversation, SolveWorkers, asset, refusal

MOST_VISITS = 128  # connections at a time that are no sockets of pages
_LAST_WORDS = 10.0  # seconds for a page to take the last message


class Visit(H11Protocol):
    """A connection that requests files. If there are too many, a new one replaces the oldest.

    A silent or slow client therefore blocks nobody, and a request is answered long before its connection is the
    oldest.
    """

    since: float = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Close the oldest connections beyond the limit."""
        super().connection_made(transport)
        self.since = self.loop.time()
        visits = sorted((one for one in self.connections if isinstance(one, Visit)), key=lambda one: one.since)
        for one in visits[:-MOST_VISITS]:
            self.connections.discard(one)
            one.transport.abort()


class Page(WebSocketsSansIOProtocol):
    """A socket that closes a while after the last message, whether or not the page received it."""

    async def send(self, message: Any) -> None:
        """Send; a refusal instead of a handshake completes the handshake."""
        await super().send(message)
        if self.initial_response is not None:
            self.handshake_complete = True

    async def run_asgi(self) -> None:
        """Handle the connection, then wait a limited time."""
        try:
            await super().run_asgi()
        finally:
            self.loop.call_later(_LAST_WORDS, self.transport.abort)


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
_POLICY_VIOLATION, _TOO_LARGE, _TRY_LATER = 1008, 1009, 1013  # codes with which a socket is closed
_MOST_RECEIVED = 1 << 22  # bytes of a message that is looked at, and refused in a sentence; beyond, the socket closes
_WAITING = 100  # messages for a page that does not read: then it is let go
_PATIENCE = 5.0  # seconds in which a page must take the sentence with which it is let go
NOTHING = "There is nothing here. Open the address that counterpoise explore printed."
OTHER_HOST = "This server answers by the name of this machine alone."
OTHER_ORIGIN = "This server answers its own page alone: open the address that counterpoise explore printed."
FULL = f"At most {MOST_CLIENTS} pages can be open at a time. Close one, and load this page again."
UNREAD = f"This page did not read {_WAITING} answers: it is let go. Load it again."


def make_app(conversation: Conversation, token: str, hosts: Callable[[], tuple[str, ...]]) -> Starlette:
    """Return the application that serves a session.

    Parameters
    ----------
    conversation : Conversation
    token : str
        The secret part of every address.
    hosts : callable
        Returns the names with ports by which the server may be called, known once it listens.
    """
    workers = SolveWorkers.start()
    clients: set[Client] = set()

    def is_known(value: str) -> bool:
        return secrets.compare_digest(value.encode(), token.encode())

    async def page(request: Request) -> Response:
        if request.headers.get("host", "") not in hosts():
            return _refuse(OTHER_HOST, 421)
        entry = ASSETS.get(request.path_params.get("name", ""))
        if not is_known(request.path_params["token"]) or entry is None:
            return _refuse(NOTHING, 404)
        name, kind = entry
        return Response(asset(name), headers=HEADERS | {"Content-Type": kind})

    async def talk(websocket: WebSocket) -> None:
        origin, names = websocket.headers.get("origin"), hosts()
        if not is_known(websocket.path_params["token"]):
            await websocket.send_denial_response(_refuse(NOTHING, 404))
        elif websocket.headers.get("host", "") not in names or origin not in {f"http://{name}" for name in names}:
            await websocket.send_denial_response(_refuse(OTHER_ORIGIN, 403))
        else:
            await websocket.accept()  # only what comes over the socket can be shown by the page
            if len(clients) < MOST_CLIENTS:
                await _talk(websocket, conversation, workers, clients)
            else:
                await _let_go(websocket, _TRY_LATER, FULL)

    routes = [
        WebSocketRoute("/{token}/socket", talk),
        Route("/{token}/", page, methods=["GET"]),
        Route("/{token}/{name}", page, methods=["GET"]),
        Route("/{path:path}", _not_found, methods=["GET"]),
    ]
    app = Starlette(routes=routes, exception_handlers={405: _not_allowed, 404: _not_found})
    app.state.workers, app.state.clients = workers, clients
    return app


async def _talk(websocket: WebSocket, conversation: Conversation, workers: SolveWorkers, clients: set[Client]) -> None:
    """Read messages until the page leaves or is disconnected; send answers in the order in which they are ready."""
    loop, outgoing = asyncio.get_running_loop(), asyncio.Queue[str]()

    def send(text: str) -> None:
        loop.call_soon_threadsafe(outgoing.put_nowait, text)

    client = Client(conversation, workers, send)
    clients.add(client)
    writer = asyncio.create_task(_write(websocket, outgoing))
    try:
        send(conversation.hello)
        why = await _listen(websocket, client, outgoing)
    finally:
        client.leave()
        clients.discard(client)
        writer.cancel()
    if why:
        await _let_go(websocket, _POLICY_VIOLATION, why)


async def _listen(websocket: WebSocket, client: Client, outgoing: "asyncio.Queue[str]") -> str:
    """Read the messages of a page, and return why it is disconnected; an empty text where it left."""
    while True:
        message = await websocket.receive()
        if message["type"] == "websocket.disconnect":
            if message.get("code") == _TOO_LARGE:
                LOG.warning("refused: a message of more than %d bytes", _MOST_RECEIVED)
            return ""
        text = message.get("text")
        if not client.hear(message.get("bytes") if text is None else text):
            return TOO_MANY
        if outgoing.qsize() > _WAITING:
            return UNREAD


async def _let_go(websocket: WebSocket, code: int, why: str) -> None:
    """Close a socket with a sentence, as its last message and as the reason; wait only a limited time."""
    with suppress(TimeoutError, WebSocketDisconnect, RuntimeError):
        async with asyncio.timeout(_PATIENCE):
            await websocket.send_text(refusal(0, why))
            await websocket.close(code, why)


async def _write(websocket: WebSocket, outgoing: "asyncio.Queue[str]") -> None:
    with suppress(WebSocketDisconnect, RuntimeError):  # it left meanwhile
        while True:
            await websocket.send_text(await outgoing.get())


def _refuse(why: str, status: int) -> Response:
    LOG.warning("refused: %d, %s", status, why)
    return PlainTextResponse(why, status, headers=HEADERS)


async def _not_allowed(_request: Request, _error: Exception) -> Response:
    return PlainTextResponse("Only GET is answered here.", 405, headers=HEADERS | {"Allow": "GET, HEAD"})


async def _not_found(_request: Request, _error: Exception | None = None) -> Response:
    return _refuse(NOTHING, 404)


class Serving:
    """A server that listens: its address, and how to run and end it."""

    def __init__(self, conversation: Conversation, *, host: str = "127.0.0.1", port: int = 0) -> None:
        import uvicorn  # noqa: PLC0415 - optional

        self.token = secrets.token_urlsafe(24)
        self._socket = _listen_on(host, port)
        self.port = int(self._socket.getsockname()[1])
        self._host = f"[{host}]" if ":" in host else host
        self._hosts = tuple(f"{name}:{self.port}" for name in dict.fromkeys((*LOOPBACK, self._host)))
        self.app = make_app(conversation, self.token, lambda: self._hosts)
        settings: dict[str, Any] = {"http": Visit, "ws": Page, "ws_max_size": _MOST_RECEIVED, "ws_ping_interval": 20.0}
        settings |= {"log_level": "error", "access_log": False, "server_header": False, "lifespan": "off"}
        self._server = uvicorn.Server(uvicorn.Config(self.app, **settings))

    @property
    def address(self) -> str:
        """Return the address of the page, with the token."""
        return f"http://{self._host}:{self.port}/{self.token}/"

    def run(self) -> None:
        """Serve until Ctrl-C, or ``stop`` from another thread."""
        try:
            self._server.run(sockets=[self._socket])
        finally:
            for worker in self.app.state.workers:
                worker.close()

    def stop(self) -> None:
        """End ``run``."""
        self._server.should_exit = True


def _listen_on(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen()  # pages that come before the server runs wait a moment
    except OSError as error:
        listener.close()
        raise ValueError(f"The server cannot listen on {host}:{port}: {error.strerror}. Choose another.") from error
    return listener
