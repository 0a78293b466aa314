"""`[embedded]`: the small identity, image, network and volume services as a process of their own. The group is ours."""

from __future__ import annotations

from oslo_config import cfg, types

SERVICES = ("identity", "images", "network", "volumes")

OPTS = (
    cfg.StrOpt("listen", default="127.0.0.1", help="Address to listen on."),
    cfg.PortOpt("listen_port", default=8780, help="Port to listen on."),
    cfg.StrOpt("base_url", help="Where clients reach the services; unset is made of `listen` and `listen_port`."),
    cfg.ListOpt(
        "services", default=SERVICES, item_type=types.String(choices=SERVICES),
        help="Which are served. Without identity, tokens are those of the Keystone of `[keystone_authtoken]`.",
    ),
    cfg.StrOpt(
        "connection", secret=True,
        help="SQLAlchemy URL with {service} in it, which is identity, images, network and volumes; unset is an SQLite "
        "file each in the state directory.",
    ),
    cfg.StrOpt("image_dir", help="Where the bytes of images are; unset is `images` in the state directory."),
    cfg.StrOpt("compute_url", default="http://127.0.0.1:8774/v2.1", help="Endpoint of compute, for the catalogue."),
    cfg.StrOpt("placement_url", default="http://127.0.0.1:8778", help="Endpoint of Placement, for the catalogue."),
    cfg.StrOpt("private_cidr", default="10.0.0.0/16", help="Addresses of the network `private`, at the first start."),
    cfg.StrOpt("public_cidr", default="172.24.4.0/24", help="Addresses of the network `public`, at the first start."),
    cfg.StrOpt("admin_password", secret=True, help="Password of `admin`, at the first start; identity needs it."),
    cfg.StrOpt("demo_password", secret=True, help="Password of `demo` and `alt_demo`; unset is admin's."),
    cfg.StrOpt("service_password", secret=True, help="Password of the service users; identity needs it."),
)  # fmt: skip
