"""An agent as a process of its own. It knows no database: only its cell's bus and Placement."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kilonova.agent.service import Agent
from kilonova.agent.settings import AgentSettings
from kilonova.agent.state import agent_identity
from kilonova.clients.auth import rest_client, service_tokens
from kilonova.clients.placement import HttpPlacement
from kilonova.http.transport import SocketTransport, socket_transport
from kilonova.virt.simulated import SimulatedDriver, SimulatedSettings
from kilonova.wiring.broker import CREDENTIALS, open_bus
from kilonova.wiring.parts import Cloud, Part, process


def agent(conf: Any) -> Cloud:
    """An agent with the simulated driver. It knows no database: only its cell's bus and Placement."""
    directory = Path(conf.state_path)
    directory.mkdir(parents=True, exist_ok=True)
    bus = open_bus(conf)
    tokens = service_tokens(conf, CREDENTIALS, SocketTransport())
    capacity = rest_client(conf, "placement", socket_transport(conf.placement), tokens)
    driver = SimulatedDriver(str(directory / "guests.db"), settings=SimulatedSettings.from_conf(conf))
    settings, identity = AgentSettings.from_conf(conf), agent_identity(directory, conf.host)
    one = Agent(identity, bus, driver, HttpPlacement(capacity), settings, directory)

    def stop() -> None:
        one.stop()
        driver.close()
        bus.close()

    def start() -> None:
        bus.connect()
        one.start()

    return process([Part(start, stop)], [])
