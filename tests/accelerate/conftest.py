import logging
import os

import pytest

os.environ["TQDM_DISABLE"] = "1"


@pytest.fixture(autouse=True)
def nothing_applied():
    import opsuite.accelerate as acceleration

    logging.disable(logging.WARNING)
    acceleration.undo()
    yield
    acceleration.undo()
    logging.disable(logging.NOTSET)
