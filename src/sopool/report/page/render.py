"""Self-contained HTML pages, rendered from the files in ``templates``."""

from importlib.resources import files
from typing import Any

from sopool._runtime.packages import require


def check_page(*modules: str) -> None:
    """Raise a ``MissingPackageError`` unless a page can be made here; it may need ``modules`` besides Jinja."""
    require("writing an HTML page", "jinja2", *modules)


def page_file(name: str) -> str:
    """Return the text of a file in the folder of templates."""
    return (files("sopool.report.page") / "templates" / name).read_text("utf-8")


def render(template: str, **content: Any) -> str:
    """Render a template with the shared style sheet; all values are escaped unless they are marked as safe."""
    check_page()
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("sopool.report.page", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(content, style=page_file("style.css"))
