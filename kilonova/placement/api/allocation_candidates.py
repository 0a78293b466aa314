"""Allocation candidates: where a request would fit, read from the snapshot and binding nobody."""

from __future__ import annotations

import logging
from dataclasses import replace

from kilonova.core import clock, ids
from kilonova.http.fields import Enum, Param, Query, Str
from kilonova.http.op import Op, Request
from kilonova.http.versions import Since
from kilonova.placement.api import candidate_query, candidate_view, filters
from kilonova.placement.api.answers import Dated
from kilonova.placement.candidates import search
from kilonova.placement.candidates.request import Answers
from kilonova.placement.metrics import CUT, FOUND, SEARCH
from kilonova.placement.store.keeper import View

LOG = logging.getLogger(__name__)

SHARING = "MISC_SHARES_VIA_AGGREGATE"

_GROUPS = """
Each of {names} may also be given with a suffix. Parameters that share a suffix form a group, all of which one provider
serves. {suffix} With more than one such group group_policy is compulsory.{bare}
"""


def _groups(names: str, suffix: str, bare: str = "") -> str:
    return _GROUPS.format(names=names, suffix=suffix, bare=bare).strip().replace("\n", " ")


_NUMBERS = "A suffix is a number from 1 on without leading zeros, as in resources1."
_WORDS = "A suffix is 1 to 64 letters, digits, '_' and '-', as in resources_NIC."
_BARE = " A group named in same_subtree may be without resources; some group must have them."

QUERY = Query(
    (
        Param("resources", words="Amounts by resource class: VCPU:2,MEMORY_MB:512. Each class comes whole from one "
              "provider."),
        Param("limit", Str(pattern="^[1-9][0-9]{0,17}$"), many=True, since="1.16",
              words="The most candidates to answer. The first value counts."),
        Param("required", many=True, since="1.17", words=filters.REQUIRED),
        Param("member_of", many=True, since="1.21", words=filters.MEMBER_OF),
        Param("group_policy", Enum("none", "isolate"), many=True, since="1.25",
              words="Whether groups with a suffix may share a provider (none) or not (isolate)."),
        Param("in_tree", many=True, since="1.31", words="The UUID of a provider in the tree that must serve."),
        Param("root_required", many=True, since="1.35",
              words="Traits that the root of the tree must have; !A is one it must not have. May be given once."),
        Param("same_subtree", many=True, since="1.36",
              words="Suffixes of groups, one of whose providers must be above all others. Each repetition is a list of "
              "its own."),
    ),
    open=True,  # suffixed groups have names of their own; what is neither is refused by `candidate_query`
    words=Since(
        "",
        ("1.25", _groups("resources, required and member_of", _NUMBERS)),
        ("1.31", _groups("resources, required, member_of and in_tree", _NUMBERS)),
        ("1.33", _groups("resources, required, member_of and in_tree", _WORDS)),
        ("1.36", _groups("resources, required, member_of and in_tree", _WORDS, _BARE)),
    ),
)  # fmt: skip
FLAGS = candidate_query.FLAGS


def list_candidates(req: Request) -> Dated:
    """Candidates and the summaries of the providers in them."""
    view: View = req.world.keeper.current()
    answers = _find(req, view)
    req.say(candidates=len(answers.rows), cut=answers.cut, revision=view.total)
    if req.flag("mappings"):
        return Dated(candidate_view.encoded(answers, view.snapshot, view.names))
    body = candidate_view.older(
        answers, view.snapshot, view.names, nested=req.flag("nested"), by_provider=req.flag("by_provider"),
        traits=req.flag("traits"), all_classes=req.flag("all_classes"),
    )  # fmt: skip
    return Dated(body)


def _find(req: Request, view: View) -> Answers:
    settings = req.world.settings
    query = replace(candidate_query.read(req, view.names), breadth=settings.breadth)
    wanted, cap = query.limit, settings.max_candidates
    if settings.randomize:
        query = replace(query, limit=None)
    if cap >= 0 and (query.limit is None or query.limit > cap):
        query = replace(query, limit=cap)
    meters, started = req.world.meters, clock.monotonic()
    answers = search.find(view.snapshot, query, sharing=view.names.trait_ids.get(SHARING))
    meters.record(SEARCH, clock.monotonic() - started)
    meters.record(FOUND, len(answers.rows))
    if answers.cut:
        meters.record(CUT)
        LOG.warning("The search for allocation candidates met its bound of %s steps; %s answers were found.",
                    query.steps, len(answers.rows))  # fmt: skip
    if not settings.randomize:
        return answers
    return replace(answers, rows=ids.shuffled(answers.rows)[:wanted])


OPS = (
    Op("GET", "/allocation_candidates", list_candidates, "placement:allocation_candidates:list", query=QUERY,
       since="1.10", flags=FLAGS),
)  # fmt: skip
