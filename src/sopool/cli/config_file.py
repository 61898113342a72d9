"""Read and write files with the options of commands: TOML, with a table for each command."""

import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import typer

from sopool import __version__
from sopool._files.regular import read_regular
from sopool.cli.options import LIST
from sopool.errors import DataError, suggest

MOST_BYTES = 2**20
Table = dict[str, Any]
Rule = tuple[Callable[[Any], bool], str, Callable[[Any], Any]]


def read_config(path: Path, group: Any) -> Table:
    """Return the values of a file by command and parameter, as the defaults of a group of commands.

    Args:
        path: The TOML file.
        group: The group of commands, with its own parameters.

    Raises:
        DataError: If the file cannot be read, or has an unknown command or option, or a value of a wrong type.
    """
    try:
        content = read_regular(path, MOST_BYTES)
    except FileNotFoundError as error:
        raise DataError("there is no such config file.", path) from error
    except OSError as error:
        raise DataError(f"the config file cannot be read ({error.strerror}).", path) from error
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        tables = tomllib.loads(content.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise DataError(f"this is not a TOML file: {error}.", path) from error
    return _read_group(tables, group, path, ())


def _read_group(table: Table, group: Any, path: Path, above: tuple[str, ...]) -> Table:
    """Return the values of the options of a group and of the tables of its commands."""
    options = _options(group) if above else {}  # those of sopool itself are not for files
    found: Table = {}
    for name, value in table.items():
        if name in group.commands and isinstance(value, dict):
            command = group.commands[name]
            read = _read_group if hasattr(command, "commands") else _read_command
            found[name] = read(value, command, path, (*above, name))
        elif name in options:
            found[options[name].name] = _value(value, name, options[name], _hints(group), path, above)
        elif name in group.commands:
            raise DataError(f"{name} = {_shown(value)} is not a table with the options of a command.", path)
        else:
            raise _unknown(name, value, [*group.commands, *options], path, above)
    return found


def _unknown(name: str, value: Any, known: list[str], path: Path, above: tuple[str, ...]) -> DataError:
    """Return the error for a key that a group of commands does not know."""
    if above:
        what = f"[{'.'.join(above)}] has the key {name!r}, which is no option or command."
    elif isinstance(value, dict):
        what = f"[{name}] is not a command of sopool."
    else:
        return DataError(f"{name!r} is in no table: write the name of a command above it, e.g. [fit].", path)
    return DataError(f"{what}{suggest(name, known)}", path)


def _read_command(table: Table, command: Any, path: Path, above: tuple[str, ...]) -> Table:
    """Return the values of the options of a command by the names of its parameters."""
    options = _options(command)
    hints = _hints(command)
    found: Table = {}
    for name, value in table.items():
        if name not in options:
            known = "" if suggest(name, options) else f" Known: {', '.join(options)}."
            raise DataError(
                f"[{'.'.join(above)}] has the key {name!r}, which is no option of sopool {' '.join(above)}."
                f"{suggest(name, options)}{known}",
                path,
            )
        found[options[name].name] = _value(value, name, options[name], hints, path, above)
    return found


def _options(command: Any) -> dict[str, Any]:
    """Return the parameters of a command by their keys: options by their long names, arguments as the help has them."""
    found = {}
    for param in command.params:
        long = [name[2:] for name in param.opts if name.startswith("--")]
        found[long[0] if long else _argument(param, command)] = param
    return {key: param for key, param in found.items() if param.name in _hints(command)}


def _argument(param: Any, command: Any) -> str:
    """Return the key of an argument: its name in the help, unless others have the same."""
    name = str(param.metavar).strip(".").lower()
    alike = [one for one in command.params if str(one.metavar).strip(".").lower() == name]
    return name if len(alike) == 1 else str(param.name)


def _hints(command: Any) -> dict[str, Any]:
    """Return the types of the parameters of a command."""
    return {} if command.callback is None else get_type_hints(command.callback)


def _value(value: Any, key: str, param: Any, hints: Mapping[str, Any], path: Path, above: tuple[str, ...]) -> Any:
    """Return the value of an option as the command line would give it; raise ``DataError`` for one of a wrong type."""
    hint = hints[param.name]
    kinds = [one for one in get_args(hint) if one is not type(None)] if type(None) in get_args(hint) else [hint]
    kind = kinds[0]
    fits, needed, convert = _LISTED if param.metavar == LIST else _rule(kind)
    if not fits(value):
        raise DataError(f"[{'.'.join(above)}] {key} = {_shown(value)}, expected {needed}.", path)
    return convert(value)


def _rule(kind: Any) -> Rule:
    """Return whether a value fits a type, what is expected, and how the value is passed on."""
    if get_origin(kind) is Literal:
        choices = get_args(kind)
        return lambda value: isinstance(value, str) and value in choices, f"one of {', '.join(choices)}", str
    if get_origin(kind) is list:
        return (
            lambda value: isinstance(value, str | list) and all(isinstance(one, str) for one in value),
            "a string or a list of strings",
            lambda value: [value] if isinstance(value, str) else value,
        )
    if kind is bool:
        return lambda value: isinstance(value, bool), "true or false", bool
    if kind is int:
        return lambda value: type(value) is int, "a whole number", int
    if kind is float:
        return lambda value: type(value) in (int, float) and math.isfinite(value), "a number", float
    return lambda value: isinstance(value, str), "a string", str


def _is_list(value: Any) -> bool:
    items = value if isinstance(value, list) else [value]
    return bool(items) and all(type(one) in (str, int, float) for one in items)


def _joined(value: Any) -> str:
    return ",".join(map(str, value if isinstance(value, list) else [value]))


_LISTED: Rule = (_is_list, "a string, a number, or a list of them", _joined)


def _shown(value: Any) -> str:
    """Return a value for an error message, as in the file and not too long."""
    text = _toml(value) if type(value) in (bool, str, int, float, list) else f"a {type(value).__name__}"
    return text if len(text) < 60 else f"{text[:60]}..."


def config_text(context: typer.Context) -> str | None:
    """Return a config file that repeats the running command; None if a value is not Unicode, such as some file names.

    It has all options with their values, whether given or default; those without a value are left out.
    """
    command = context.command
    names = _names(context)
    lines = [f"# sopool {__version__}. Repeat with: sopool --config FILE {' '.join(names)}", f"[{'.'.join(names)}]"]
    for key, param in _options(command).items():
        value = context.params.get(param.name)
        if value is not None:
            lines.append(f"{key} = {_toml(value)}")
    text = "\n".join(lines) + "\n"
    try:
        text.encode()
    except UnicodeEncodeError:
        return None
    return text


def named_in_config(context: Any, message: str) -> str:
    """Return a message in which options that a config file gave are named by the file and the key.

    Args:
        context: The context of the command.
        message: The message, which names options as the command line does, with or without their values.
    """
    path = context.find_root().params.get("config_file")
    for key, param in _options(context.command).items():
        if path is None or not from_config(context, param):
            continue
        value = context.params.get(param.name)
        named = key_in_config(context, param)
        flags = {rf"(?<=\()--{key}(?=\))": named}
        if value is True:
            flags[rf"--{key}(?![\w-])"] = f"{named} = true"
        else:
            items = [item.strip() for item in value.split(",")] if param.metavar == LIST and "," in value else []
            for given, shown in [(value, _toml(value)), *((item, item) for item in items)]:
                flags[rf"--{key} {re.escape(str(given))}(?![\w-])"] = f"{named} = {shown}"
        for flag, shown in flags.items():
            for place, words in ((rf"^{flag}", f"{path}: {shown}"), (flag, f"{shown} of {path}")):
                message = re.sub(place, words.replace("\\", r"\\"), message)
    return message


def from_config(context: Any, param: Any) -> bool:
    """Return whether the value of a parameter is that of a config file."""
    source = context.get_parameter_source(param.name)
    return source is not None and source.name == "DEFAULT_MAP"


def key_in_config(context: Any, param: Any) -> str:
    """Return the table and the key of a parameter in config files."""
    (key,) = (key for key, one in _options(context.command).items() if one.name == param.name)
    return f"[{'.'.join(_names(context))}] {key}"


def config_mistake(context: Any, param: Any, reason: str) -> DataError:
    """Return the error for a value of a config file that an option does not accept."""
    value = (context.default_map or {}).get(param.name)
    path = context.find_root().params["config_file"]
    return DataError(f"{key_in_config(context, param)} = {_shown(value)}: {reason}", path)


def _names(context: Any) -> list[str]:
    """Return the name of the running command, after those of the groups that it is in."""
    above = context.parent
    return [] if above is None else [*_names(above), str(context.info_name)]


def _toml(value: Any) -> str:
    """Return a value in TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Iterable) and not isinstance(value, str):
        return f"[{', '.join(map(_toml, value))}]"
    # JSON has the same escapes, but leaves this character as it is, which TOML does not allow.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def save_config(context: typer.Context, folder: Path) -> Path | None:
    """Write the config file of the running command into a store of runs; return its path, or None if there is none."""
    from sopool.training.runs.store import RunStore

    text = config_text(context)
    return None if text is None else RunStore(folder).save_config(str(context.info_name), text)
