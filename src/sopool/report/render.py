"""Pages that need nothing beside themselves, from the templates in ``page``."""

from importlib.resources import files
from typing import Any

from sopool.data.errors import DataError


def page_file(name: str) -> str:
    """A file that lies with the templates."""
    return (files("sopool.report") / "page" / name).read_text("utf-8")


def render(template: str, **content: Any) -> str:
    """A page as HTML, with the style that all share. Everything is escaped but what is markup already."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise DataError(f"a page needs jinja2: pip install 'sopool[report]' ({error}).") from error
    environment = Environment(
        loader=PackageLoader("sopool.report", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(content, style=page_file("style.css"))
