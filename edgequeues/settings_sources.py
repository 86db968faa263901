"""Settings from a TOML file, the environment and flags, and each of them in the words of --help and the docs.

A later source wins over an earlier one: defaults, file, `EDGEQUEUES_<NAME>`, `--<name>`. The docs table comes from
the fields, see `settings_table`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, get_args, get_type_hints

import msgspec
from msgspec import inspect

from edgequeues.settings import Settings, SettingsError

ENVIRONMENT_PREFIX = "EDGEQUEUES_"
_LIST = "list of texts"
_SWITCH = "`true`, `false`"


class Setting(NamedTuple):
    """One field of Settings, as flags and docs need it. allowed: type and bounds in words."""

    name: str
    default: str
    allowed: str
    help: str

    @property
    def flag(self) -> str:
        """Its flag on the command line."""
        return "--" + self.name.replace("_", "-")

    @property
    def is_switch(self) -> bool:
        """Is it on or off?"""
        return self.allowed == _SWITCH

    @property
    def is_list(self) -> bool:
        """May it have several values?"""
        return self.allowed == _LIST

    @property
    def metavar(self) -> str:
        """What stands for its value in --help."""
        words = self.allowed.replace(",", " ").replace("`", "").split()
        return "|".join(words) if self.allowed.startswith("`") else words[0].upper()

    @property
    def variable(self) -> str:
        """Its environment variable."""
        return ENVIRONMENT_PREFIX + self.name.upper()


def load(*, flags: Mapping[str, object], environment: Mapping[str, str], file: Path | None) -> Settings:
    """Return the settings that these sources give. flags: by field name; None: not given.

    Raises SettingsError. Variables that name no setting are left alone, unknown keys of the file are not.
    """
    given: dict[str, Any] = {}
    if file is not None:
        given.update(_checked(str(file), _read(file).items(), strict=True))
    variables = [(s.name, environment[s.variable]) for s in settings() if s.variable in environment]
    given.update(_checked("environment", variables, strict=False))
    given.update(_checked("flags", [(k, v) for k, v in flags.items() if v is not None], strict=False))
    try:
        return Settings(**given)
    except ValueError as error:
        raise SettingsError(f"settings: {error}") from error


def settings() -> list[Setting]:
    """Describe every setting, in order."""
    info = inspect.type_info(Settings)
    assert isinstance(info, inspect.StructType)
    return [_describe(field) for field in info.fields]


def settings_table() -> str:
    """Return the Markdown table of docs/guides/settings.md."""
    rows = [
        f"| `{s.name}` | {s.allowed} | {f'`{s.default}`' if s.default else 'none'} | {s.help} |"
        for s in settings()
    ]
    return "\n".join(["| setting | allowed | default | what it does |", "|---|---|---|---|", *rows]) + "\n"


# -- details ------------------------------------------------------------------------------------------------


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text())
    except OSError as error:
        raise SettingsError(f"{file}: {error.strerror}; name a readable TOML file") from error
    except ValueError as error:  # not UTF-8, or not TOML
        raise SettingsError(f"{file}: not TOML: {error}") from error


def _checked(source: str, values: Iterable[tuple[str, object]], *, strict: bool) -> Iterator[tuple[str, Any]]:
    """Give the values in the types of their fields. Not strict: text stands for numbers, and for lists by commas."""
    types = get_type_hints(Settings, include_extras=True)
    for name, value in values:
        kind = types.get(name)
        if kind is None:
            raise SettingsError(f"{source}: {name}: no such setting; known are {', '.join(types)}")
        parts: object = value
        if not strict and isinstance(value, str | tuple) and get_args(kind)[0] == list[str]:
            texts = (value,) if isinstance(value, str) else value
            parts = [part.strip() for text in texts for part in text.split(",") if part.strip()]
        try:
            yield name, msgspec.convert(parts, kind, strict=strict)
        except msgspec.ValidationError as error:
            why = str(error)
            raise SettingsError(
                f"{source}: {name}: {value!r} will not do; {why[0].lower()}{why[1:]}"
            ) from error


def _describe(field: inspect.Field) -> Setting:
    kind: inspect.Type = field.type
    help_text = ""
    if isinstance(kind, inspect.Metadata):
        help_text = (kind.extra_json_schema or {}).get("description", "")
        kind = kind.type
    default = field.default_factory() if field.default is msgspec.NODEFAULT else field.default
    text = ",".join(default) if isinstance(default, list) else str(default)
    if isinstance(default, bool):
        text = text.lower()
    return Setting(field.name, text, _allowed(kind), help_text)


def _allowed(kind: inspect.Type) -> str:
    if isinstance(kind, inspect.LiteralType):
        return ", ".join(f"`{value}`" for value in kind.values)
    if isinstance(kind, inspect.ListType):
        return _LIST
    if isinstance(kind, inspect.BoolType):
        return _SWITCH
    if isinstance(kind, inspect.IntType | inspect.FloatType):
        word = "integer" if isinstance(kind, inspect.IntType) else "number"
        low = (
            f", at least {kind.ge}"
            if kind.ge is not None
            else f", above {kind.gt}"
            if kind.gt is not None
            else ""
        )
        return word + low + (f", at most {kind.le}" if kind.le is not None else "")
    assert isinstance(kind, inspect.StrType), f"no words for {kind}"
    return "text"
