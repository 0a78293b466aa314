"""`[api]` and `[placement]` as the Placement service reads them (in compute, groups of those names are others)."""

from __future__ import annotations

from oslo_config import cfg

_NOBODY = "00000000-0000-0000-0000-000000000000"

API = (
    cfg.StrOpt(
        "auth_strategy", default="keystone", choices=["keystone", "noauth2"],
        help="Who says who a client is: the identity service, or, for tests on this machine only, the client itself.",
    ),
)

OPTS = (
    cfg.IntOpt("allocation_conflict_retry_count", default=10, min=0, help="Tries after a lost race between writes."),
    cfg.IntOpt(
        "max_allocation_candidates", default=-1,
        help="Candidates found at most before the search ends; -1 leaves it to the built-in bound of work.",
    ),
    cfg.BoolOpt("randomize_allocation_candidates", default=False, help="Answer a random choice where there are more."),
    cfg.StrOpt(
        "allocation_candidates_generation_strategy", default="depth-first", choices=["depth-first", "breadth-first"],
        help="Whether a limited answer exhausts one provider tree before the next, or takes of each in turn.",
    ),
    cfg.StrOpt("incomplete_consumer_project_id", default=_NOBODY, help="Project of consumers written before 1.8."),
    cfg.StrOpt("incomplete_consumer_user_id", default=_NOBODY, help="User of consumers written before 1.8."),
)
