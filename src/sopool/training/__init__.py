"""The bank (many models trained at once), protocols, the store of runs."""

import os

# MKL's products may differ in the last bit with the address of their arguments, and so with a model's place in its
# bank. This keeps them apart from it, at no measurable cost. It is read at the first product of a process.
os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")
