"""One address before several: each connection goes to the next backend that takes it, as a load balancer does.

And what networks do: nothing comes through for a while, and connections may be forgotten meanwhile.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any


class Balancer:
    """`backends` are ports of this machine. It listens from `start` to `stop`, in a thread of its own."""

    def __init__(self, port: int, backends: list[int]) -> None:
        self.port, self._backends, self._turn = port, backends, 0
        self._loop = asyncio.new_event_loop()
        self._flows = asyncio.Event()
        self._flows.set()
        self._ends: set[asyncio.StreamWriter] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, name="balancer", daemon=True)

    def start(self) -> None:
        """Begin to listen."""
        self._thread.start()
        self._do(self._listen())

    def stop(self) -> None:
        """Close everything."""
        self._do(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)

    def cut(self) -> None:
        """From now on nothing comes through, and nobody is told."""
        self._loop.call_soon_threadsafe(self._flows.clear)

    def mend(self, *, forget: bool) -> None:
        """Everything comes through again. forget: the connections of before are reset."""
        self._do(self._mend(forget))

    async def _mend(self, forget: bool) -> None:
        for end in list(self._ends) if forget else ():
            end.transport.abort()
        self._flows.set()

    def _do(self, what: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(what, self._loop).result(10)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, backlog=512)

    async def _end(self) -> None:
        self._server.close()
        rest = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.CancelledError):
            await self._forward(reader, writer)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in self._backends:
            self._turn += 1
            port = self._backends[self._turn % len(self._backends)]
            try:
                there, back = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                continue
            self._ends |= {back, writer}
            await asyncio.gather(self._pour(reader, back), self._pour(there, writer))
            self._ends -= {back, writer}
            return
        writer.close()

    async def _pour(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(1 << 16):
                await self._flows.wait()
                target.write(data)
                await target.drain()
        except OSError:
            pass
        finally:
            await self._flows.wait()
            target.close()
