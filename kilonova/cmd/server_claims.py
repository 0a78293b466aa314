"""What servers hold in Placement against what they should hold: consumers of one side, servers of the other.

Claims come before servers and servers before releases, so one look proves nothing. What is amiss at the first look is
looked at again some seconds later, one by one, and only then said; it is repaired only while the generation of the
consumer is still the one that was seen. Consumers of types that are not compute's are not judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final
from urllib.parse import parse_qsl

from kilonova.clients.placement import AllocationRefused, ConsumerConflict, HttpPlacement
from kilonova.clients.rest import Doc
from kilonova.clients.servers import Server, Servers
from kilonova.core import clock
from kilonova.core.request_spec import FlavorSpec, RequestSpec
from kilonova.placement.store.operate.books import Finding
from kilonova.placement.store.operate.holdings import Holding
from kilonova.scheduler.plugins import Additions
from kilonova.scheduler.resource_request import to_query

ORPHAN, MISSING, HOST, AMOUNT = "orphan", "missing", "host", "amount"
_OURS: Final = (None, "INSTANCE", "MIGRATION")
_ENDED: Final = frozenset(("completed", "confirmed", "reverted", "cancelled"))  # "done" waits for the host it left
_BROKEN: Final = frozenset(("error", "failed"))
_ELSEWHERE: Final = ("pci_passthrough:alias", "accel:device_profile")
_ALWAYS: Final = ("VCPU", "MEMORY_MB", "DISK_GB")
_TYPED: Final = "1.38"


@dataclass(frozen=True, slots=True)
class Suspect:
    """Something amiss at the first look. ended: it is the consumer of a migration that has ended, by its status."""

    check: str
    consumer: str
    text: str
    holding: Holding | None = None
    server: Server | None = None
    ended: str = ""

    @property
    def finding(self) -> Finding:
        """As it is said."""
        noun = "consumer" if self.check == ORPHAN else "server"
        return Finding(self.check, f"{noun} {self.consumer}", self.text)


@dataclass
class Looked:
    """What came of the first look. others: consumers that are not compute's; young: those left alone for their age."""

    suspects: list[Suspect] = field(default_factory=list)
    servers: int = 0
    others: int = 0
    young: int = 0


@dataclass(frozen=True, slots=True)
class Cloud:
    """The services that are asked. age: how old a consumer or a server must be to be judged."""

    servers: Servers
    placement: HttpPlacement
    age: timedelta

    def first(self, pages: Iterable[list[Holding]]) -> Looked:
        """Compare every consumer with the list of servers."""
        looked = Looked()
        known = self.servers.every()
        looked.servers = len(known)
        unknown: dict[str, Holding] = {}
        holding_servers: set[str] = set()
        for holding in (one for page in pages for one in page):
            server = known.get(holding.consumer)
            if server is not None:
                holding_servers.add(holding.consumer)
                looked.suspects += _amiss(server, holding)
            elif holding.consumer_type not in _OURS:
                looked.others += 1
            elif holding.age < self.age:
                looked.young += 1
            else:
                unknown[holding.consumer] = holding
        looked.suspects += self._orphans(unknown)
        for server in known.values():
            if server.id not in holding_servers and server.settled:
                if self._young(server):
                    looked.young += 1
                else:
                    looked.suspects.append(_missing(server))
        return looked

    def second(self, suspects: Iterable[Suspect]) -> Iterator[Suspect]:
        """Those that still look amiss, as they look now."""
        suspects = list(suspects)
        orphans = {one.consumer: one.holding for one in suspects if one.check == ORPHAN and one.holding}
        for one in self._orphans(orphans):
            assert one.holding is not None
            if (one.ended or self.servers.show(one.consumer) is None) and self._unchanged(one.holding):
                yield one
        for one in suspects:
            if one.check == ORPHAN:
                continue
            server = self.servers.show(one.consumer)
            if server is None or self._on_the_way(server):
                continue
            if one.holding is None:
                if server.settled and not self.placement.allocations(server.id)["allocations"]:
                    yield _missing(server)
            elif self._unchanged(one.holding):
                yield from (again for again in _amiss(server, one.holding) if again.check == one.check)

    def mends(self, suspect: Suspect) -> bool:
        """Whether `mend` can try."""
        return suspect.check in (ORPHAN, MISSING) and suspect.ended not in _BROKEN

    def mend(self, suspect: Suspect) -> str:
        """Put it right; empty when that was done, or why not."""
        repair = {ORPHAN: self._release, MISSING: self._claim}.get(suspect.check)
        if repair is None:
            return "only its administrator can say which is right"
        try:
            return repair(suspect)
        except ConsumerConflict:
            return "it was changed meanwhile"
        except AllocationRefused as error:
            return error.text

    def _on_the_way(self, server: Server) -> bool:
        return any(move.status not in _ENDED | _BROKEN for move in self.servers.migrations(server.id))

    def _young(self, server: Server) -> bool:
        return server.created_at is not None and clock.utcnow() - server.created_at < self.age

    def _orphans(self, unknown: dict[str, Holding]) -> Iterator[Suspect]:
        """Consumers that are no server, apart from those of migrations under way."""
        left = dict(unknown)
        for move in self.servers.migrations() if left else ():
            holding = left.pop(move.uuid, None)
            if holding is not None and move.status in _ENDED | _BROKEN:
                text = f"held by a migration of server {move.server} that has ended: {move.status}"
                yield Suspect(ORPHAN, holding.consumer, text, holding, ended=move.status)
            if not left:
                break
        for holding in left.values():
            yield Suspect(ORPHAN, holding.consumer, f"no server has this id, and it holds {_said(holding)}", holding)

    def _unchanged(self, holding: Holding) -> bool:
        """Whether Placement's own answer is what was read of its database: otherwise it changed, or is another's."""
        found = self.placement.allocations(holding.consumer)
        held = {uuid: row["resources"] for uuid, row in found["allocations"].items()}
        return held == holding.by_provider() and found.get("consumer_generation") == holding.generation

    def _release(self, suspect: Suspect) -> str:
        holding = suspect.holding
        assert holding is not None
        if suspect.ended in _BROKEN:
            return "its migration failed: see where the server is, then delete the allocations by hand"
        self.placement.put_allocations(
            holding.consumer, {}, holding.project_id, holding.user_id, generation=holding.generation
        )
        return ""

    def _claim(self, suspect: Suspect) -> str:
        server = suspect.server
        assert server is not None
        wanted = expected(server)
        if wanted is None:
            return "its flavor asks for more than a host's plain resources: migrate or rebuild it"
        found = [row for row in self.placement.list_providers(name=server.node) if not row["parent_provider_uuid"]]
        if not found:
            return f"there is no provider of the name {server.node}"
        body: Doc = {
            "allocations": {found[0]["uuid"]: {"resources": wanted}}, "project_id": server.project_id,
            "user_id": server.user_id, "consumer_generation": None, "consumer_type": "INSTANCE",
        }  # fmt: skip
        self.placement.post_allocations({server.id: body}, version=_TYPED)
        return ""


def expected(server: Server) -> dict[str, int] | None:
    """Amounts by class that a server's flavor asks of its host itself; None when it asks for anything else."""
    spec = _spec(server)
    if spec is None or any(name in spec.flavor.extra_specs for name in _ELSEWHERE):
        return None
    groups = [(key, value) for key, value in parse_qsl(to_query(spec, Additions())) if key.startswith("resources")]
    return dict(_amounts(groups[0][1])) if len(groups) == 1 and groups[0][0] == "resources" else None


def _spec(server: Server) -> RequestSpec | None:
    size = server.size
    if size is None or size.extra_specs is None:
        return None
    flavor = FlavorSpec(
        id=0, flavorid="", name=size.name, memory_mb=size.ram, vcpus=size.vcpus, root_gb=size.disk,
        ephemeral_gb=size.ephemeral, swap=size.swap, extra_specs=dict(size.extra_specs),
    )  # fmt: skip
    return RequestSpec(server.project_id, server.user_id, flavor, is_bfv=server.from_volume)


def _amounts(text: str) -> Iterator[tuple[str, int]]:
    for part in text.split(","):
        name, _, amount = part.partition(":")
        yield name, int(amount)


def _missing(server: Server) -> Suspect:
    return Suspect(MISSING, server.id, f"on {server.node} and holds nothing", server=server)


def _amiss(server: Server, holding: Holding) -> Iterator[Suspect]:
    """A server that holds something of another host, or other amounts than its flavor's."""
    if not server.settled:
        return
    other = sorted({amount.root for amount in holding.amounts if amount.root != server.node and not amount.shared})
    if other:
        text = f"on {server.node} and holds something of {', '.join(other)}"
        yield Suspect(HOST, server.id, text, holding, server)
        return
    wanted = expected(server)
    if wanted is None:
        return
    held, wanted = _in_cpus(holding.by_class()), _in_cpus(wanted)
    pairs = {name: (held.get(name, 0), wanted.get(name, 0)) for name in sorted({*wanted, *_ALWAYS})}
    differ = [f"{has} {name} and its flavor asks {asked}" for name, (has, asked) in pairs.items() if has != asked]
    if differ:
        yield Suspect(AMOUNT, server.id, f"holds {', '.join(differ)}", holding, server)


def _in_cpus(amounts: dict[str, int]) -> dict[str, int]:
    """Dedicated and shared processors as one sum: which they are an image may say as well."""
    rest = {name: amount for name, amount in amounts.items() if name not in ("VCPU", "PCPU")}
    cpus = amounts.get("VCPU", 0) + amounts.get("PCPU", 0)
    return {"VCPU": cpus, **rest} if cpus else rest


def _said(holding: Holding) -> str:
    roots = ", ".join(sorted({amount.root for amount in holding.amounts}))
    return ", ".join(f"{amount} {name}" for name, amount in sorted(holding.by_class().items())) + f" of {roots}"
