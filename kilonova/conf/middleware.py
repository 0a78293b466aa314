"""`[oslo_middleware]` and `[cors]`: declared here so that oslo.middleware is imported only when needed."""

from __future__ import annotations

from oslo_config import cfg

OSLO_MIDDLEWARE = (
    cfg.IntOpt("max_request_body_size", default=114688, min=0, help="Largest body of a request, in bytes."),
    cfg.BoolOpt(
        "enable_proxy_headers_parsing", default=False,
        help="Believe the X-Forwarded headers of a proxy in front.",
    ),
)

CORS = (
    cfg.ListOpt("allowed_origin", help="Origins whose pages may call the APIs; unset turns CORS off."),
    cfg.BoolOpt("allow_credentials", default=True, help="Whether such calls may carry credentials."),
    cfg.ListOpt(
        "expose_headers",
        default=[
            "X-Auth-Token", "X-Openstack-Request-Id", "X-Compute-Request-Id", "X-Subject-Token",
            "OpenStack-API-Version", "X-OpenStack-Nova-API-Version",
        ],
        help="Headers a page may read.",
    ),
    cfg.IntOpt("max_age", default=3600, help="Seconds a browser keeps the answer to a preflight."),
    cfg.ListOpt("allow_methods", default=["GET", "PUT", "POST", "DELETE", "PATCH", "HEAD"], help="Methods."),
    cfg.ListOpt(
        "allow_headers",
        default=[
            "X-Auth-Token", "X-Openstack-Request-Id", "X-Service-Token", "OpenStack-API-Version",
            "X-OpenStack-Nova-API-Version",
        ],
        help="Headers a page may send.",
    ),
)
