"""What a platform team does with an installation, in order."""

from collections.abc import Awaitable, Callable

from tests.e2e_platform.platform import Platform

from .api import api
from .confinement import confinement
from .failures import drain, kill
from .installation import install, serve
from .removal import remove
from .rights import rights
from .second import second
from .upgrades import upgrade

#: By the names that `--only` takes. Each stage leaves the platform unchanged; `remove` installs it again.
STAGES: dict[str, Callable[[Platform], Awaitable[None]]] = {
    "install": install,
    "serve": serve,
    "confinement": confinement,
    "api": api,
    "kill": kill,
    "drain": drain,
    "second": second,
    "rights": rights,
    "remove": remove,
    "upgrade": upgrade,
}
#: The stages that every other stage needs.
FIRST = ("install", "serve")
