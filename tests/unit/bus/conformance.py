"""What every transport must do, written over a factory: `transports` lists them, tests/unit/bus/test_bus.py runs it.

A transport factory answers a line: one and the same object as client and server for the local transport, two
connections for a broker. Where a broker cannot keep the suite's word to the letter, the line says what it does instead.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from kilonova.bus import calls
from kilonova.bus.bus import Bus, Handler, NoAnswer, NobodyServes
from kilonova.bus.local import LocalBus
from kilonova.conf.load import load
from kilonova.core.context import Context, current, preserved
from kilonova.core.errors import Conflict, KilonovaError, NotFound
from kilonova.core.request_spec import FlavorSpec, RequestSpec, Selection
from kilonova.sql.engine import Database
from tests.rabbitmq import remove_queues

WAIT = 5.0


class HostIsFull(Conflict):
    """A domain error of this suite."""

    code, message = "suite_host_is_full", "Host {host} holds {count} servers."


class Line:
    """One way to talk: through `client`, to handlers served with `server`.

    stopped: what a caller is told of an address whose server has stopped.
    another: a server that takes what `server` left in the transport when it was closed; None where nothing is left.
    """

    def __init__(
        self, client: Bus, server: Bus, close: Callable[[], None], *,
        stopped: type[KilonovaError] = NobodyServes, another: Callable[[], Bus] | None = None,
    ) -> None:  # fmt: skip
        self.client, self.server, self.close, self.stopped, self.another = client, server, close, stopped, another


def local_line(_request: pytest.FixtureRequest) -> Line:
    bus = LocalBus()
    return Line(bus, bus, bus.close)


def rabbit_line(request: pytest.FixtureRequest) -> Line:
    url: str = request.getfixturevalue("rabbit_url")  # before the import, which is dear
    from kilonova.bus.amqp import AmqpBus

    conf = load([], {"rpc_response_timeout": 2, "transport_url": url})
    opened: list[_Noting] = []

    def open_one() -> Bus:
        opened.append(_Noting(AmqpBus(conf)))
        return opened[-1]

    def close() -> None:
        closing = [threading.Thread(target=bus.close) for bus in opened]
        for thread in closing:
            thread.start()
        for thread in closing:
            thread.join()
        remove_queues(url, {name for bus in opened for name in bus.queues})

    # The queue of an address outlives its server, so that what is sent to it over a restart is kept.
    return Line(open_one(), open_one(), close, stopped=NoAnswer, another=open_one)


class _Noting:
    """A bus that notes which queues its servers have."""

    def __init__(self, bus: Bus) -> None:
        self.call, self.cast, self.close = bus.call, bus.cast, bus.close
        self._bus, self.queues = bus, set[str]()

    def serve(self, topic: str, handlers: Mapping[str, Handler], *, address: str = "") -> Callable[[], None]:
        self.queues |= {topic, f"{topic}.{address or 'any'}"}
        return self._bus.serve(topic, handlers, address=address)


transports: dict[str, Callable[[pytest.FixtureRequest], Line]] = {"local": local_line, "rabbitmq": rabbit_line}


@pytest.fixture(params=sorted(transports))
def line(request: pytest.FixtureRequest) -> Iterator[Line]:
    made = transports[request.param](request)
    with preserved():
        yield made
    made.close()


def _ctx(**more: Any) -> Context:
    return Context(
        user_id="u1", project_id="p1", roles=["member"], overwrite=False,
        request_id="req-00000000-0000-4000-8000-00000000000a", **more,
    )  # fmt: skip


def _console(**more: Any) -> calls.ConsoleOutput:
    return calls.ConsoleOutput(**({"host": "h1", "server": "s1", "length": 3} | more))


class Conformance:
    def test_a_call_answers_with_the_handlers_reply(self, line: Line) -> None:
        line.server.serve("agent", {"console_output": lambda ctx, r: calls.ConsoleText(r.host * (r.length or 0))},
                          address="a1")  # fmt: skip
        assert line.client.call(calls.console_output, _console(), to="a1", ctx=_ctx()) == calls.ConsoleText("h1h1h1")

    def test_messages_arrive_equal_and_as_other_objects(self, line: Line) -> None:
        spec = RequestSpec("p", "u", FlavorSpec(1, "1", "f", 64, 1, 1, extra_specs={"a": "b"}), num_instances=2)
        sent = calls.SelectDestinations(spec, ("s1", "s2"))
        seen: list[Any] = []
        chosen = calls.Destinations(((Selection("h", "n", "r", "c", '{"x": 1}', limits={"vcpu": 4.0}),),))

        def handler(_ctx: Context, request: Any) -> Any:
            seen.append(request)
            return chosen

        line.server.serve("scheduler", {"select_destinations": handler})
        answer = line.client.call(calls.select_destinations, sent, ctx=_ctx())
        assert seen == [sent]
        assert seen[0] is not sent
        assert seen[0].spec.flavor.extra_specs is not spec.flavor.extra_specs
        assert answer == chosen
        assert answer is not chosen

    def test_a_cast_is_handled_once_in_another_thread(self, line: Line) -> None:
        seen: list[tuple[int, Any]] = []
        came = threading.Event()

        def handler(_ctx: Context, request: Any) -> None:
            seen.append((threading.get_ident(), request))
            came.set()

        line.server.serve("conductor", {"wake_workflow": handler})
        line.client.cast(calls.wake_workflow, calls.Wake("api", "w1"), ctx=_ctx())
        assert came.wait(WAIT)
        assert [request for _, request in seen] == [calls.Wake("api", "w1")]
        assert seen[0][0] != threading.get_ident()

    def test_the_context_crosses_and_the_callers_stays(self, line: Line) -> None:
        seen: list[Any] = []

        def handler(ctx: Context, _request: Any) -> calls.ConsoleText:
            seen.append((ctx.to_message(), current().request_id))  # type: ignore[union-attr]
            Context(user_id="somebody else")  # overwrites the thread's context, as any request does
            return calls.ConsoleText("")

        line.server.serve("agent", {"console_output": handler}, address="a1")
        mine = _ctx(global_request_id="req-00000000-0000-4000-8000-00000000000b", is_admin=True)
        mine.update_store()
        line.client.call(calls.console_output, _console(), to="a1")
        assert seen == [(mine.to_message(), mine.request_id)]
        assert current() is mine

    def test_log_lines_of_a_handler_carry_the_request_id(
        self, line: Line, caplog: pytest.LogCaptureFixture
    ) -> None:
        found: list[Any] = []
        came = threading.Event()

        class Filter(logging.Filter):
            def filter(self, record: logging.LogRecord) -> bool:
                found.append(current().request_id)  # type: ignore[union-attr]
                return True

        log = logging.getLogger("kilonova.suite.conformance")
        log.addFilter(Filter())

        def handler(_ctx: Context, _request: Any) -> None:
            log.warning("here")
            came.set()

        line.server.serve("conductor", {"wake_workflow": handler})
        line.client.cast(calls.wake_workflow, calls.Wake("api", "w1"), ctx=_ctx())
        assert came.wait(WAIT)
        assert found == ["req-00000000-0000-4000-8000-00000000000a"]

    def test_a_domain_error_is_raised_again_as_its_class_with_text_and_details(self, line: Line) -> None:
        def handler(_ctx: Context, _request: Any) -> Any:
            raise HostIsFull(host="h1", count=9)

        line.server.serve("agent", {"console_output": handler}, address="a1")
        with pytest.raises(HostIsFull) as caught:
            line.client.call(calls.console_output, _console(), to="a1", ctx=_ctx())
        assert caught.value.text == "Host h1 holds 9 servers."
        assert caught.value.details == {"host": "h1", "count": 9}
        assert caught.value.status == 409

    def test_an_unexpected_error_crosses_as_internal_without_its_words(self, line: Line) -> None:
        def handler(_ctx: Context, _request: Any) -> Any:
            raise ZeroDivisionError("secret")

        line.server.serve("agent", {"console_output": handler}, address="a1")
        with pytest.raises(KilonovaError) as caught:
            line.client.call(calls.console_output, _console(), to="a1", ctx=_ctx())
        assert type(caught.value) is KilonovaError
        assert "secret" not in str(caught.value)

    def test_nobody_serves_is_said_at_once_for_an_address_and_for_a_topic(self, line: Line) -> None:
        line.server.serve("agent", {"console_output": lambda ctx, r: calls.ConsoleText("")}, address="a1")
        with pytest.raises(NobodyServes, match="a2"):
            line.client.call(calls.console_output, _console(), to="a2", ctx=_ctx())
        with pytest.raises(NobodyServes):
            line.client.call(calls.select_destinations, calls.SelectDestinations(
                RequestSpec("p", "u", FlavorSpec(1, "1", "f", 64, 1, 1)), ("s",)), ctx=_ctx())  # fmt: skip

    def test_a_server_that_stopped_is_nobody(self, line: Line) -> None:
        stop = line.server.serve("agent", {"console_output": lambda ctx, r: calls.ConsoleText("")}, address="a1")
        line.client.call(calls.console_output, _console(), to="a1", ctx=_ctx())
        stop()
        with pytest.raises(line.stopped):
            line.client.call(calls.console_output, _console(), to="a1", ctx=_ctx())

    def test_addresses_are_kept_apart(self, line: Line) -> None:
        for name in ("a1", "a2"):
            line.server.serve("agent", {"console_output": lambda ctx, r, n=name: calls.ConsoleText(n)}, address=name)
        for name in ("a2", "a1"):
            assert line.client.call(calls.console_output, _console(), to=name, ctx=_ctx()).output == name

    def test_an_addressed_server_also_takes_what_is_sent_to_its_topic(self, line: Line) -> None:
        came: list[str] = []
        both = threading.Event()

        def handler(name: str) -> Any:
            def handle(_ctx: Context, _request: Any) -> None:
                came.append(name)
                if len(set(came)) == 2:
                    both.set()

            return handle

        for name in ("c1", "c2"):
            line.server.serve("conductor", {"wake_workflow": handler(name)}, address=name)
        for _ in range(10):
            line.client.cast(calls.wake_workflow, calls.Wake("api", "w"), ctx=_ctx())
        assert both.wait(WAIT)

    def test_no_call_is_made_inside_a_write_transaction(self, line: Line) -> None:
        line.server.serve("agent", {"console_output": lambda ctx, r: calls.ConsoleText("")}, address="a1")
        database = Database("sqlite://")
        with database.write(), pytest.raises(RuntimeError, match="transaction"):
            line.client.call(calls.console_output, _console(), to="a1", ctx=_ctx())
        line.client.call(calls.console_output, _console(), to="a1", ctx=_ctx())
        database.dispose()

    def test_a_wrong_request_or_reply_type_or_kind_of_sending_is_refused(self, line: Line) -> None:
        line.server.serve("agent", {"console_output": lambda ctx, r: calls.BeatReply()}, address="a1")
        with pytest.raises(TypeError):
            line.client.call(calls.console_output, calls.Wake("a", "b"), to="a1", ctx=_ctx())  # type: ignore[arg-type]
        with pytest.raises(KilonovaError, match="unexpected"):
            line.client.call(calls.console_output, _console(), to="a1", ctx=_ctx())
        with pytest.raises(TypeError):
            line.client.cast(calls.console_output, _console(), to="a1", ctx=_ctx())
        with pytest.raises(TypeError):
            line.client.call(calls.wake_workflow, calls.Wake("a", "b"), ctx=_ctx())

    def test_serving_a_row_of_another_topic_is_refused(self, line: Line) -> None:
        for name in ("guest_spawn", "no_such_row"):
            with pytest.raises(ValueError, match=name):
                line.server.serve("conductor", {name: lambda ctx, r: None})

    def test_a_handler_may_call_back_through_the_bus(self, line: Line) -> None:
        line.server.serve("agent", {"console_output": lambda ctx, r: calls.ConsoleText("inner")}, address="a1")

        def handler(_ctx: Context, _request: Any) -> calls.Destinations:
            line.client.call(calls.console_output, _console(), to="a1")
            raise NotFound("as it should be")

        line.server.serve("scheduler", {"select_destinations": handler})
        with pytest.raises(NotFound, match="as it should be"):
            line.client.call(calls.select_destinations, calls.SelectDestinations(
                RequestSpec("p", "u", FlavorSpec(1, "1", "f", 64, 1, 1)), ("s",)), ctx=_ctx())  # fmt: skip

    def test_closing_lets_casts_end_and_loses_none(self, line: Line) -> None:
        began: list[str] = []
        ended: list[str] = []
        first, every, release = threading.Event(), threading.Event(), threading.Event()

        def handler(_ctx: Context, request: Any) -> None:
            began.append(request.workflow)
            first.set()
            release.wait(WAIT)
            ended.append(request.workflow)
            if len(ended) == 20:
                every.set()

        line.server.serve("conductor", {"wake_workflow": handler}, address="c1")
        for number in range(20):
            line.client.cast(calls.wake_workflow, calls.Wake("api", f"w{number}"), ctx=_ctx())
        assert first.wait(WAIT)
        release.set()
        line.server.close()
        assert sorted(ended) == sorted(began)
        if line.another is not None:
            line.another().serve("conductor", {"wake_workflow": handler}, address="c1")
        assert every.wait(WAIT)
        assert sorted(ended) == sorted(f"w{number}" for number in range(20))
