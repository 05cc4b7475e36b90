"""A Core ML delegate of an executorch program, run by the ML Program interpreter."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from opsuite.exits import OpsuiteError
from opsuite.runtime import mil
from opsuite.runtime.mil.rounding import Precision

NAME = "CoreMLBackend"
_REFERENCE = b"CMJR"
_PACKAGE = "*.mlpackage"
_METADATA = "metadata.json"


class CoreMLDelegate:
    """A delegate, loaded.

    Args:
        processed: its bytes: a package, or a reference into the program's named data.
        named_data: gives the named data of a key.
        method: the method that calls it, which picks the function of a package with several.
        precision: see `mil.Model`.

    Raises:
        OpsuiteError: the bytes are no delegate of Core ML.
    """

    def __init__(
        self, processed: bytes, named_data: Callable[[str], bytes], method: str, precision: Precision = "storage"
    ) -> None:
        function: str | None = None
        if processed.startswith(_REFERENCE):
            try:
                reference = json.loads(processed[len(_REFERENCE) :])
                processed, function = named_data(reference["key"]), reference["functionName"]
            except (ValueError, KeyError, TypeError) as error:
                raise OpsuiteError(f"the delegate's reference to named data cannot be read: {error}") from error
        model, metadata = _unpacked(processed, precision)
        if "methods" in metadata:
            name = function or method
            if name not in metadata["methods"]:
                raise OpsuiteError(f"the delegate has no method {name!r}; it has {', '.join(metadata['methods'])}")
            metadata = metadata["methods"][name]
        else:
            # A package of one function is called by its own name, whatever the method's.
            function = None if function not in model.functions else function
        self.model, self.function = model, function
        self.inputs: list[str] = list(metadata["inputNames"])
        self.outputs: list[str] = list(metadata["outputNames"])

    def run(self, arguments: list[Any], report: mil.Report) -> list[torch.Tensor]:
        """The outputs, in order, as the program declares them. `arguments` are in the order of `inputs`."""
        if len(arguments) != len(self.inputs):
            raise OpsuiteError(f"the delegate takes {len(self.inputs)} inputs, not {len(arguments)}")
        declared = self.model.inputs_of(self.function)
        values = {}
        for name, value in zip(self.inputs, arguments, strict=True):
            tensor = torch.as_tensor(value)
            # Core ML has no rank 0 for inputs: the delegate hands over one element.
            if tensor.dim() == 0 and name in declared and declared[name].shape == (1,):
                tensor = tensor.reshape(1)
            values[name] = tensor
        results = self.model.predict(values, self.function, report=report)
        missing = [name for name in self.outputs if name not in results]
        if missing:
            raise OpsuiteError(f"the delegate's metadata names outputs that its program has not: {', '.join(missing)}")
        return [torch.as_tensor(results[name]) for name in self.outputs]


def _unpacked(processed: bytes, precision: Precision) -> tuple[mil.Model, dict[str, Any]]:
    from executorch.backends.apple.coreml import executorchcoreml

    with tempfile.TemporaryDirectory(prefix="opsuite-coreml-") as directory:
        try:
            unflattened = executorchcoreml.unflatten_directory_contents(processed, directory)
        except (RuntimeError, ValueError) as error:
            raise OpsuiteError(f"the delegate's bytes are no Core ML package: {error}") from error
        # A package of one method is in a directory of its own, one of several methods is not.
        metadata = sorted(Path(directory).rglob(_METADATA))
        packages = sorted(Path(directory).rglob(_PACKAGE))
        if unflattened is False or len(metadata) != 1 or len(packages) != 1:
            raise OpsuiteError("the delegate's bytes are no Core ML package")
        # The weights stay mapped after the directory is gone.
        return mil.load(packages[0], precision), json.loads(metadata[0].read_text())
