"""Was it memory that ran out?"""

import re

import torch

UNTYPED = re.compile("can't allocate memory|Storage size calculation overflowed")
"""What PyTorch says on a CPU, where the error has no type of its own."""
ASKED = re.compile(r"allocate ([0-9.]+ \w+)")


def shortage(error: BaseException | None) -> str | None:
    """What was asked for in vain, in words; None where something else went wrong.

    At first, that is: an error in a capture brings another one when the capture is ended.
    """
    if error is None:
        return None
    said = str(error)
    if not (isinstance(error, MemoryError | torch.OutOfMemoryError) or UNTYPED.search(said)):
        return shortage(error.__context__)
    asked = ASKED.search(said)
    return f"{asked[1]} were asked for at once" if asked else said.split(". ")[0] or "none is left"
