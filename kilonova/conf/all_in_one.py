"""What `kilonova up` was asked for: the settings of a whole cloud in one process, beside those of `kilonova.conf`.

`cmd` fills it from the command line and the state directory; `wiring` builds the cloud from it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from kilonova.core import ids

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8774
DEFAULT_HOSTS = 4
DEFAULT_PRIVATE_CIDR = "10.0.0.0/16"
DEFAULT_PUBLIC_CIDR = "172.24.4.0/24"


@dataclass(frozen=True)
class Secrets:
    """Passwords of the users that a new cloud has; generated once and kept in the state directory.

    metadata_secret: with it a proxy signs whose metadata a guest asks for.
    """

    admin_password: str = field(repr=False)
    demo_password: str = field(repr=False)
    alt_demo_password: str = field(repr=False)
    service_password: str = field(repr=False)
    metadata_secret: str = field(default_factory=ids.new_password, repr=False)


@dataclass(frozen=True)
class AllInOne:
    """Settings of a cloud in one process.

    `state_dir` exists and is locked by this process. `hosts` is the number of simulated hypervisors. The CIDRs are
    those of the networks `private` and `public` that the first start makes. The passwords in `secrets` matter for users
    that the start makes; with `reset_admin`, admin's is set although the user is there.
    """

    host: str
    port: int
    state_dir: Path
    hosts: int
    private_cidr: str
    public_cidr: str
    secrets: Secrets
    config_files: tuple[Path, ...] = ()
    reset_admin: bool = False

    @property
    def database_dir(self) -> Path:
        """Where the SQLite files are."""
        return self.state_dir / "databases"

    @property
    def image_dir(self) -> Path:
        """Where the bytes of images are."""
        return self.state_dir / "images"

    @property
    def log_file(self) -> Path:
        """The log of the process."""
        return self.state_dir / "kilonova.log"

    @property
    def base_url(self) -> str:
        """Where clients reach the cloud: an address, also when it listens on all of them."""
        host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(self.host, self.host)
        return f"http://{f'[{host}]' if ':' in host and not host.startswith('[') else host}:{self.port}"
