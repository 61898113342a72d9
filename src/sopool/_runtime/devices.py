"""Where to train and predict."""

import re

import torch

from sopool.errors import ResourceError, SettingError


def choose_device(wanted: str) -> str:
    """``auto`` is the GPU if there is one; a ``ResourceError`` for a device that is not there."""
    if wanted == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if not (wanted == "cpu" or re.fullmatch(r"cuda(:\d+)?", wanted)):
        raise SettingError(f"there is no device {wanted!r}: it is auto, cpu, cuda or, with several GPUs, cuda:1.")
    there = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if wanted != "cpu" and int(wanted[5:] or 0) >= there:
        have = "none" if there == 0 else "one" if there == 1 else f"{there}, cuda:0 to cuda:{there - 1}"
        raise ResourceError(
            f"device {wanted}: no such GPU. PyTorch {torch.__version__} finds {have} here. Leave the device out to "
            "take what is there."
        )
    return wanted
