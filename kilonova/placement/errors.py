"""What Placement refuses, each a kind and the code that clients branch on (placement-facts §6).

A code without "placement." in front would never leave the service; `UNDEFINED` stands where there is nothing better.
"""

from __future__ import annotations

from kilonova.core import errors

UNDEFINED = "placement.undefined_code"
CONCURRENT_UPDATE = "placement.concurrent_update"


class BadRequest(errors.Invalid):
    code = UNDEFINED


class MethodNotAllowed(errors.KilonovaError):
    """The path is known, the method is not, at this version."""

    status, code, message = 405, UNDEFINED, "The method is not allowed for this resource at this version."


class BadQueryValue(errors.Invalid):
    code = "placement.query.bad_value"


class ContradictingTraits(BadRequest):
    """A trait is required and forbidden at once."""


class MissingQueryValue(errors.Invalid):
    code = "placement.query.missing_value"


class DuplicateQueryKey(errors.Invalid):
    code = "placement.query.duplicate_key"


class NoSuch(errors.NotFound):
    """Anything named that is not there; the text is given whole."""

    code = UNDEFINED


class ProviderNotFound(errors.NotFound):
    code, message = UNDEFINED, "No resource provider with uuid {uuid} found."


class Refused(errors.Conflict):
    """The state of things does not allow it and trying again will not help."""

    code = UNDEFINED


class NoRoom(Refused):
    """An inventory has not enough left."""


class UnknownReshaped(errors.Invalid):
    code = "placement.resource_provider.not_found"
    message = "Resource provider {uuid} that is to be reshaped not found."


class ConcurrentUpdate(errors.Conflict):
    """The state moved under the caller, who may read again and retry."""

    code, message = CONCURRENT_UPDATE, "Another request changed resource provider {uuid} at the same time; try again."


class GenerationConflict(errors.Conflict):
    code = CONCURRENT_UPDATE
    message = (
        "resource provider generation conflict for {uuid} (actual: {actual}, given: {given}). Resource provider's "
        "generation already changed. Please update the generation and try again."
    )


class ConsumerGenerationConflict(errors.Conflict):
    code = CONCURRENT_UPDATE
    message = "consumer generation conflict - expected {actual} but got {given} for consumer {uuid}."


class InventoryInUse(errors.Conflict):
    code = "placement.inventory.inuse"
    message = "Inventory for '{classes}' on resource provider '{uuid}' in use."


class DuplicateName(errors.Conflict):
    code, message = "placement.duplicate_name", "Conflicting resource provider name: {name} already exists."


class DuplicateUuid(errors.Conflict):
    code, message = "placement.duplicate_name", "Conflicting resource provider uuid: {uuid} already exists."


class ProviderInUse(errors.Conflict):
    code = "placement.resource_provider.inuse"
    message = "Unable to delete resource provider {uuid}: Resource provider has allocations."


class ProviderHasChildren(errors.Conflict):
    code = "placement.resource_provider.cannot_delete_parent"
    message = "Unable to delete parent resource provider {uuid}: It has child resource providers."
