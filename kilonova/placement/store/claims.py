"""Writing allocations: each claim is a set of conditional updates, so over-commit is impossible and nothing is summed.

Order of locks: consumers by uuid, providers by id (raising a provider's generation locks it and guards its
inventories), then rows of allocations by primary key, then the change log. Deltas are taken per provider and class
over all consumers of the request, after their old rows are taken off: moving everything from one full provider to
another passes, and so does any change that does not raise the use of an over-committed one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import sqlalchemy as sa

from kilonova.core import clock
from kilonova.placement.errors import BadRequest, ConsumerGenerationConflict, NoRoom, NoSuch, Refused
from kilonova.placement.metrics import CLAIMS
from kilonova.placement.store import names as catalogue
from kilonova.placement.store.changes import What
from kilonova.placement.store.names import Names
from kilonova.placement.store.schema import allocations, consumers, inventories, resource_providers
from kilonova.placement.store.transactions import Race, Transaction, Writer, inserted, matched


@dataclass(frozen=True, slots=True)
class Claim:
    """What one consumer shall hold afterwards: amounts by provider uuid and class name; nothing when empty.

    With `compare` the consumer must have `generation`, and must not exist when that is None. A project, user or
    type of None leaves an existing consumer's as it is.
    """

    consumer: str
    amounts: Mapping[str, Mapping[str, int]]
    project_id: str | None = None
    user_id: str | None = None
    consumer_type: str | None = None
    compare: bool = False
    generation: int | None = None

    @property
    def holds(self) -> bool:
        """Whether anything is held afterwards."""
        return any(self.amounts.values())


@dataclass(frozen=True, slots=True)
class Incomplete:
    """The owner written for consumers whose request names none (microversions below 1.8)."""

    project_id: str = "00000000-0000-0000-0000-000000000000"
    user_id: str = "00000000-0000-0000-0000-000000000000"


@dataclass(slots=True)
class _Need:
    """What the request changes on one provider and class: the amounts' extremes decide the unit rules."""

    delta: int = 0
    low: int = 0
    high: int = 0
    divisor: int = 0

    def take(self, amount: int) -> None:
        self.delta += amount
        self.low = min(self.low, amount) if self.low else amount
        self.high = max(self.high, amount)
        self.divisor = math.gcd(self.divisor, amount)


class _NotNew(Exception):
    """A consumer that was taken for new exists."""


@dataclass(frozen=True, slots=True)
class Held:
    """A locked consumer, if there is one, and the allocations it has. made: by this transaction."""

    claim: Claim
    consumer_id: int | None
    old: Sequence[Any]
    made: bool = False


_CONSUMER = (
    sa.select(consumers.c.id, consumers.c.generation)
    .where(consumers.c.uuid == sa.bindparam("u"))
    .with_for_update()
)
_CONSUMER_NEXT = (
    sa.update(consumers)
    .where(consumers.c.id == sa.bindparam("i"))
    .values(
        generation=consumers.c.generation + 1,
        project_id=sa.func.coalesce(sa.bindparam("project", type_=sa.String), consumers.c.project_id),
        user_id=sa.func.coalesce(sa.bindparam("user", type_=sa.String), consumers.c.user_id),
        consumer_type_id=sa.func.coalesce(sa.bindparam("type", type_=sa.Integer), consumers.c.consumer_type_id),
    )
)
_CONSUMER_GONE = sa.delete(consumers).where(consumers.c.id == sa.bindparam("i"))
_HELD = sa.select(
    allocations.c.id, allocations.c.provider_id, allocations.c.class_id, allocations.c.used
).where(allocations.c.consumer_id == sa.bindparam("c"))
_RELEASE = sa.delete(allocations).where(allocations.c.id == sa.bindparam("i"))
_ALLOCATE = sa.insert(allocations)
_ENROL = sa.insert(consumers)
_BUMP = (
    sa.update(resource_providers)
    .where(resource_providers.c.id == sa.bindparam("p"))
    .values(generation=resource_providers.c.generation + 1, updated_at=resource_providers.c.updated_at)
)
_LOCK = sa.select(resource_providers.c.id).where(resource_providers.c.id == sa.bindparam("p")).with_for_update()
_IDS = sa.select(resource_providers.c.uuid, resource_providers.c.id).where(
    resource_providers.c.uuid.in_(sa.bindparam("u", expanding=True))
)
_ROOM = sa.select(inventories, resource_providers.c.uuid).where(
    inventories.c.provider_id == sa.bindparam("p"), resource_providers.c.id == inventories.c.provider_id
)
_USE_STATEMENTS: dict[int, sa.Update] = {}


def write(
    writer: Writer, names: Names, claims: Sequence[Claim], *, known: Mapping[str, int], incomplete: Incomplete
) -> None:
    """Replace the whole set of each consumer named, all in one transaction.

    `known` are provider ids by uuid that may be out of date. BadRequest for an unknown provider or class,
    ConsumerGenerationConflict, Refused when an inventory is missing, unit rules are broken or there is no room.
    """
    attempts = 0

    def work(transaction: Transaction, hopeful: bool) -> None:
        nonlocal attempts
        attempts += 1
        apply(transaction, names, claims, known if attempts == 1 else {}, incomplete, hopeful=hopeful)

    try:
        writer.run(partial(work, hopeful=True))
    except _NotNew:
        writer.run(partial(work, hopeful=False))
    writer.meters.record(CLAIMS, len(claims))


def release(writer: Writer, consumer: str) -> None:
    """Remove everything a consumer holds, whatever its generation; NoSuch when it holds nothing."""

    def work(transaction: Transaction) -> None:
        held = _hold(transaction, Claim(consumer, {}))
        if not held.old:
            raise NoSuch(f"No allocations for consumer '{consumer}'")
        for provider_id, needs in sorted(_needs([held], {}, {}).items()):
            transaction.connection.execute(_LOCK, {"p": provider_id})
            _use(transaction, provider_id, needs, None)
        _settle(transaction, held, {}, None, Incomplete())

    writer.run(work)


def apply(
    transaction: Transaction, names: Names, claims: Sequence[Claim], known: Mapping[str, int], incomplete: Incomplete,
    *, hopeful: bool = False,
) -> None:  # fmt: skip
    """`write` within a transaction that does nothing else, or holds every lock already.

    hopeful: consumers that shall not exist yet are made without a look; _NotNew when there is one.
    """
    providers = _resolve(transaction, claims, known)
    _check_classes(claims, names)
    held = [
        _made(transaction, claim, names, incomplete)
        if hopeful and claim.compare and claim.generation is None and claim.holds
        else _hold(transaction, claim)
        for claim in _in_order(claims)
    ]
    for provider_id, needs in sorted(_needs(held, providers, names.class_ids).items()):
        if matched(_BUMP, transaction.connection, {"p": provider_id}) != 1:
            raise Race  # deleted, perhaps made anew with another id: look it up again
        _use(transaction, provider_id, needs, names)
    for one in held:
        _settle(transaction, one, providers, names, incomplete)


def hold(transaction: Transaction, claims: Sequence[Claim]) -> list[Held]:
    """Lock the consumers of some claims, in the order of their uuids, and compare their generations."""
    return [_hold(transaction, claim) for claim in _in_order(claims)]


def _in_order(claims: Sequence[Claim]) -> list[Claim]:
    return sorted(claims, key=lambda claim: claim.consumer)


def _resolve(transaction: Transaction, claims: Sequence[Claim], known: Mapping[str, int]) -> dict[str, int]:
    wanted = {uuid for claim in claims for uuid in claim.amounts}
    found = {uuid: known[uuid] for uuid in wanted if uuid in known}
    missing = sorted(wanted - found.keys())
    if missing:
        found.update((uuid, id_) for uuid, id_ in transaction.connection.execute(_IDS, {"u": missing}))
    for uuid in missing:
        if uuid not in found:
            raise BadRequest(f"Allocation for resource provider '{uuid}' that does not exist.")
    return found


def _check_classes(claims: Sequence[Claim], names: Names) -> None:
    for claim in claims:
        for amounts in claim.amounts.values():
            for name in amounts:
                if name not in names.class_ids:
                    start = f"Unable to allocate inventory for consumer {claim.consumer}"
                    raise BadRequest(f"{start}: No such resource class {name}.")


def _hold(transaction: Transaction, claim: Claim) -> Held:
    """Lock the consumer, compare its generation and read what it has."""
    row = transaction.connection.execute(_CONSUMER, {"u": claim.consumer}).first()
    actual = None if row is None else row.generation
    if claim.compare and claim.generation != actual:
        raise ConsumerGenerationConflict(
            uuid=claim.consumer, given=_said(claim.generation), actual=_said(actual)
        )
    if row is None:
        return Held(claim, None, ())
    return Held(claim, row.id, transaction.connection.execute(_HELD, {"c": row.id}).all())


def _said(generation: int | None) -> str:
    return "null" if generation is None else str(generation)


def _needs(
    held: Sequence[Held], providers: Mapping[str, int], classes: Mapping[str, int]
) -> dict[int, dict[int, _Need]]:
    """Net changes by provider id and class id."""
    needs: dict[int, dict[int, _Need]] = {}
    for one in held:
        for uuid, amounts in one.claim.amounts.items():
            there = needs.setdefault(providers[uuid], {})
            for name, amount in amounts.items():
                there.setdefault(classes[name], _Need()).take(amount)
        for row in one.old:
            needs.setdefault(row.provider_id, {}).setdefault(row.class_id, _Need()).delta -= row.used
    return needs


def _use(transaction: Transaction, provider_id: int, needs: Mapping[int, _Need], names: Names | None) -> None:
    """Change `used` of every class needed on one provider, or raise what stands in the way."""
    parameters: dict[str, object] = {"p": provider_id}
    for n, (class_id, need) in enumerate(sorted(needs.items())):
        parameters |= {f"c{n}": class_id, f"d{n}": need.delta}
        parameters |= {f"l{n}": need.low, f"h{n}": need.high, f"g{n}": need.divisor}
    if matched(_use_statement(len(needs)), transaction.connection, parameters) != len(needs):
        _refuse(transaction, provider_id, needs, names)
    transaction.touch(provider_id, What.USAGE)


def _use_statement(count: int) -> sa.Update:
    """The conditional update for so many classes, built once per number of classes."""
    made = _USE_STATEMENTS.get(count)
    if made is None:
        made = _USE_STATEMENTS[count] = _build_use(count)
    return made


def _build_use(count: int) -> sa.Update:
    table = inventories.c

    def bind(name: str, n: int) -> sa.BindParameter[int]:
        return sa.bindparam(f"{name}{n}", type_=sa.BigInteger)

    fits = [
        sa.and_(
            table.class_id == bind("c", n),
            sa.or_(bind("d", n) <= 0, table.used + bind("d", n) <= table.capacity),
            sa.or_(
                bind("h", n) == 0,
                sa.and_(
                    bind("l", n) >= table.min_unit, bind("h", n) <= table.max_unit, bind("g", n) % table.step_size == 0
                ),
            ),
        )
        for n in range(count)
    ]
    delta = sa.case(*((table.class_id == bind("c", n), bind("d", n)) for n in range(count)), else_=0)
    return (
        sa.update(inventories)
        .where(table.provider_id == sa.bindparam("p"), sa.or_(*fits))
        .values(used=table.used + delta, updated_at=table.updated_at)
    )


def _refuse(transaction: Transaction, provider_id: int, needs: Mapping[int, _Need], names: Names | None) -> None:
    """Find out why the update matched too few rows."""
    rows = {row.class_id: row for row in transaction.connection.execute(_ROOM, {"p": provider_id})}
    uuid = next((row.uuid for row in rows.values()), None) or transaction.connection.execute(
        sa.select(resource_providers.c.uuid).where(resource_providers.c.id == provider_id)
    ).scalar_one()
    for class_id, need in sorted(needs.items()):
        name = names.class_names.get(class_id, str(class_id)) if names else str(class_id)
        about = f"'{name}' on resource provider '{uuid}'"
        row = rows.get(class_id)
        if row is None:
            raise Refused(f"Unable to allocate inventory: Inventory for {about} invalid.")
        broken = need.high and (
            need.low < row.min_unit or need.high > row.max_unit or need.divisor % row.step_size != 0
        )
        start = f"Unable to allocate inventory: Unable to create allocation for {about}. The requested amount would"
        if broken:
            raise Refused(f"{start} violate inventory constraints.")
        if need.delta > 0 and row.used + need.delta > row.capacity:
            raise NoRoom(f"{start} exceed the capacity.")
    raise Race  # it was in the way for a moment only


def _settle(
    transaction: Transaction,
    held: Held,
    providers: Mapping[str, int],
    names: Names | None,
    incomplete: Incomplete,
) -> None:
    """Write the consumer and its rows of allocations. names: None where the claim has no amounts."""
    connection = transaction.connection
    if held.old:
        connection.execute(_RELEASE, [{"i": row.id} for row in held.old])
    claim, consumer_id = held.claim, held.consumer_id
    if not claim.holds or names is None:
        if consumer_id is not None:
            connection.execute(_CONSUMER_GONE, {"i": consumer_id})
        return
    if consumer_id is None:
        consumer_id = inserted(_ENROL, connection, _new(transaction, claim, names, incomplete))
    elif not held.made:
        connection.execute(_CONSUMER_NEXT, {
            "i": consumer_id, "project": claim.project_id, "user": claim.user_id,
            "type": _type_id(transaction, claim, names),
        })  # fmt: skip
    now = clock.utcnow()
    connection.execute(_ALLOCATE, [
        {"consumer_id": consumer_id, "provider_id": providers[uuid], "class_id": names.class_ids[name], "used": amount,
         "created_at": now, "updated_at": now}
        for uuid, amounts in claim.amounts.items()
        for name, amount in amounts.items()
    ])  # fmt: skip


def _made(transaction: Transaction, claim: Claim, names: Names, incomplete: Incomplete) -> Held:
    """A new consumer, locked as a row of this transaction."""
    row = _new(transaction, claim, names, incomplete)
    try:
        return Held(claim, inserted(_ENROL, transaction.connection, row), (), made=True)
    except sa.exc.IntegrityError as error:
        raise _NotNew from error


def _new(transaction: Transaction, claim: Claim, names: Names, incomplete: Incomplete) -> dict[str, Any]:
    """The row of a new consumer."""
    return {
        "uuid": claim.consumer,
        "project_id": claim.project_id or incomplete.project_id,
        "user_id": claim.user_id or incomplete.user_id,
        "consumer_type_id": _type_id(transaction, claim, names),
        "generation": 1,
    }


def _type_id(transaction: Transaction, claim: Claim, names: Names) -> int | None:
    if claim.consumer_type is None:
        return None
    return catalogue.consumer_type_id(transaction, names, claim.consumer_type)
