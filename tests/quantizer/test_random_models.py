"""What random models reach, without comparing them: that is `opsuite verify-quantizer --random N`."""

import re
from collections import Counter

import pytest

pytest.importorskip("hypothesis")
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded

from opsuite.quantizer.random_models import RandomModel, random_models

DRAWS = 400

# What has to occur among the models, as patterns of their scripts and flags.
REACHED = {
    "a layer without bias": r"nn\.(Conv\dd|Linear)\(.*bias=False",
    "a repeated layer": r"(self\.m\d+)\(.*\n(.*\n)*.*\1\(",
    "a nested module": r"self\.block0 = Block\(\)",
    "a module that is used twice": r"(self\.block0)\(.*\n(.*\n)*.*\1\(",
    "a functional layer": r"F\.(linear|conv\dd)\(",
    "a shared weight": r"F\.\w+\(v?\w+, (self\.w\d+)\b.*\n(.*\n)*.*\b\1\b",
    "a batch norm at the input": r"self\.(m\d+) = nn\.BatchNorm(.*\n)*.*self\.\1\(x\)",
    "a batch norm behind a convolution": r"self\.m\d+ = nn\.Conv.*\n *self\.m\d+ = nn\.BatchNorm",
    "an in-place activation": r"inplace=True|\.relu_\(\)",
    "an in-place sum": r"\w+ \+= \w+",
    "an operand given twice": r"(\b[vx]\d*\b) [+*@] \1\b",
    "an unsupported neighbour": r"F\.softmax|layer_norm|LayerNorm|torch\.exp",
    "a transposed convolution": r"ConvTranspose",
    "an integer tensor": r"randint",
    "a boolean tensor": r"> 0,?\)\n",
    "a pool": r"[pP]ool\dd",
    "a flatten": r"flatten",
    "several outputs": r"return \(",
    "a configuration by name": r"module_name_configs",
    "a configuration by type": r"module_type_configs",
    "a part that is None": r"configs=\{[^}]*: None",
    "the affine scheme": r"quantization_scheme='affine'",
    "weights per tensor": r"weight_per_channel=False",
    "weights only": r"activation_dtype=torch\.float32",
    "float weights": r"weight_dtype='float32'",
    "four-bit weights": r"weight_dtype='qint4'",
    "another observer": r"(weight|activation)_observer='min_max'",
    "an observer that is refused": r"ema_min_max",
    "milestones": r"milestones=\[",
    "the learnable algorithm": r"learnable",
    "training": r"qat=True, training=True",
    "training of a model captured for evaluation": r"qat=True, training=False",
    "a capture without Dynamo": r"strict=False",
    "a dynamic shape": r"dynamic=True",
    "dead code": r"dead_code=[1-9]",
}


@pytest.fixture(scope="module")
def drawn() -> list[RandomModel]:
    models: list[RandomModel] = []

    @seeded(0)
    @settings(
        max_examples=DRAWS,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(random_models())
    def collect(model):
        models.append(model)

    collect()
    return list(dict.fromkeys(models))


@pytest.mark.parametrize("what", REACHED)
def test_random_models_reach(drawn, what):
    assert any(re.search(REACHED[what], str(model)) for model in drawn)


def test_most_draws_are_new(drawn):
    assert len(drawn) > DRAWS / 3


def test_a_model_is_the_same_whenever_it_is_loaded(drawn):
    one, other = (drawn[0].load()["Model"]().state_dict() for _ in range(2))
    assert all((one[name] == other[name]).all() for name in one)


def test_nearly_all_of_them_can_be_captured(drawn):
    failures = Counter()
    for model in drawn[:: len(drawn) // 12]:
        try:
            model.capture(model.load())
        except Exception as error:
            failures[str(error)] += 1
    assert failures.total() <= 2, failures
