"""Placement's microversions, one sentence each. A row or field that changes names its version; nothing else does."""

from __future__ import annotations

from kilonova.http.versions import Versions

LINES = {
    "1.0": "Providers, inventories, usages of a provider, allocations by provider and by consumer.",
    "1.1": "Aggregates of a provider.",
    "1.2": "Custom resource classes.",
    "1.3": "The provider list filters by aggregate (member_of).",
    "1.4": "The provider list filters by room (resources).",
    "1.5": "All inventory of a provider can be deleted at once.",
    "1.6": "Traits.",
    "1.7": "PUT of a resource class creates it when it is missing.",
    "1.8": "Allocations name a project and a user.",
    "1.9": "Usages of a project.",
    "1.10": "Allocation candidates.",
    "1.11": "Providers link to their allocations.",
    "1.12": "Allocations are keyed by provider.",
    "1.13": "Allocations of many consumers in one request.",
    "1.14": "Provider trees.",
    "1.15": "Last-Modified and Cache-Control.",
    "1.16": "Candidates have a limit.",
    "1.17": "Candidates filter by required traits and show traits.",
    "1.18": "The provider list filters by required traits.",
    "1.19": "Aggregates carry and check the provider's generation.",
    "1.20": "Creating a provider answers it.",
    "1.21": "Candidates filter by aggregate.",
    "1.22": "Traits can be forbidden.",
    "1.23": "Errors carry a code.",
    "1.24": "member_of may repeat.",
    "1.25": "Numbered request groups and their policy.",
    "1.26": "All of an inventory may be reserved.",
    "1.27": "Provider summaries show every resource class.",
    "1.28": "Consumers have generations.",
    "1.29": "Candidates use provider trees.",
    "1.30": "Inventories and allocations can be moved in one request.",
    "1.31": "Candidates filter by tree.",
    "1.32": "Aggregates can be forbidden.",
    "1.33": "Group suffixes may be words.",
    "1.34": "Candidates map groups to providers.",
    "1.35": "Traits can be required of the root.",
    "1.36": "Groups can be kept in one subtree, and may have no resources.",
    "1.37": "A provider may change its parent.",
    "1.38": "Consumers have types.",
    "1.39": "Any of several traits may be required.",
}

VERSIONS = Versions("placement", LINES, vary=("openstack-api-version",), zero=True)
