"""The table of calls: every message between our processes is a row here. Callers and dispatch derive from it.

Messages grow by optional fields only, so that a rolling upgrade works one release apart. Casts may be lost or
doubled by the transport; whoever needs certainty sends again (see `workflows.engine`) and answers repeats.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, Literal, TypeVar

import msgspec

from kilonova.core.capacity import Capacity
from kilonova.core.decision import Decision
from kilonova.core.pci.requests import PciRequest
from kilonova.core.request_spec import RequestSpec, Selection

Req = TypeVar("Req", bound=msgspec.Struct)
Rep = TypeVar("Rep", bound="msgspec.Struct | None")


@dataclass(frozen=True, slots=True)
class Call(Generic[Req, Rep]):
    """One row. `topic` is who serves it; an agent is addressed by its id, the others by the topic alone.

    timeout: "short" is `rpc_response_timeout`, "long" is `long_rpc_timeout`; casts have none.
    """

    name: str
    topic: Literal["conductor", "scheduler", "agent"]
    request: type[Req]
    reply: type[Rep] | None = None
    kind: Literal["call", "cast"] = "cast"
    timeout: Literal["short", "long"] = "short"


# -- messages ----------------------------------------------------------------------------------------------------


class Wake(msgspec.Struct, frozen=True):
    """A workflow has something to do. database: "api" or the uuid of a cell."""

    database: str
    workflow: str


class Event(msgspec.Struct, frozen=True):
    """Something a parked workflow may wait for, e.g. name `network-vif-plugged`, key the port's id."""

    database: str
    server: str
    name: str
    key: str = ""
    status: str = "completed"


class Events(msgspec.Struct, frozen=True):
    """Several events at once."""

    events: tuple[Event, ...]


class Ticket(msgspec.Struct, frozen=True):
    """Which step of which workflow wants a verb done. The verb's id is (workflow, step, attempt).

    An agent refuses an epoch older than the newest it has seen for the server, and answers a repeated id from
    what it did.
    """

    database: str
    workflow: str
    step: str
    attempt: int
    epoch: int
    server: str
    host: str

    @property
    def id(self) -> str:
        """The verb's id."""
        return f"{self.workflow}/{self.step}/{self.attempt}"


class GuestSpec(msgspec.Struct, frozen=True, omit_defaults=True):
    """A guest as a hypervisor needs to know it. vifs and disks are the documents of workflows.build.

    numa_topology (a text of `core.numa.wire`) and pci_devices (addresses) are what the agent has claimed for it;
    accelerators, what the accelerator service has bound to it, with its handles.
    """

    uuid: str
    name: str
    hostname: str
    project_id: str
    user_id: str
    vcpus: int
    memory_mb: int
    root_gb: int
    ephemeral_gb: int = 0
    swap_mb: int = 0
    image: dict[str, Any] = {}
    flavor: dict[str, Any] = {}
    vifs: tuple[dict[str, Any], ...] = ()
    disks: tuple[dict[str, Any], ...] = ()
    metadata: dict[str, str] = {}
    admin_password: str | None = None
    user_data: str | None = None
    key_data: str | None = None
    config_drive: bool = False
    pci_requests: tuple[PciRequest, ...] = ()
    numa_topology: str = ""
    pci_devices: tuple[str, ...] = ()
    accelerators: tuple[dict[str, Any], ...] = ()


class Spawn(msgspec.Struct, frozen=True):
    """Make a guest and start it; `paused` leaves it paused until `Power(state="running")`.

    limits: of the selection, which a claim of NUMA cells keeps to. devices_from: per request for PCI devices the
    providers that were claimed in Placement, where they were.
    """

    ticket: Ticket
    guest: GuestSpec
    paused: bool = False
    limits: dict[str, float] = {}
    devices_from: dict[str, list[str]] = {}


class Destroy(msgspec.Struct, frozen=True):
    """Stop a guest and remove it with its local disks; done already is done."""

    ticket: Ticket
    disks: tuple[dict[str, Any], ...] = ()


class Power(msgspec.Struct, frozen=True):
    """Bring a guest to a power state."""

    ticket: Ticket
    state: Literal["running", "paused", "shutdown", "suspended", "reboot-soft", "reboot-hard"]
    timeout: int = 60


class Disk(msgspec.Struct, frozen=True):
    """Attach or detach one volume of a running or stopped guest."""

    ticket: Ticket
    disk: dict[str, Any]
    attach: bool = True


class VerbReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a verb ended. retriable: the failure says nothing against trying another host."""

    ticket: Ticket
    ok: bool
    result: dict[str, Any] = {}
    error_code: str = ""
    error: str = ""
    retriable: bool = True


class HostReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """One hypervisor as its agent sees it. Only what changed since the last report need be sent.

    numa_topology and pci_stats: texts of `core.numa.wire` and `core.pci.pools`, None for a host without.
    """

    host: str
    node: str
    uuid: str
    hypervisor_type: str
    hypervisor_version: int
    vcpus: int
    memory_mb: int
    local_gb: int
    host_ip: str | None = None
    cpu_info: dict[str, Any] = {}
    vcpus_used: int = 0
    memory_mb_used: int = 0
    local_gb_used: int = 0
    running_vms: int = 0
    disk_available_least: int | None = None
    supported_instances: tuple[tuple[str, str, str], ...] = ()
    stats: dict[str, Any] = {}
    cpu_allocation_ratio: float = 4.0
    ram_allocation_ratio: float = 1.0
    disk_allocation_ratio: float = 1.0
    numa_topology: str | None = None
    pci_stats: str | None = None


class HostReports(msgspec.Struct, frozen=True):
    """Up to 500 hosts of one agent process. epoch rises each time the process starts."""

    agent: str
    epoch: int
    version: int
    reports: tuple[HostReport, ...]


class AgentBeat(msgspec.Struct, frozen=True, omit_defaults=True):
    """An agent process is alive. in_hand: ids of the verbs it is working on. hosts: how many it serves.

    ask: the answer shall say which of its hosts are disabled. first: since its start the process has not told of its
    hosts, so the answer shall say whether just these are on record.
    """

    agent: str
    epoch: int
    hosts: int
    in_hand: tuple[str, ...] = ()
    ask: bool = False
    first: bool = False


class BeatReply(msgspec.Struct, frozen=True, omit_defaults=True):
    """unknown: the conductor has no record of this agent's hosts; send full reports.

    disabled: hosts whose service is disabled, of those reported, or of all when the beat asked; None: not looked up.
    refused: hosts that were not taken, because their node is known under another uuid.
    time: the time that the control plane goes by, to a beat.
    """

    unknown: bool = False
    disabled: tuple[str, ...] | None = None
    refused: tuple[str, ...] = ()
    time: datetime | None = None


class SelectDestinations(msgspec.Struct, frozen=True):
    """Find and claim hosts for these servers, all equal, all or none.

    operation: "build" for servers that hold nothing yet; "move" for one that may, and keeps it beside the claim;
    "rebuild" only asks whether the forced host still takes the server, and claims nothing.
    """

    spec: RequestSpec
    servers: tuple[str, ...]
    alternates: bool = True
    operation: Literal["build", "move", "rebuild"] = "build"


class Destinations(msgspec.Struct, frozen=True):
    """Per server, in the order asked: the claimed host first, then alternates."""

    selections: tuple[tuple[Selection, ...], ...]


class Simulate(msgspec.Struct, frozen=True):
    """Decide as for so many equal servers, and claim nothing."""

    spec: RequestSpec
    count: int = 1


class Simulated(msgspec.Struct, frozen=True):
    """What would have been decided."""

    decision: Decision


class MeasureCapacity(msgspec.Struct, frozen=True):
    """How many servers like this fit beside those that are there?"""

    spec: RequestSpec


class HostsChanged(msgspec.Struct, frozen=True):
    """Hosts whose compute node, service or aggregate rows changed; empty means all."""

    hosts: tuple[str, ...] = ()


class ConsoleOutput(msgspec.Struct, frozen=True):
    """The last `length` lines of a guest's console; None for all of it."""

    host: str
    server: str
    length: int | None = None


class ConsoleText(msgspec.Struct, frozen=True):
    """Console output."""

    output: str


class GuestList(msgspec.Struct, frozen=True):
    """Which guests are on these hosts?"""

    hosts: tuple[str, ...]


class Guest(msgspec.Struct, frozen=True):
    """A guest that a hypervisor has; power_state is a number of `core.states`."""

    server: str
    host: str
    power_state: int = 0


class Guests(msgspec.Struct, frozen=True):
    """Guests."""

    guests: tuple[Guest, ...]


class RemoveGuests(msgspec.Struct, frozen=True):
    """Destroy these guests, which belong to no workflow: their servers are deleted or elsewhere."""

    guests: tuple[Guest, ...]


class Refresh(msgspec.Struct, frozen=True):
    """Report these hosts in full, now; empty means all."""

    hosts: tuple[str, ...] = ()


# -- rows --------------------------------------------------------------------------------------------------------

wake_workflow: Call[Wake, None] = Call("wake_workflow", "conductor", Wake)
deliver_events: Call[Events, None] = Call("deliver_events", "conductor", Events)
verb_report: Call[VerbReport, None] = Call("verb_report", "conductor", VerbReport)
host_reports = Call("host_reports", "conductor", HostReports, BeatReply, kind="call")
agent_beat = Call("agent_beat", "conductor", AgentBeat, BeatReply, kind="call")

select_destinations = Call(
    "select_destinations", "scheduler", SelectDestinations, Destinations, kind="call", timeout="long"
)
simulate_request = Call("simulate_request", "scheduler", Simulate, Simulated, kind="call", timeout="long")
measure_capacity = Call("measure_capacity", "scheduler", MeasureCapacity, Capacity, kind="call", timeout="long")
hosts_changed: Call[HostsChanged, None] = Call("hosts_changed", "scheduler", HostsChanged)

guest_spawn: Call[Spawn, None] = Call("guest_spawn", "agent", Spawn)
guest_destroy: Call[Destroy, None] = Call("guest_destroy", "agent", Destroy)
guest_power: Call[Power, None] = Call("guest_power", "agent", Power)
guest_disk: Call[Disk, None] = Call("guest_disk", "agent", Disk)
console_output = Call("console_output", "agent", ConsoleOutput, ConsoleText, kind="call")
list_guests = Call("list_guests", "agent", GuestList, Guests, kind="call")
remove_guests: Call[RemoveGuests, None] = Call("remove_guests", "agent", RemoveGuests)
refresh_hosts: Call[Refresh, None] = Call("refresh_hosts", "agent", Refresh)

CALLS: dict[str, Call[Any, Any]] = {row.name: row for row in list(globals().values()) if isinstance(row, Call)}
VERBS: frozenset[str] = frozenset({"guest_spawn", "guest_destroy", "guest_power", "guest_disk"})
