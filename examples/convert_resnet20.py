"""Write the published ResNet-20 with ReLU as ONNX.

    python examples/convert_resnet20.py WEIGHTS OUTPUT.onnx

WEIGHTS is pretrained_models/resnet20-12fca82f.th of https://github.com/akamaster/pytorch_resnet_cifar10
(BSD-2-Clause), accuracy 91.73 % on CIFAR-10: a pickle of torch tensors, which is read without torch and
without executing code from the file. The network takes pixels in [0, 1]. Needs numpy, onnx and pillow.
"""

import argparse
import pickle
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from cifar import Array, OnnxWriter

MAGIC, PROTOCOL = 0x1950A86A20F9469CFC6C, 1001
MAX_VALUES = 1 << 24
EPSILON = 1e-5
MEAN = np.asarray([0.485, 0.456, 0.406], np.float32)
DEVIATION = np.asarray([0.229, 0.224, 0.225], np.float32)
"""The normalisation that the network was trained with."""


class _Tensor:
    """The location of a tensor: its storage, the offset of its first value, its shape."""

    def __init__(self, key: str, offset: int, shape: tuple[int, ...]) -> None:
        self.key, self.offset, self.shape = key, offset, shape


def _rebuild(
    storage: str, offset: int, size: tuple[int, ...], stride: tuple[int, ...], *_: object
) -> _Tensor:
    expected = tuple(int(np.prod(size[axis + 1 :])) for axis in range(len(size)))
    if tuple(stride) != expected:
        raise ValueError(f"a tensor of shape {size} has strides {stride}; {expected} is needed")
    return _Tensor(storage, offset, tuple(size))


class _Unpickler(pickle.Unpickler):
    """Accepts ordered dictionaries and float tensors; everything else that a file names is refused."""

    def find_class(self, module: str, name: str) -> Any:
        """Return the object for a name in the file."""
        known: dict[tuple[str, str], Any] = {
            ("collections", "OrderedDict"): dict,
            ("torch._utils", "_rebuild_tensor"): _rebuild,
            ("torch._utils", "_rebuild_tensor_v2"): _rebuild,
            ("torch", "FloatStorage"): "float",
            ("torch", "LongStorage"): "long",
        }
        if (module, name) not in known:
            raise ValueError(f"the file names {module}.{name}, which is not read")
        return known[module, name]

    def persistent_load(self, identifier: Any) -> str:
        """The key of a storage."""
        kind, storage, key = identifier[:3]
        if kind != "storage" or storage not in ("float", "long"):
            raise ValueError(f"the file refers to {kind!r} of {storage!r}, which is not read")
        return f"{storage}:{key}"


def read_weights(path: Path) -> dict[str, Array]:
    """The float tensors of a torch file of the legacy format, by name. Raises ValueError for others."""
    with path.open("rb") as file:
        if _Unpickler(file).load() != MAGIC or _Unpickler(file).load() != PROTOCOL:
            raise ValueError(f"{path} is not a torch file of the legacy format")
        _Unpickler(file).load()  # about the machine that wrote it
        content = _Unpickler(file).load()
        kinds = {key.partition(":")[2]: key for key in _storages(content["state_dict"])}
        values = {kinds[key]: _read_storage(file, kinds[key]) for key in _Unpickler(file).load()}
    tensors = {}
    for name, tensor in content["state_dict"].items():
        if tensor.key.startswith("float"):
            stop = tensor.offset + int(np.prod(tensor.shape))
            tensors[name.removeprefix("module.")] = values[tensor.key][tensor.offset : stop].reshape(
                tensor.shape
            )
    return tensors


def _storages(state: dict[str, _Tensor]) -> set[str]:
    return {tensor.key for tensor in state.values()}


def _read_storage(file: BinaryIO, key: str) -> Array:
    count = int(np.frombuffer(file.read(8), "<i8")[0])
    if not 0 <= count <= MAX_VALUES:
        raise ValueError(f"a storage of {count} values; at most {MAX_VALUES} are read")
    dtype = np.dtype("<f4" if key.startswith("float") else "<i8")
    return np.frombuffer(file.read(count * dtype.itemsize), dtype).astype(np.float32)


def convert(weights: Path, output: Path) -> None:
    """Read the weights and write the network."""
    tensors = read_weights(weights)

    def convolution(value: str, name: str, norm: str, stride: int) -> str:
        """A convolution and the batch normalisation behind it, as one convolution."""
        scale = tensors[f"{norm}.weight"] / np.sqrt(tensors[f"{norm}.running_var"] + EPSILON)
        bias = tensors[f"{norm}.bias"] - tensors[f"{norm}.running_mean"] * scale
        kernel = tensors[f"{name}.weight"] * scale.reshape(-1, 1, 1, 1)
        return writer.convolution(value, kernel, bias, stride, name)

    def block(value: str, name: str, inputs: int, outputs: int) -> str:
        stride = outputs // inputs
        inner = convolution(value, f"{name}.conv1", f"{name}.bn1", stride)
        inner = writer.node("Relu", inner, name=f"{name}.relu1")
        inner = convolution(inner, f"{name}.conv2", f"{name}.bn2", 1)
        if stride > 1:  # every second pixel, channels of zeros on both sides
            pick = np.zeros((outputs, inputs, 1, 1), np.float32)
            pick[np.arange(inputs) + (outputs - inputs) // 2, np.arange(inputs)] = 1
            value = writer.convolution(value, pick, None, stride, f"{name}.shortcut")
        return writer.node("Relu", writer.node("Add", inner, value), name=f"{name}.relu2")

    writer = OnnxWriter()
    value = writer.normalise("image", MEAN, DEVIATION)
    value = writer.node("Relu", convolution(value, "conv1", "bn1", 1), name="relu")
    inputs = 16
    for layer, outputs in ((1, 16), (2, 32), (3, 64)):
        for index in range(3):
            value = block(value, f"layer{layer}.{index}", inputs, outputs)
            inputs = outputs
    value = writer.node("Flatten", writer.node("GlobalAveragePool", value, name="pool"))
    weight, bias = tensors["linear.weight"], tensors["linear.bias"]
    value = writer.node(
        "Gemm", value, writer.constant(weight), writer.constant(bias), name="scores", transB=1
    )
    writer.save(value, output)


def main() -> None:
    """Convert and print the size."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("weights", type=Path)
    parser.add_argument("output", type=Path)
    arguments = parser.parse_args()
    convert(arguments.weights, arguments.output)
    print(f"{arguments.output}: {arguments.output.stat().st_size} bytes")


if __name__ == "__main__":
    main()
