"""Allocation candidates: where a request would fit, read from the snapshot and binding nobody."""

from __future__ import annotations

import logging
from dataclasses import replace

from kilonova.core import ids
from kilonova.http.fields import Enum, Param, Query, Str
from kilonova.http.op import Op, Request
from kilonova.placement.api import candidate_query, candidate_view
from kilonova.placement.api.answers import Dated
from kilonova.placement.candidates import search
from kilonova.placement.candidates.request import Answers
from kilonova.placement.store.keeper import View

LOG = logging.getLogger(__name__)

SHARING = "MISC_SHARES_VIA_AGGREGATE"

QUERY = Query(
    (
        Param("resources"),
        Param("limit", Str(pattern="^[1-9][0-9]{0,17}$"), many=True, since="1.16"),
        Param("required", many=True, since="1.17"),
        Param("member_of", many=True, since="1.21"),
        Param("group_policy", Enum("none", "isolate"), many=True, since="1.25"),
        Param("in_tree", many=True, since="1.31"),
        Param("root_required", many=True, since="1.35"),
        Param("same_subtree", many=True, since="1.36"),
    ),
    open=True,  # suffixed groups have names of their own; what is neither is refused by `candidate_query`
)
FLAGS = candidate_query.FLAGS


def list_candidates(req: Request) -> Dated:
    """Candidates and the summaries of the providers in them."""
    view: View = req.world.keeper.current()
    answers = _find(req, view)
    if req.flag("mappings"):
        return Dated(candidate_view.encoded(answers, view.snapshot, view.names))
    body = candidate_view.document(
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
    answers = search.find(view.snapshot, query, sharing=view.names.trait_ids.get(SHARING))
    if answers.cut:
        LOG.warning("The search for allocation candidates met its bound of %s steps; %s answers were found.",
                    query.steps, len(answers.rows))  # fmt: skip
    if not settings.randomize:
        return answers
    return replace(answers, rows=ids.shuffled(answers.rows)[:wanted])


OPS = (
    Op("GET", "/allocation_candidates", list_candidates, "placement:allocation_candidates:list", query=QUERY,
       since="1.10", flags=FLAGS),
)  # fmt: skip
