"""Training of many models at once (the bank), evaluation protocols and the store of runs."""

import os

from sopool._runtime.packages import EXTRAS, require

require("sopool.training", *EXTRAS["estimator"])

# The last bit of MKL's matrix products may depend on the memory address of their arguments, and so on a model's
# position in its bank. This setting prevents that, at no measurable cost. MKL reads it at a process's first product.
os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")
