"""Self-contained HTML pages, rendered from the files in ``templates``."""

from importlib.resources import files
from importlib.util import find_spec
from typing import Any

from sopool.errors import MissingPackageError


def check_extras(*modules: str) -> None:
    """Raise a ``MissingPackageError`` if one of the optional modules that a page needs is not installed."""
    for module in modules:
        if find_spec(module) is None:
            raise MissingPackageError(
                f"writing an HTML page needs {module}, which is not installed: pip install 'sopool[report]'."
            )


def page_file(name: str) -> str:
    """Return the text of a file in the folder of templates."""
    return (files("sopool.report.page") / "templates" / name).read_text("utf-8")


def render(template: str, **content: Any) -> str:
    """Render a template with the shared style sheet; all values are escaped unless they are marked as safe."""
    check_extras("jinja2")
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("sopool.report.page", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(content, style=page_file("style.css"))
