"""The embedded services behind their prefixes, whether they share a process with compute or not.

All four, or some of them beside the real ones of others: without identity among them, tokens are those of the Keystone
that `[keystone_authtoken]` names.
"""

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
from kilonova.conf.embedded import SERVICES
from kilonova.core.metrics import OFF, Meters
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
from kilonova.wiring.broker import CREDENTIALS
from kilonova.wiring.parts import EventsToCompute, WsgiApp
from kilonova.wiring.www_authenticate import auth_uri


@dataclass(frozen=True)
class EmbeddedSettings:
    """Where the services are, what they keep where, and what the first start makes.

    open opens a service's database by its name. urls: endpoints of the catalogue that are elsewhere, by type.
    services: which are served.
    """

    base_url: str
    image_dir: Path
    private_cidr: str
    public_cidr: str
    secrets: Secrets
    open: Callable[[str], Database]
    reset_admin: bool = False
    urls: Mapping[str, str] = field(default_factory=dict)
    services: tuple[str, ...] = SERVICES
    meters: Meters = OFF

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


class _OwnIdentity:
    """The embedded identity service, which is ready at once, since others need its tokens."""

    def __init__(self, settings: EmbeddedSettings, conf: Any, transport: Transport) -> None:
        self._settings, self._conf, self._transport, self.url = settings, conf, transport, settings.identity_url
        secrets = settings.secrets
        self._people = identity.make_identity(settings.open("identity"))
        bootstrap_identity(
            self._people, admin_password=secrets.admin_password, demo_password=secrets.demo_password,
            alt_demo_password=secrets.alt_demo_password, service_password=secrets.service_password,
            base_url=settings.base_url, reset_admin=settings.reset_admin, urls=settings.urls,
        )  # fmt: skip
        self.auth = Auth(conf, transport, settings.login("nova") | {
            "auth_type": "password", "user_domain_id": "default", "project_domain_id": "default",
            "www_authenticate_uri": self.url,
        })  # fmt: skip
        self._people.on_revoke(lambda gone: self.auth.forget(gone.secret) if gone.secret else self.auth.forget_all())

    def tokens(self, username: str) -> ServiceTokens:
        return client_auth.password_tokens(self._transport, **self._settings.login(username))

    def owners(self) -> tuple[str, str]:
        with self._people.database.read() as connection:
            projects = {row["name"]: row["id"] for row in PROJECTS.find(connection)}
        return projects["admin"], projects["demo"]

    def apps(self) -> dict[str, WsgiApp]:
        people = identity.make_app(self._people, self.url)
        options = middleware.settings(self._conf, meters=self._settings.meters)
        return {"identity": middleware.pipeline(people, service="identity", settings=options)}


class _OtherIdentity:
    """A Keystone. What the first start makes belongs to the project of the service users."""

    def __init__(self, conf: Any, transport: Transport) -> None:
        self.auth, self.url = Auth(conf), auth_uri(conf)
        self._tokens = client_auth.service_tokens(conf, CREDENTIALS, transport)

    def tokens(self, _username: str) -> ServiceTokens:
        return self._tokens

    def owners(self) -> tuple[str, str]:
        project = self._tokens.project_id()
        return project, project

    def apps(self) -> dict[str, WsgiApp]:
        return {}


class Embedded:
    """The services. `identity` is ready at once, since others need its tokens; the rest when `build` is called."""

    def __init__(self, settings: EmbeddedSettings, conf: Any, transport: Transport, policy: Policy) -> None:
        self.settings, self._conf, self._transport, self._policy = settings, conf, transport, policy
        own = "identity" in settings.services
        self._identity = _OwnIdentity(settings, conf, transport) if own else _OtherIdentity(conf, transport)
        self.auth = self._identity.auth

    def tokens(self, username: str) -> ServiceTokens:
        """A service user's tokens."""
        return self._identity.tokens(username)

    def behind(
        self, service: str, policy: Policy | None = None, *, limit_body: bool = True
    ) -> Callable[[WsgiApp], WsgiApp]:
        """Puts a service behind the middleware. policy: says who is an administrator; compute's without it."""
        options = middleware.settings(self._conf, limit_body=limit_body, meters=self.settings.meters)
        return lambda app: middleware.pipeline(
            app, service=service, settings=options, auth=self.auth, policy=policy or self._policy
        )

    def build(self, pictures_client: HttpImages, compute_url: str) -> tuple[dict[str, WsgiApp], list[Any]]:
        """The applications by prefix, and parts that are to be started.

        pictures_client: how the volume service looks images up. compute_url: where the network's events go.
        RemoteUnavailable while a Keystone does not answer.
        """
        admin, demo = self._identity.owners()
        apps, parts = self._identity.apps(), []
        if "images" in self.settings.services:
            apps["image"] = self.behind("image", limit_body=False)(self._images(admin))
        if "network" in self.settings.services:
            net = self._network(compute_url, admin, demo)
            apps["networking"] = self.behind("network")(net)
            parts.append(net)
        if "volumes" in self.settings.services:
            apps["volume"] = self.behind("volume")(self._volumes(pictures_client))
        return apps, parts

    def _images(self, owner: str) -> WsgiApp:
        pictures = images.make_world(self.settings.open("images"), self.settings.image_dir)
        bootstrap_images(pictures, owner=owner)
        app: WsgiApp = images.make_app(pictures, self._identity.url)
        return app

    def _network(self, compute_url: str, admin: str, demo: str) -> Any:
        compute = RestClient("compute", compute_url, self._transport, self.tokens("neutron"), microversion="compute")
        net = network.make_app(self.settings.open("network"), notifier=EventsToCompute(HttpCompute(compute)))
        bootstrap_network(
            net.database, admin_project=admin, demo_project=demo, private_cidr=self.settings.private_cidr,
            public_cidr=self.settings.public_cidr,
        )  # fmt: skip
        return net

    def _volumes(self, pictures_client: HttpImages) -> WsgiApp:
        app: WsgiApp = volumes.make_app(
            self.settings.open("volumes"), images=lambda ctx, image: pictures_client.as_user(ctx).show(image)
        )
        return app
