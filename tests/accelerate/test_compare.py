import json
import uuid

from opsuite.accelerate.compare import same_program


def package(weights="weight.bin", order=1, root="model.mlmodel"):
    identifiers = [str(uuid.uuid4()), str(uuid.uuid4())]
    paths = ["model.mlmodel", weights]
    items = list(zip(identifiers, paths, strict=True))[::order]
    manifest = {
        "fileFormatVersion": "1.0.0",
        "itemInfoEntries": {identifier: {"author": "a", "path": path} for identifier, path in items},
        "rootModelIdentifier": identifiers[paths.index(root)],
    }
    return b"head" + str(uuid.uuid4()).encode() + json.dumps(manifest, indent=4).encode() + b"tail"


def test_identifiers_and_their_order_do_not_count():
    assert same_program(package(), package(order=-1))


def test_everything_else_does():
    assert not same_program(package(), package(weights="other.bin"))
    assert not same_program(package(), package(root="weight.bin"))
    assert not same_program(package(), package() + b"!")
