"""The record of one case in one flow: one JSON object a line, with raw numbers.

The schema's version is `MAJOR.MINOR`. A minor version adds optional fields, which older readers ignore; a major
version changes the meaning of one, and readers refuse majors that they do not know.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from opsuite.pipeline.accuracy import Accuracy
from opsuite.pipeline.outcome import check_outcome

SCHEMA_VERSION = "1.0"

Extent = Literal["full", "partial", "none"]


class SchemaVersionError(ValueError):
    """A file was written under a major version that this opsuite does not know."""


def check_schema_version(version: object, what: str) -> None:
    """Raises SchemaVersionError where `version` is not one that this opsuite can read."""
    known = SCHEMA_VERSION.partition(".")[0]
    if not isinstance(version, str) or version.partition(".")[0] != known:
        raise SchemaVersionError(
            f"{what} has schema version {version!r}; this opsuite reads {known}.x: use the opsuite that wrote it"
        )


class _Model(BaseModel):
    model_config = ConfigDict(extra="ignore", ser_json_inf_nan="strings")


class ErrorInfo(_Model):
    """Why a case has the outcome that it has.

    Attributes:
        type: the exception's class, or `Timeout`, `Crash`, `MemoryLimit`.
        message: capped; the whole of it is in the log.
        traceback: the file that holds the traceback, relative to the run directory.
    """

    type: str
    message: str
    traceback: str | None = None


class OutputAccuracy(_Model):
    """Accuracy of one output, by its index among the flat outputs."""

    output: int
    shape: list[int]
    dtype: str
    against_converted: Accuracy | None = None
    against_float: Accuracy | None = None


class DelegationCounts(_Model):
    """Nodes by operator, delegated and not; percentages are None where there is nothing to count."""

    delegated_nodes: int
    undelegated_nodes: int
    delegated_node_percent: float | None = None
    delegated_op_percent: float | None = None
    delegated_ops: dict[str, int]
    undelegated_ops: dict[str, int]


class Record(_Model):
    """See the module; every field is described in docs/reference/run-directory.md."""

    schema_version: str = SCHEMA_VERSION
    id: str
    suite: str
    flow: str
    outcome: Annotated[str, AfterValidator(check_outcome)]
    delegated: Extent | None = None
    stage: str | None = None
    error: ErrorInfo | None = None
    seconds: dict[str, float] = Field(default_factory=dict)
    delegation: DelegationCounts | None = None
    quantized_nodes: int | None = None
    quantization_changed_lowering: bool | None = None
    pte_bytes: int | None = None
    accuracy: list[OutputAccuracy] = Field(default_factory=list)
    quantization: list[OutputAccuracy] = Field(default_factory=list)
    runtime: str | None = None
    seed: int
    peak_memory_bytes: int | None = None
    worker: int | None = None
    log: str | None = None
    environment: str

    @property
    def key(self) -> tuple[str, str]:
        """What identifies a record within a run: flow and case."""
        return (self.flow, self.id)

    def to_line(self) -> str:
        """The record as one line of JSON, without the line's end; non-finite numbers are strings."""
        return self.model_dump_json(exclude_none=True)

    @classmethod
    def from_line(cls, line: str) -> Record:
        """Validates one line. Raises SchemaVersionError, or ValueError for a damaged line."""
        import json

        raw = json.loads(line)
        if not isinstance(raw, dict):
            raise ValueError("not a JSON object")
        check_schema_version(raw.get("schema_version"), "the record")
        return cls.model_validate(raw)
