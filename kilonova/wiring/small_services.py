"""The small services, all four or some of them, as a process of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from kilonova.clients.auth import rest_client
from kilonova.conf import databases
from kilonova.conf.all_in_one import Secrets
from kilonova.http.policy import Policy, compute_rules
from kilonova.http.server import HttpServer
from kilonova.http.transport import RoutedTransport, SocketTransport, WsgiTransport
from kilonova.sql.engine import Database
from kilonova.sql.shared_clock import SharedClock
from kilonova.wiring.broker import NeedsSetting
from kilonova.wiring.embedded import Embedded, EmbeddedSettings
from kilonova.wiring.parts import Cloud, Later, clients_over, mounted


def embedded(conf: Any) -> Cloud:
    """The small services over a socket."""
    options = conf.embedded
    if not options.services:
        raise NeedsSetting(group="embedded", name="services")
    for name in ("admin_password", "service_password"):
        if "identity" in options.services and not getattr(options, name):
            raise NeedsSetting(group="embedded", name=name)
    base = (options.base_url or f"http://{options.listen}:{options.listen_port}").rstrip("/")
    root, opened, open_database = Later(), [], databases.opener(conf)

    def database(service: str) -> Database:
        opened.append(open_database(databases.embedded_address(conf, service)))
        return opened[-1]

    Path(conf.state_path).mkdir(parents=True, exist_ok=True)
    transport = RoutedTransport({base: WsgiTransport(root)}, SocketTransport())
    people = options.demo_password or options.admin_password
    services = Embedded(
        EmbeddedSettings(
            base_url=base, image_dir=Path(options.image_dir or Path(conf.state_path) / "images"),
            private_cidr=options.private_cidr, public_cidr=options.public_cidr,
            secrets=Secrets(options.admin_password, people, people, options.service_password),
            open=database, services=tuple(options.services),
            urls={
                "compute": options.compute_url, "placement": options.placement_url,
                "scheduler": urljoin(options.compute_url, "/scheduler"),  # the API process serves both
            },
        ),
        conf, transport, Policy(compute_rules(), conf),
    )  # fmt: skip
    tokens = services.tokens("nova")
    clients = clients_over(lambda group: rest_client(conf, group, transport, tokens))
    apps, parts = services.build(clients.images, options.compute_url)
    cloud = Cloud(base, [SharedClock(opened[0]), *parts], opened, HttpServer(root, options.listen, options.listen_port))
    root.app = mounted(apps, lambda: cloud.ready)
    return cloud
