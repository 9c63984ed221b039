"""Pages of docs/reference that are generated from the API: kinds, registries, contracts, and the index.

The generators of the layers above the API (events, settings, metrics) generate the pages of these layers.
"""

from pathlib import Path

from dynamo_shared.api.contracts import CONTRACTS

from tools.generate.json_schema import document, file_name, text
from tools.generate.reference import contracts, ending, index, kinds, registries

FOLDER = Path("docs") / "reference"
SCHEMAS = Path("proto") / "schemas" / "contracts"


def outputs(root: Path) -> dict[Path, str]:
    """Every page and every schema of a contract below the root of a checkout, with its content."""
    pages = {
        **index.pages(),
        **kinds.pages(),
        "deprecations.md": ending.ending_page(),
        **registries.pages(),
        "contracts.md": contracts.contracts_page(),
    }
    return {root / FOLDER / name: content for name, content in pages.items()} | {
        root / SCHEMAS / file_name(each): text(document(each)) for each in CONTRACTS
    }
