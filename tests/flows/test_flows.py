import dataclasses

import pytest

from opsuite.exits import Exit, OpsuiteError
from opsuite.flows import FLOWS
from opsuite.flows.executorch import PEER_FLOWS
from opsuite.flows.flow import Flow, Requirement


@pytest.fixture(scope="module")
def registered():
    """The flows that the installed executorch registers, by name."""
    from executorch.backends.test.suite.flow import all_flows

    return all_flows()


def test_every_flow_of_the_peer_is_ours_by_its_name(registered):
    assert registered.keys() <= set(FLOWS.names())
    for name, theirs in registered.items():
        assert (FLOWS.get(name).backend, FLOWS.get(name).quantize) == (theirs.backend, theirs.quantize)


def test_what_the_peer_registers_is_available_and_the_rest_has_a_reason(registered):
    for flow in FLOWS:
        reason = flow.unavailable()
        if flow.name in registered:
            assert reason is None or "run() of its own" in reason, flow.name
        else:
            assert reason


def test_the_flows_that_this_package_is_for_are_available_wherever_its_dependencies_are():
    ours = [flow.name for flow in FLOWS if flow.probe is None]
    assert ours == [
        "coreml",
        "coreml_static_int8",
        "portable",
        "xnnpack",
        "xnnpack_dynamic_int8_per_channel",
        "xnnpack_static_int8_per_channel",
        "xnnpack_static_int8_per_tensor",
    ]
    assert all(FLOWS.get(name).unavailable() is None for name in ours)


def test_a_flow_with_missing_requirements_stays_listed_and_exits_96_with_what_to_install():
    flow = dataclasses.replace(
        FLOWS.get("coreml"), requires=(Requirement("no_such_module", "pip install no-such-module"),)
    )
    with pytest.raises(OpsuiteError, match="needs the module no_such_module: pip install no-such-module") as refused:
        flow.require()
    assert refused.value.code is Exit.ENVIRONMENT


def test_a_missing_flow_of_the_peer_gives_the_reason_and_the_remedy(registered):
    missing = [name for names, _ in PEER_FLOWS.values() for name in names if name not in registered]
    assert missing
    for name in missing:
        with pytest.raises(OpsuiteError, match=f"flow '{name}' is not available here: .+: .+") as refused:
            FLOWS.get(name).require()
        assert refused.value.code is Exit.ENVIRONMENT


def test_the_nearest_names_are_suggested_for_an_unknown_flow():
    with pytest.raises(OpsuiteError, match="did you mean 'coreml'") as refused:
        FLOWS.get("corml")
    assert refused.value.code is Exit.USAGE


@pytest.mark.parametrize(("name", "target"), [("coreml", "IOS15"), ("coreml_static_int8", "IOS17")])
def test_core_ml_flows_compile_for_the_peers_targets(name, target):
    import coremltools as ct
    from executorch.backends.apple.coreml.compiler import CoreMLBackend

    specs = FLOWS.get(name).partitioners()[0].delegation_spec.compile_specs
    assert CoreMLBackend.min_deployment_target_from_compile_specs(specs) == getattr(
        ct.target, target[0].lower() + target[1:]
    )


def test_the_static_int8_config_is_the_peers():
    from executorch.backends.apple.coreml.test.tester import _get_static_int8_linear_qconfig

    from opsuite.flows.coreml import static_int8_config

    assert static_int8_config() == _get_static_int8_linear_qconfig()


def test_a_peer_stage_that_does_more_than_hold_ingredients_is_not_adapted(monkeypatch):
    from executorch.backends.test.harness import stages
    from executorch.backends.test.harness.tester import Tester
    from executorch.backends.test.suite.flow import TestFlow

    from opsuite.flows import executorch as adapter

    class Own(stages.ToEdgeTransformAndLower):
        def run(self, artifact, inputs=None):
            raise NotImplementedError

    class OwnTester(Tester):
        def _get_default_stage(self, stage_type, **options):
            return Own()

    flow = TestFlow("vulkan", backend="vulkan", tester_factory=OwnTester)
    monkeypatch.setattr(adapter, "peer_flows", lambda: ({"vulkan": flow}, {}))
    assert "has a run() of its own" in adapter.adapt("vulkan", "Vulkan", quantized=False).unavailable()


def test_a_flow_without_a_quantizer_is_a_float_flow():
    assert not Flow("plain", backend="portable", summary="").quantize
