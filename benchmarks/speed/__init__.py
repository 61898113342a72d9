"""Speed and memory on this machine: readouts compared with a lower bound, and the bank with other implementations."""

import os

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # before the import of PyTorch: silences its profiler
