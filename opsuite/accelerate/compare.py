"""Whether two lowered programs are the same.

Core ML Tools writes fresh UUIDs into every model package and lists its items in the order of their UUIDs, so two runs
of one lowering differ in those bytes. Everything else is compared as it is.
"""

from __future__ import annotations

import json
import re

_UUID = re.compile(rb"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_MANIFEST = re.compile(rb'\{\s*"fileFormatVersion".*?"rootModelIdentifier": "[^"]*"\s*\}', re.DOTALL)


def canonical(program: bytes) -> bytes:
    """The program with UUIDs blanked and package manifests in a fixed order."""
    return _UUID.sub(b"uuid", _MANIFEST.sub(_manifest, program))


def same_program(one: bytes, other: bytes) -> bool:
    return canonical(one) == canonical(other)


def _manifest(match: re.Match[bytes]) -> bytes:
    manifest = json.loads(match.group(0))
    root = manifest.pop("rootModelIdentifier")
    items = manifest.pop("itemInfoEntries")
    entries = sorted(json.dumps([identifier == root, item], sort_keys=True) for identifier, item in items.items())
    return json.dumps([manifest, entries], sort_keys=True).encode()
