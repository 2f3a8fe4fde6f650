"""Questions to the actors of a Dask cluster: straight to their workers where this process can reach them.

Dask sends what a client asks an actor through the scheduler unless the client was made with
``direct_to_workers=True``. A round asks a dozen times and gets histograms back, so we look whether a worker can be
reached, and go through the scheduler only where it cannot.
"""

import asyncio
from collections.abc import Iterable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

_SOON = 3.0  # seconds in which a worker that can be reached answers, busy as it may be


class Calls:
    """Questions of one client."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._is_near: dict[str, bool] = {}

    def ask(self, actor: Any, method: str, *given: Any) -> Future[Any]:
        """Ask an actor, and return at once; the result raises ``OSError`` where its worker is gone."""
        return asyncio.run_coroutine_threadsafe(self._asked(actor, method, given), self._client.loop.asyncio_loop)

    def reach(self, addresses: Iterable[str]) -> None:
        """Find out which workers can be reached from here, all at once."""
        new = [address for address in addresses if address not in self._is_near]
        if self._client.direct_to_workers:
            self._is_near |= dict.fromkeys(new, True)
        elif new:
            self._is_near |= dict(zip(new, self._client.sync(self._reached, new), strict=True))

    async def _reached(self, addresses: list[str]) -> list[bool]:
        known = (await self._client.scheduler.identity())["workers"]
        return await asyncio.gather(*(self._is_reached(one, known.get(one, {}).get("id")) for one in addresses))

    async def _is_reached(self, address: str, name: Any) -> bool:
        """Tell whether the worker of that name answers: in another network the address may be someone else's."""
        with suppress(Exception):
            return bool((await asyncio.wait_for(self._client.rpc(address).identity(), _SOON))["id"] == name)
        return False

    async def _asked(self, actor: Any, method: str, given: tuple[Any, ...]) -> Any:
        from distributed.actor import ProxyRPC  # noqa: PLC0415 - optional
        from distributed.protocol import to_serialize  # noqa: PLC0415

        address = actor._address  # noqa: SLF001 - there is no other name for it
        is_near = self._is_near.get(address, False)
        worker = self._client.rpc(address) if is_near else ProxyRPC(self._client.scheduler, address)
        args = [to_serialize(one) for one in given]
        found = await worker.actor_execute(function=method, actor=actor.key, args=args, kwargs={})
        if found["status"] != "OK":
            raise found["exception"]
        return found["result"]
