"""Fine-tune a published SqueezeNet for CIFAR-10 with squares, or with ReLU and mean pooling.

    python examples/train_squeezenet.py TEACHER IMAGES.tar --activation square --output squeezenet_square.npz

TEACHER is squeezeNet_silu_avgpool_model of https://github.com/corelab-src/dacapo (MIT), a torch file; IMAGES
has a folder of 32 x 32 JPEGs for each class. One image in ten is held out, the others are trained on. The
network is taught by its own scores before the change (Hinton et al., arXiv 1503.02531). The activation
becomes another one step by step: y = (1 - t) SiLU(x) + t f(x), t from 0 to 1, where f is ReLU, or a
polynomial of degree 2 with trained coefficients for each channel (AESPA: Park et al., arXiv 2201.06699).
Writes the weights with all normalisations folded in, which convert_squeezenet.py makes an ONNX file of, and
prints the share of right classes on the images held out. Minutes on a GPU. Needs numpy, torch and pillow.
"""

import argparse
import io
import tarfile
import time
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import nn
from torch.nn import functional

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
HELD_OUT_EVERY = 10
FIRES = {2: (64, 16), 3: (128, 16), 4: (128, 32), 5: (256, 32), 6: (256, 48), 7: (384, 48), 8: (384, 64)}
FIRES |= {9: (512, 64)}
"""Channels of the input and of the squeeze, by number; each of the two expansions has four times as many as
the squeeze."""
POOLED = (1, 4, 8)
"""After which of them there is a mean of 3 x 3 pixels, every second one."""
TEMPERATURE = 3.0
LARGEST = 4.0
"""Arguments beyond so many of their standard deviations are penalised, and cut: a square lets single images
run away. Later they are cut ever further out, and in the end not at all."""
FURTHEST = 5.0
"""As a power of two: how much further out before the end."""
FITTED = 500
"""Images on which the first coefficients are fitted."""


class Activation(nn.Module):
    """SiLU that becomes a polynomial or ReLU as `share` grows from 0 to 1."""

    def __init__(self, channels: int, square: bool) -> None:
        super().__init__()
        self.square, self.share = square, 0.0
        self.excess: torch.Tensor | float = 0.0
        self.cut = 1.0
        self.coefficients = nn.Parameter(torch.zeros(3, channels, 1, 1)) if square else None
        self.register_buffer("deviation", torch.ones(channels, 1, 1), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Of every value."""
        if self.share == 0:
            return functional.silu(x)
        c = self.coefficients
        if c is None:
            activated = functional.relu(x)
        else:
            most = LARGEST * self.deviation
            inside = torch.maximum(torch.minimum(x, most), -most)
            self.excess = ((x - inside).abs() / self.deviation).mean()
            inside = torch.maximum(torch.minimum(x, most * self.cut), -most * self.cut)
            activated = c[0] + inside * (c[1] + inside * c[2])
        return (
            activated if self.share == 1 else activated * self.share + functional.silu(x) * (1 - self.share)
        )

    def fit(self, x: torch.Tensor) -> None:
        """Begin with the coefficients that are nearest to SiLU, for each channel, and note the deviations."""
        values = x.transpose(0, 1).flatten(1)
        self.deviation = values.std(1).reshape(-1, 1, 1)
        if self.coefficients is not None:
            powers = torch.stack([values**0, values, values**2], 2)
            solution = torch.linalg.lstsq(powers, functional.silu(values)[:, :, None]).solution
            self.coefficients.data = solution[:, :, 0].T.reshape(3, -1, 1, 1)


class Basic(nn.Module):
    """A convolution, its normalisation and the activation."""

    def __init__(self, kernel: int, inputs: int, outputs: int, square: bool) -> None:
        super().__init__()
        self.Conv2d = nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2)
        self.bn = nn.BatchNorm2d(outputs)
        self.activation = Activation(outputs, square)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Of images."""
        return self.activation(self.bn(self.Conv2d(x)))


class Fire(nn.Module):
    """A squeeze and two expansions side by side."""

    def __init__(self, inputs: int, squeezed: int, square: bool) -> None:
        super().__init__()
        self.squeeze = Basic(1, inputs, squeezed, square)
        self.expand1x1 = nn.Conv2d(squeezed, 4 * squeezed, 1)
        self.expand3x3 = nn.Conv2d(squeezed, 4 * squeezed, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Of images."""
        x = self.squeeze(x)
        return torch.cat([self.expand1x1(x), self.expand3x3(x)], 1)


class SqueezeNet(nn.Module):
    """The network of the published weights."""

    def __init__(self, square: bool) -> None:
        super().__init__()
        self.conv_1 = Basic(3, 3, 64, square)
        for number, (inputs, squeezed) in FIRES.items():
            setattr(self, f"fire_{number}", Fire(inputs, squeezed, square))
        self.conv_10 = Basic(1, 512, 10, square)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scores of normalised images."""
        x = self.conv_1(x)
        for number in (1, *FIRES):
            if number in FIRES:
                x = getattr(self, f"fire_{number}")(x)
            if number in POOLED:
                x = functional.avg_pool2d(x, 3, 2, 1)
        return self.conv_10(x).mean((2, 3))

    def set_share(self, share: float, cut: float) -> None:
        """How much of every activation is the new one, and at how many times `LARGEST` arguments are cut."""
        for module in self.modules():
            if isinstance(module, Activation):
                module.share, module.cut = share, cut

    @torch.no_grad()
    def fit(self, images: torch.Tensor) -> None:
        """Let every activation begin near SiLU on these images."""
        self.eval()
        hooks = [
            module.register_forward_pre_hook(lambda module, operands: module.fit(operands[0]))
            for module in self.modules()
            if isinstance(module, Activation)
        ]
        self(images)
        for hook in hooks:
            hook.remove()

    def excess(self) -> torch.Tensor | float:
        """By how much arguments of the activations of the last images are too large: mean squares, summed."""
        return sum(module.excess for module in self.modules() if isinstance(module, Activation))

    def weights(self) -> dict[str, NDArray[np.float64]]:
        """Kernels and biases with the normalisations in them, and coefficients of the activations."""
        out = {}
        for name, module in self.named_modules():
            if isinstance(module, Basic):
                scale = module.bn.weight / (module.bn.running_var + module.bn.eps).sqrt()
                out[f"{name}.weight"] = module.Conv2d.weight * scale.reshape(-1, 1, 1, 1)
                out[f"{name}.bias"] = (module.Conv2d.bias - module.bn.running_mean) * scale + module.bn.bias
                if module.activation.coefficients is not None:
                    out[f"{name}.coefficients"] = module.activation.coefficients.reshape(3, -1)
            elif "expand" in name:
                out[f"{name}.weight"], out[f"{name}.bias"] = module.weight, module.bias
        return {name: tensor.detach().double().cpu().numpy() for name, tensor in out.items()}


def load(path: Path, held_out: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Images (count, 3, 32, 32) of mean 0 and deviation 1, and their classes: of each class those whose place
    in the order of their names is divisible by `HELD_OUT_EVERY`, or the others."""
    encoded: dict[str, list[tuple[str, bytes]]] = {name: [] for name in CLASSES}
    with tarfile.open(path) as archive:
        for member in archive:
            parts = member.name.split("/")
            if member.isfile() and len(parts) > 1 and parts[-2] in encoded:
                file = archive.extractfile(member)
                assert file is not None
                encoded[parts[-2]].append((parts[-1], file.read()))
    images, labels = [], []
    for label, name in enumerate(CLASSES):
        for place, (_, data) in enumerate(sorted(encoded[name])):
            if (place % HELD_OUT_EVERY == 0) == held_out:
                images.append(np.asarray(Image.open(io.BytesIO(data)).convert("RGB")))
                labels.append(label)
    pixels = torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2).float() / 255
    mean, deviation = (torch.tensor(values).reshape(1, 3, 1, 1) for values in (MEAN, DEVIATION))
    return (pixels - mean) / deviation, torch.tensor(labels)


def augmented(images: torch.Tensor) -> torch.Tensor:
    """Each image moved by up to 4 pixels, edges mirrored in, half of them mirrored, a square of 8 x 8 of each
    made 0."""
    count, _, size, _ = images.shape
    device = images.device
    padded = functional.pad(images, [4] * 4, mode="reflect")
    shift = torch.randint(0, 9, (2, count, 1), device=device)
    rows, columns = (torch.arange(size, device=device) + one for one in shift)
    mirrored = torch.rand(count, 1, device=device) < 0.5
    columns = torch.where(mirrored, columns.flip(1), columns)
    batch = torch.arange(count, device=device).reshape(-1, 1, 1)
    moved = padded.permute(0, 2, 3, 1)[batch, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)
    place = torch.arange(size, device=device)
    corner = torch.randint(0, size - 7, (2, count, 1), device=device)
    inside = [(place >= one) & (place < one + 8) for one in corner]
    return moved * ~(inside[0][:, None, :, None] & inside[1][:, None, None, :])


@torch.no_grad()
def accuracy(network: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> float:
    """Share of right classes."""
    network.eval()
    right = sum(
        int((network(part).argmax(1) == truth).sum())
        for part, truth in zip(images.split(250), labels.split(250), strict=True)
    )
    return right / len(labels)


def cut_at(done: float) -> float:
    """At how many times `LARGEST` arguments are cut after a share of the epochs."""
    return float("inf") if done >= 0.8 else 2 ** (FURTHEST * max(0.0, done - 0.3) / 0.5)


def train(
    network: SqueezeNet,
    teacher: nn.Module,
    data: tuple[torch.Tensor, torch.Tensor],
    held: tuple[torch.Tensor, torch.Tensor],
    options: argparse.Namespace,
) -> None:
    """Change activations in the first 30 % of the epochs, cut ever further out, nowhere in the last fifth;
    in the last tenth normalise as afterwards."""
    images, labels = data
    # Coefficients move slowly, and are not drawn to 0.
    coefficients = [p for name, p in network.named_parameters() if name.endswith("coefficients")]
    others = [p for name, p in network.named_parameters() if not name.endswith("coefficients")]
    groups = [
        {"params": others, "weight_decay": 1e-4},
        {"params": coefficients, "lr": options.rate / 10, "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW([group for group in groups if group["params"]], lr=options.rate)
    steps = len(images) // options.batch
    rates = [group["lr"] for group in optimizer.param_groups]
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, rates, total_steps=steps * options.epochs, pct_start=0.1
    )
    for epoch in range(options.epochs):
        begin, total = time.perf_counter(), 0.0
        done = epoch / options.epochs
        network.set_share(min(1.0, done / 0.3), cut=cut_at(done))
        network.train()
        if done >= 0.9:
            for module in network.modules():
                if isinstance(module, nn.BatchNorm2d):
                    module.eval()
        order = torch.randperm(len(images), device=images.device)
        for chosen in order[: steps * options.batch].split(options.batch):
            batch = augmented(images[chosen])
            with torch.no_grad():
                soft = functional.log_softmax(teacher(batch) / TEMPERATURE, 1)
            scores = network(batch)
            distance = functional.kl_div(
                functional.log_softmax(scores / TEMPERATURE, 1), soft, reduction="batchmean", log_target=True
            )
            loss = 0.3 * functional.cross_entropy(scores, labels[chosen]) + distance * TEMPERATURE**2
            loss = loss + options.penalty * network.excess()
            if not torch.isfinite(loss):
                continue
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            total += float(loss.detach())
        if epoch % 5 == 4 or epoch + 1 == options.epochs:
            share = accuracy(network, *held)
            spent = time.perf_counter() - begin
            print(
                f"epoch {epoch + 1}: loss {total / steps:.3f}, held out {share:.4f}, {spent:.1f} s",
                flush=True,
            )


def main() -> None:
    """Train, print the accuracy on the images held out, write the weights."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("teacher", type=Path, help="squeezeNet_silu_avgpool_model")
    parser.add_argument("images", type=Path, help="tar of folders of images, one for each class")
    parser.add_argument("--activation", choices=["square", "relu"], default="square")
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--penalty", type=float, default=100.0, help="of arguments that are too large")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    stored = torch.load(options.teacher, map_location="cpu", weights_only=True)
    teacher, network = SqueezeNet(False), SqueezeNet(options.activation == "square")
    teacher.load_state_dict(stored)
    network.load_state_dict(stored, strict=False)  # It has no coefficients.
    teacher.to(device).eval()
    network.to(device)
    data, held = [
        (images.to(device), labels.to(device))
        for images, labels in (load(options.images, held_out) for held_out in (False, True))
    ]
    print(
        f"{len(data[0])} images, {len(held[0])} held out; teacher {accuracy(teacher, *held):.4f}", flush=True
    )
    network.fit(data[0][torch.randperm(len(data[0]), device=device)[:FITTED]])
    train(network, teacher, data, held, options)
    network.set_share(1.0, cut=float("inf"))
    network.eval()
    share = accuracy(network, *held)
    stated = {"accuracy": np.asarray(share), "held_out": np.asarray(len(held[0]))}
    np.savez(options.output, allow_pickle=False, **stated, **network.weights())
    print(f"{options.output}: {options.activation}, {share:.4f} of the images held out")


if __name__ == "__main__":
    main()
