"""Seeds that follow from a case's ID, so that a case is the same on every machine, shard and flow."""

from __future__ import annotations

import hashlib
import random


def case_seed(case_id: str, run_seed: int) -> int:
    """A seed in [0, 2**32) from the case's ID and the run's seed; independent of order and process."""
    digest = hashlib.sha256(f"{run_seed}\0{case_id}".encode()).digest()
    return int.from_bytes(digest[:4], "little")


def seed_everything(seed: int) -> None:
    """Seeds the generators that a case may draw from: torch, numpy and random."""
    import numpy as np
    import torch

    torch.manual_seed(seed)
    np.random.seed(seed)
    random.seed(seed)
