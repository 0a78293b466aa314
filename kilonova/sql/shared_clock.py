"""The database's clock as the clock of a process, so that hosts whose own clocks differ agree on what time it is.

Who is alive, which row changed last and whose lease is over are comparisons of times that several hosts wrote. Between
two looks at the database time goes on by the monotonic clock, so a step of this host's own clock changes nothing. A
clock that is wrong is said in the log.
"""

from __future__ import annotations

import logging
import threading
from datetime import datetime, timedelta
from typing import Final

import sqlalchemy as sa

from kilonova.core import clock
from kilonova.core.skew import Skew
from kilonova.sql.engine import Database

LOG = logging.getLogger(__name__)

LOOK_EACH: Final = 30.0  # seconds
_SLOW: Final = 1.0  # seconds: an answer that took longer says too little about the time
_STEADY: Final = timedelta(milliseconds=5)  # looks differ by so much for no reason
_EPOCH: Final = datetime(1970, 1, 1)


class SharedClock:
    """See `core.clock.Clock`. `start()` makes it the process's clock, `stop()` gives the former one back.

    Raises what the database raises when the first look fails; later looks that fail are left out.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._ours: clock.Clock | None = None
        self._base = _EPOCH  # what the database had when the monotonic clock was at zero
        self._skew = Skew("this host", "the database's")
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Look, install, and look again from time to time in the background."""
        self.look()
        self._ours = clock.install(self)
        self._thread = threading.Thread(target=self._loop, name="shared clock", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Let go."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(5.0)
        if self._ours is not None:
            clock.install(self._ours)
            self._ours = None

    def utcnow(self) -> datetime:
        """The database's time."""
        return self._base + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        """This host's own."""
        return (self._ours or _HOST).monotonic()

    def sleep(self, seconds: float) -> None:
        """This host's own."""
        (self._ours or _HOST).sleep(seconds)

    def look(self) -> None:
        """Compare the clocks once."""
        with self._database.read() as connection:
            connection.execute(_WARM)  # making a connection takes time, which is not the answer's
            before = self.monotonic()
            millis = connection.execute(sa.select(self._database.now())).scalar_one()
            after = self.monotonic()
        if after - before > _SLOW and self._base != _EPOCH:
            return
        base = _EPOCH + timedelta(milliseconds=float(millis), seconds=-(before + after) / 2)
        if abs(base - self._base) > _STEADY + timedelta(seconds=(after - before) / 2):
            self._base = base
        self._skew.seen((self._ours or _HOST).utcnow() - self.utcnow())

    def _loop(self) -> None:
        while not self._stop.wait(LOOK_EACH):
            try:
                self.look()
            except sa.exc.SQLAlchemyError as error:
                LOG.debug("The database's clock cannot be seen: %s", error)


_HOST: Final = clock.SystemClock()
_WARM: Final = sa.text("SELECT 1")
