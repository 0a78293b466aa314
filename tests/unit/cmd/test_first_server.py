from __future__ import annotations

from kilonova.cmd.client_files import FIRST_SERVER
from kilonova.compute.bootstrap import FLAVORS
from kilonova.embedded.images.bootstrap import STARTERS


def test_the_create_command_that_is_shown_uses_names_that_a_new_cloud_has() -> None:
    flavor, image, network = FIRST_SERVER
    assert flavor in {name for name, *_ in FLAVORS}
    assert image in {name for name, _ in STARTERS}
    assert network == "private"  # made by embedded.network.topology, whatever its addresses
