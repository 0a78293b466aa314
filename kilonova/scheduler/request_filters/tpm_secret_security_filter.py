"""tpm_secret_security_filter: a guest with a TPM goes where its secret can be kept as the flavor asks."""

from __future__ import annotations

import logging

from kilonova.core.scheduling import RequestFilterFailed
from kilonova.scheduler.guest_features import setting
from kilonova.scheduler.plugins import Additions, RequestFilter
from kilonova.scheduler.request import Request

LOG = logging.getLogger(__name__)

_KEEPERS = ("user", "host", "deployment")


def _apply(request: Request) -> Additions | None:
    spec = request.spec
    if setting(spec, "hw:tpm_version") is None:
        return None
    keeper = spec.flavor.extra_specs.get("hw:tpm_secret_security", "user")
    if keeper not in _KEEPERS:
        LOG.warning("hw:tpm_secret_security=%s of flavor %s is none of %s", keeper, spec.flavor.name, _KEEPERS)
        raise RequestFilterFailed(reason=f"The flavor's hw:tpm_secret_security is none of {', '.join(_KEEPERS)}.")
    trait = f"COMPUTE_SECURITY_TPM_SECRET_SECURITY_{keeper.upper()}"
    LOG.debug("request filter tpm_secret_security_filter added trait %s", trait)
    return Additions(required=frozenset({trait}))


REQUEST_FILTER = RequestFilter("tpm_secret_security_filter", lambda _settings: True, _apply)
