"""The four embedded services behind their prefixes, whether they share a process with compute or not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kilonova.clients import auth as client_auth
from kilonova.clients.auth import ServiceTokens
from kilonova.clients.compute import HttpCompute
from kilonova.clients.images import HttpImages
from kilonova.clients.rest import RestClient, Transport
from kilonova.conf.all_in_one import Secrets
from kilonova.embedded.identity import app as identity
from kilonova.embedded.identity.bootstrap import bootstrap as bootstrap_identity
from kilonova.embedded.identity.tables import PROJECTS
from kilonova.embedded.images import app as images
from kilonova.embedded.images.bootstrap import bootstrap as bootstrap_images
from kilonova.embedded.network import app as network
from kilonova.embedded.network.topology import bootstrap as bootstrap_network
from kilonova.embedded.volumes import app as volumes
from kilonova.http import middleware
from kilonova.http.auth import Auth
from kilonova.http.policy import Policy
from kilonova.sql.engine import Database
from kilonova.wiring.parts import EventsToCompute, WsgiApp


@dataclass(frozen=True)
class EmbeddedSettings:
    """Where the services are, what they keep where, and what the first start makes.

    open opens a service's database by its name. urls: endpoints of the catalogue that are elsewhere, by type.
    """

    base_url: str
    image_dir: Path
    private_cidr: str
    public_cidr: str
    secrets: Secrets
    open: Callable[[str], Database]
    reset_admin: bool = False
    urls: Mapping[str, str] = field(default_factory=dict)

    @property
    def identity_url(self) -> str:
        """Where tokens come from."""
        return f"{self.base_url}/identity"

    def login(self, username: str) -> dict[str, str]:
        """What a service user logs in with."""
        return {
            "auth_url": self.identity_url, "username": username, "password": self.secrets.service_password,
            "project_name": "service",
        }  # fmt: skip


class Embedded:
    """The services. `identity` is ready at once, since others need its tokens; the rest when `build` is called."""

    def __init__(self, settings: EmbeddedSettings, conf: Any, transport: Transport, policy: Policy) -> None:
        self.settings, self._conf, self._transport, self._policy = settings, conf, transport, policy
        secrets = settings.secrets
        self._people = identity.make_identity(settings.open("identity"))
        bootstrap_identity(
            self._people, admin_password=secrets.admin_password, demo_password=secrets.demo_password,
            alt_demo_password=secrets.alt_demo_password, service_password=secrets.service_password,
            base_url=settings.base_url, reset_admin=settings.reset_admin, urls=settings.urls,
        )  # fmt: skip
        self.auth = Auth(conf, transport, settings.login("nova") | {
            "auth_type": "password", "user_domain_id": "default", "project_domain_id": "default",
            "www_authenticate_uri": settings.identity_url,
        })  # fmt: skip
        self._people.on_revoke(lambda gone: self.auth.forget(gone.secret) if gone.secret else self.auth.forget_all())

    def tokens(self, username: str) -> ServiceTokens:
        """A service user's tokens."""
        return client_auth.password_tokens(self._transport, **self.settings.login(username))

    def behind(self, service: str, *, limit_body: bool = True) -> Callable[[WsgiApp], WsgiApp]:
        """Puts a service behind the middleware."""
        options = middleware.settings(self._conf, limit_body=limit_body)
        return lambda app: middleware.pipeline(
            app, service=service, settings=options, auth=self.auth, policy=self._policy
        )

    def build(self, pictures_client: HttpImages, compute_url: str) -> tuple[dict[str, WsgiApp], Any]:
        """The applications by prefix, and the network service, which is to be started.

        pictures_client: how the volume service looks images up. compute_url: where the network's events go.
        """
        settings, url = self.settings, self.settings.identity_url
        with self._people.database.read() as connection:
            projects = {row["name"]: row["id"] for row in PROJECTS.find(connection)}
        pictures = images.make_world(settings.open("images"), settings.image_dir)
        bootstrap_images(pictures, owner=projects["admin"])
        compute = RestClient("compute", compute_url, self._transport, self.tokens("neutron"), microversion="compute")
        net = network.make_app(settings.open("network"), notifier=EventsToCompute(HttpCompute(compute)))
        bootstrap_network(
            net.database, admin_project=projects["admin"], demo_project=projects["demo"],
            private_cidr=settings.private_cidr, public_cidr=settings.public_cidr,
        )  # fmt: skip
        disks = volumes.make_app(
            settings.open("volumes"), images=lambda ctx, image: pictures_client.as_user(ctx).show(image)
        )
        people = identity.make_app(self._people, url)
        apps: dict[str, WsgiApp] = {
            "identity": middleware.pipeline(people, service="identity", settings=middleware.settings(self._conf)),
            "image": self.behind("image", limit_body=False)(images.make_app(pictures, url)),
            "networking": self.behind("network")(net),
            "volume": self.behind("volume")(disks),
        }
        return apps, net
