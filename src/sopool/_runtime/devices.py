"""Choose the device for training and prediction."""

import re

import torch

from sopool.errors import ResourceError, SettingError


def choose_device(wanted: str) -> str:
    """Return the device to use: for ``auto``, the GPU if there is one; raise if the device is not available."""
    if wanted == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if not (wanted == "cpu" or re.fullmatch(r"cuda(:\d+)?", wanted)):
        raise SettingError(f"there is no device {wanted!r}, expected auto, cpu, cuda or, with several GPUs, cuda:1.")
    there = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if wanted != "cpu" and int(wanted[5:] or 0) >= there:
        have = "none" if there == 0 else "one" if there == 1 else f"{there}, cuda:0 to cuda:{there - 1}"
        raise ResourceError(
            f"device {wanted}: no such GPU. GPUs that PyTorch {torch.__version__} finds: {have}. Leave the "
            "device out to use what is available."
        )
    return wanted
