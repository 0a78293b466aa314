"""Request bodies as trees of ranged field rows. A tree is compiled once per version into a JSON schema (draft 4)
and, where wire forms differ from plain values (digit strings, words for booleans), into a converter.

Bodies are closed objects: an unknown key is refused, and so is a field whose range does not hold the version.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from kilonova.http.versions import ALWAYS, Since, Span, Version, at, between, span

Schema = dict[str, Any]
Converter = Callable[[Any], Any]


class Type(Protocol):
    """Anything that can stand for a value in a body."""

    def schema(self, version: Version | None) -> Schema:
        """The JSON schema of the value at a version."""
        ...

    def converter(self, version: Version | None) -> Converter | None:
        """From the wire's form to the plain value; None when they are the same."""
        ...


class _Plain:
    """A type whose wire form is its value."""

    def converter(self, version: Version | None) -> Converter | None:
        return None


@dataclass(frozen=True, slots=True)
class Str(_Plain):
    """A string of `min` to `max` characters, of a format (see `formats`) or pattern."""

    min: int | None = None
    max: int | None = None
    format: str | None = None
    pattern: str | None = None
    null: bool = False

    def schema(self, version: Version | None) -> Schema:
        schema: Schema = {"type": ["string", "null"] if self.null else "string"}
        rows = {"minLength": self.min, "maxLength": self.max, "format": self.format, "pattern": self.pattern}
        return schema | {key: value for key, value in rows.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Int:
    """An integer, as a number or in digits; `min` and `max` hold for both."""

    min: int | None = None
    max: int | None = None
    null: bool = False
    strict: bool = False  # a JSON number only

    def schema(self, version: Version | None) -> Schema:
        types = ["integer"] + ([] if self.strict else ["string"]) + (["null"] if self.null else [])
        schema: Schema = {"type": types if len(types) > 1 else types[0]}
        if not self.strict:
            bounds = "|".join(str(bound) if bound is not None else "" for bound in (self.min, self.max))
            schema["format"] = f"integer:{bounds}"
        if self.min is not None:
            schema["minimum"] = self.min
        if self.max is not None:
            schema["maximum"] = self.max
        return schema

    def converter(self, version: Version | None) -> Converter | None:
        return None if self.strict else lambda value: int(value) if isinstance(value, str) else value


TRUE_WORDS = ("True", "TRUE", "true", "1", "ON", "On", "on", "YES", "Yes", "yes")
FALSE_WORDS = ("False", "FALSE", "false", "0", "OFF", "Off", "off", "NO", "No", "no")


@dataclass(frozen=True, slots=True)
class Bool:
    """A truth value, as JSON or as one of the words of microversions.md 1; `strict` takes JSON only."""

    strict: bool = False
    null: bool = False

    def schema(self, version: Version | None) -> Schema:
        if self.strict:
            return {"type": ["boolean", "null"] if self.null else "boolean"}
        words = [True, *TRUE_WORDS, False, *FALSE_WORDS] + ([None] if self.null else [])
        return {"type": ["boolean", "string"] + (["null"] if self.null else []), "enum": words}

    def converter(self, version: Version | None) -> Converter | None:
        return None if self.strict else lambda value: value in TRUE_WORDS if isinstance(value, str) else value


class Enum(_Plain):
    """One of some values; `("word", "2.15")` is a value that came with 2.15."""

    __slots__ = ("values",)

    def __init__(self, *values: Any) -> None:
        self.values = values

    def schema(self, version: Version | None) -> Schema:
        allowed = [value if not isinstance(value, tuple) else value[0] for value in self.values
                   if not isinstance(value, tuple) or version is None or version in span(value[1])]  # fmt: skip
        return {"enum": allowed}


class _Null(_Plain):
    def schema(self, version: Version | None) -> Schema:
        return {"type": "null"}


class _Anything(_Plain):
    def schema(self, version: Version | None) -> Schema:
        return {}


Null = _Null()
Any_ = _Anything()


@dataclass(frozen=True, slots=True)
class Raw(_Plain):
    """A value described by a schema of its own, for the few that no other type fits."""

    document: Mapping[str, Any]

    def schema(self, version: Version | None) -> Schema:
        return dict(self.document)


@dataclass(frozen=True, slots=True)
class Arr:
    """A list of equal items."""

    item: Type | Since[Type]
    min: int | None = None
    max: int | None = None
    unique: bool = False
    null: bool = False

    def schema(self, version: Version | None) -> Schema:
        schema: Schema = {
            "type": ["array", "null"] if self.null else "array",
            "items": at(self.item, version).schema(version),
        }
        rows = {"minItems": self.min, "maxItems": self.max, "uniqueItems": self.unique or None}
        return schema | {key: value for key, value in rows.items() if value is not None}

    def converter(self, version: Version | None) -> Converter | None:
        convert = at(self.item, version).converter(version)
        if convert is None:
            return None
        return lambda value: [convert(item) for item in value] if isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class Map:
    """An object with free keys of one pattern and values of one type."""

    key: str
    value: Type
    min: int | None = None
    max: int | None = None
    null: bool = False

    def schema(self, version: Version | None) -> Schema:
        schema: Schema = {
            "type": ["object", "null"] if self.null else "object",
            "patternProperties": {self.key: self.value.schema(version)},
            "additionalProperties": False,
        }
        rows = {"minProperties": self.min, "maxProperties": self.max}
        return schema | {key: value for key, value in rows.items() if value is not None}

    def converter(self, version: Version | None) -> Converter | None:
        convert = self.value.converter(version)
        if convert is None:
            return None
        return lambda value: {k: convert(v) for k, v in value.items()} if isinstance(value, dict) else value


class AnyOf:
    """A value of any of some types."""

    __slots__ = ("types",)

    def __init__(self, *types: Type) -> None:
        self.types = types

    def schema(self, version: Version | None) -> Schema:
        return {"anyOf": [kind.schema(version) for kind in self.types]}

    def converter(self, version: Version | None) -> Converter | None:
        converters = [convert for kind in self.types if (convert := kind.converter(version))]
        if not converters:
            return None

        def convert_all(value: Any) -> Any:
            for convert in converters:
                value = convert(value)
            return value

        return convert_all


@dataclass(frozen=True, slots=True)
class Field:
    """A member of an object. `since`/`until` or `when` (see `versions.span`) say where it exists."""

    name: str
    type: Type | Since[Type]
    required: bool | Since[bool] = False
    since: str | None = None
    until: str | None = None
    when: str | None = None

    @property
    def range(self) -> Span:
        """The versions that know the field."""
        return span(self.when) if self.when else between(self.since, self.until)


class Obj:
    """An object with named members. `open` lets unknown keys pass; `min` members at least."""

    __slots__ = ("fields", "min", "null", "open")

    def __init__(self, *fields: Field, open: bool = False, min: int | None = None, null: bool = False) -> None:
        self.fields, self.open, self.min, self.null = fields, open, min, null

    def at(self, version: Version | None) -> list[Field]:
        """The members that exist at a version."""
        return [row for row in self.fields if version is None or row.range is ALWAYS or version in row.range]

    def plus(self, *fields: Field) -> Obj:
        """The same object with more members."""
        return Obj(*self.fields, *fields, open=self.open, min=self.min, null=self.null)

    def schema(self, version: Version | None) -> Schema:
        members = self.at(version)
        schema: Schema = {
            "type": ["object", "null"] if self.null else "object",
            "properties": {member.name: at(member.type, version).schema(version) for member in members},
        }
        if not self.open:
            schema["additionalProperties"] = False
        required = [member.name for member in members if at(member.required, version)]
        if required:
            schema["required"] = required
        if self.min is not None:
            schema["minProperties"] = self.min
        return schema

    def converter(self, version: Version | None) -> Converter | None:
        converters = {
            member.name: convert
            for member in self.at(version)
            if (convert := at(member.type, version).converter(version))
        }
        if not converters:
            return None

        def convert_members(value: Any) -> Any:
            if not isinstance(value, dict):
                return value
            return {k: converters[k](v) if k in converters else v for k, v in value.items()}

        return convert_members


@dataclass(frozen=True, slots=True)
class Param:
    """A query parameter. `many` keeps all values, `once` refuses a repetition, else the last value counts. words: what
    it does, for the OpenAPI document."""

    name: str
    type: Type = field(default_factory=lambda: Str())
    many: bool = False
    once: bool = False
    since: str | None = None
    until: str | None = None
    words: str = ""

    @property
    def range(self) -> Span:
        """The versions that know the parameter."""
        return between(self.since, self.until)


@dataclass(frozen=True, slots=True)
class Query:
    """The query of an operation. From `strict` on an unknown parameter is refused, before it is dropped.

    `strict=True` refuses at every version. `open` hands unknown parameters on (as lists) instead of dropping them.
    `passed` tells the names that are never refused here: what they mean depends on who asks. words: what is to be known
    beyond the parameters' own words, for the OpenAPI document.
    """

    params: tuple[Param, ...] = ()
    strict: str | bool = False
    open: bool = False
    passed: Callable[[str], bool] | None = None
    words: str | Since[str] = ""

    def strict_at(self, version: Version | None) -> bool:
        """Whether unknown parameters are refused at a version."""
        if isinstance(self.strict, bool):
            return self.strict
        return version is None or version in span(self.strict)

    def known(self, version: Version | None) -> dict[str, Param]:
        """The parameters of a version by name."""
        return {row.name: row for row in self.params if version is None or version in row.range}


def wrap(name: str, body: Type | Since[Type]) -> Obj:
    """`{name: body}`, the form of most requests."""
    return Obj(Field(name, body, required=True))


def nullable(kind: Str) -> Str:
    """The same string or null."""
    return replace(kind, null=True)


def keys(fields: Sequence[Field]) -> list[str]:
    """The names of some members."""
    return [row.name for row in fields]


# -- value types that many bodies use (contract microversions.md 1) ---------------------------------------------

NAME = Str(1, 255, "name")
NAME_OR_NONE = Str(1, 255, null=True)
AZ_NAME = Str(1, 255, "az_name")
DESCRIPTION = Str(0, 255, "printable", null=True)
FQDN = Str(1, 255, "fqdn")
HOSTNAME = Str(2, 63, "hostname")
POSINT = Int(1)
NONNEG = Int(0)
INT31_POSITIVE = Int(1, 2147483647)
INT31 = Int(0, 2147483647)
UUID = Str(format="uuid")
IP = Str(format="ip")
IPV4 = Str(format="ipv4")
IPV6 = Str(format="ipv6")
BASE64 = Str(format="base64")
BOOL = Bool()
METADATA_KEY = r"^[a-zA-Z0-9-_:. ]{1,255}$"
METADATA = Map(METADATA_KEY, Str(max=255))
METADATA_NULL = Map(METADATA_KEY, Str(max=255, null=True))
TAG = Str(1, 60, "tag")
TAGS = Arr(TAG, max=50)
TRUSTED_CERTS = Arr(Str(1), 1, 50, unique=True, null=True)
FLAVOR_REF = Raw({"type": ["string", "integer"], "minLength": 1})
DEVICE = Str(format="device", null=True)
