"""The fixed systems, one in each file. Every module of this package is imported, which registers its systems."""

from importlib import import_module
from pkgutil import iter_modules

FIRST = ("controls", "wl")
"""The modules whose systems come first."""

for _name in sorted((module.name for module in iter_modules(__path__)), key=lambda name: (name not in FIRST, name)):
    import_module(f"{__name__}.{_name}")
