"""Speed and memory on this machine: readouts beside their floor, the bank beside other ways to train the same model."""

import os

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # before PyTorch is imported, whose profiler prints messages otherwise
