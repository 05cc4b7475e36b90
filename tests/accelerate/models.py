"""Small models, and lowering as a user does it."""

import torch
from torch import nn


class Convolution(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.act = nn.Conv2d(3, 8, 3), nn.ReLU()

    def forward(self, x):
        return self.act(self.conv(x))


class Elementwise(nn.Module):
    def forward(self, x, y):
        return torch.sigmoid(x + y) * x, x.transpose(0, 1) - 1


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(8, 6, batch_first=True)

    def forward(self, x):
        return self.lstm(x)


class Normalized(nn.Module):
    def __init__(self, bias=True):
        super().__init__()
        self.first, self.conv = nn.BatchNorm2d(3), nn.Conv2d(3, 8, 3, bias=bias)
        self.second, self.act = nn.BatchNorm2d(8), nn.ReLU()

    def forward(self, x):
        return self.act(self.second(self.conv(self.first(x))))


class Partly(nn.Module):
    """Part of it does not go to Core ML, so there are several delegates and portable ops."""

    def forward(self, x):
        y = torch.relu(x) + 1.5
        return torch.bitwise_not((y > 0).to(torch.int32)), (y * 2).reshape(-1)


def build(name):
    torch.manual_seed(0)
    models = {
        "conv": (Convolution, ((1, 3, 8, 8),)),
        "elementwise": (Elementwise, ((4, 5), (4, 5))),
        "lstm": (Recurrent, ((2, 3, 8),)),
        "norm": (Normalized, ((1, 3, 8, 8),)),
        "partly": (Partly, ((3, 4),)),
    }
    module, shapes = models[name]
    return module().eval(), tuple(torch.randn(shape) for shape in shapes)


def partitioner(target="iOS15"):
    import coremltools as ct
    from executorch.backends.apple.coreml.compiler import CoreMLBackend
    from executorch.backends.apple.coreml.partition import CoreMLPartitioner

    specs = CoreMLBackend.generate_compile_specs(minimum_deployment_target=getattr(ct.target, target))
    return CoreMLPartitioner(compile_specs=specs)


def lower(module, inputs, target="iOS15", dynamic_shapes=None):
    from executorch.exir import to_edge_transform_and_lower

    exported = torch.export.export(module, inputs, dynamic_shapes=dynamic_shapes, strict=True)
    return to_edge_transform_and_lower(exported, partitioner=[partitioner(target)]).to_executorch().buffer


def quantizer():
    from executorch.backends.apple.coreml.test.tester import CoreMLQuantizer, _get_static_int8_linear_qconfig

    return CoreMLQuantizer(_get_static_int8_linear_qconfig())


def quantize(module, inputs, qat=False):
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e, prepare_qat_pt2e

    torch.manual_seed(1)
    graph = torch.export.export(module, inputs, strict=True).module()
    prepared = (prepare_qat_pt2e if qat else prepare_pt2e)(graph, quantizer())
    prepared(*inputs)
    return convert_pt2e(prepared)
