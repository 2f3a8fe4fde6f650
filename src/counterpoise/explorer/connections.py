"""Connections that do not hurt others: those that ask nothing give way, and those that take nothing are cut off."""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

MOST_VISITS = 128  # connections at a time that are no sockets of pages
_LAST_WORDS = 10.0  # seconds in which what a page was told last can be taken


class Visit(H11Protocol):
    """A connection over which files are asked for: where there are many, the oldest gives way to a new one.

    Who connects and is silent, or slow, holds nothing that others need; a request is answered long before it is the
    oldest of so many.
    """

    since: float = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Cut off the oldest connections beyond so many."""
        super().connection_made(transport)
        self.since = self.loop.time()
        visits = sorted((one for one in self.connections if isinstance(one, Visit)), key=lambda one: one.since)
        for one in visits[:-MOST_VISITS]:
            self.connections.discard(one)
            one.transport.abort()


class Page(WebSocketsSansIOProtocol):
    """A socket, which is cut off a while after all was said, whether or not it was taken."""

    async def send(self, message: Any) -> None:
        """Send, and know that a refusal in place of a handshake completes it."""
        await super().send(message)
        if self.initial_response is not None:
            self.handshake_complete = True

    async def run_asgi(self) -> None:
        """Talk, and then wait only so long."""
        try:
            await super().run_asgi()
        finally:
            self.loop.call_later(_LAST_WORDS, self.transport.abort)
