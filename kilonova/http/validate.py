"""Validation: a compiled Rust validator is the gate; the Python one words the refusal, since clients know its words.

Where the two disagree the Python one is followed: it is what the reference uses (probes, and a property test).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from kilonova.core.errors import Invalid
from kilonova.http import formats
from kilonova.http.fields import Converter, Query, Schema, Type
from kilonova.http.versions import Version

if TYPE_CHECKING:
    import jsonschema


class BodyInvalid(Invalid):
    """The body does not fit its schema. The detail `report` is all that the validator says."""

    code = "body_invalid"


class QueryInvalid(Invalid):
    """The query does not fit its schema. The detail `report` is all that the validator says."""

    code = "query_invalid"


def _formats_in(schema: Any) -> Iterator[str]:
    if isinstance(schema, Mapping):
        if isinstance(schema.get("format"), str):
            yield schema["format"]
        for value in schema.values():
            yield from _formats_in(value)
    elif isinstance(schema, list | tuple):
        for value in schema:
            yield from _formats_in(value)


class Validator:
    """One schema, compiled at its first use."""

    __slots__ = ("_gate", "_words", "schema")

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._gate: Callable[[Any], bool] | None = None
        self._words: jsonschema.Draft4Validator | None = None

    def fits(self, value: Any) -> bool:
        """Whether the value is allowed."""
        if self._gate is None:
            import jsonschema_rs

            checks = {word: formats.checker(word) for word in set(_formats_in(self.schema))}
            self._gate = jsonschema_rs.Draft4Validator(self.schema, formats=checks, validate_formats=True).is_valid
        return self._gate(value) or not any(True for _ in self._python().iter_errors(value))

    def why_not(self, value: Any) -> tuple[list[Any], Any, str, Exception]:
        """(path, offending value, words, error whose text is the full report) of the refusal that tells most."""
        from jsonschema.exceptions import best_match

        error = best_match(self._python().iter_errors(value))
        assert error is not None
        words = error.message
        if error.validator == "format":
            words = formats.words(error.validator_value)
        return list(error.path), error.instance, _short(words), error

    def _python(self) -> jsonschema.Draft4Validator:
        if self._words is None:
            import jsonschema

            checker = jsonschema.FormatChecker(formats=())
            for word in set(_formats_in(self.schema)):
                checker.checkers[word] = (_strings_only(formats.checker(word)), ())
            self._words = jsonschema.Draft4Validator(self.schema, format_checker=checker)
        return self._words


def _strings_only(check: Callable[[str], bool]) -> Callable[[object], bool]:
    return lambda value: check(value) if isinstance(value, str) else True


_STRIPPED = frozenset(("name", "az_name", "keypair_name", "keypair_name_2_92"))
"""Formats of names, which the legacy API takes with white space around them."""


_MAY_BE_NULL = frozenset(("base64",))
"""Formats of optional members that may be null in the legacy API: a server's user data."""


def tolerated(schema: Schema, value: Any) -> Any:
    """A body as the legacy API takes it: unknown keys dropped, names stripped (errors.md 5)."""
    if isinstance(value, dict) and "properties" in schema:
        known = schema["properties"]
        closed = schema.get("additionalProperties") is False
        return {
            key: tolerated(known[key], item) if key in known else item
            for key, item in value.items()
            if (key in known or not closed)
            and not (item is None and known.get(key, {}).get("format") in _MAY_BE_NULL)
        }
    if isinstance(value, list) and "items" in schema:
        return [tolerated(schema["items"], item) for item in value]
    if isinstance(value, str) and schema.get("format") in _STRIPPED:
        return value.strip()
    return value


class Body:
    """A compiled body: validate, then convert. relaxed: what the legacy API tolerates is set right before."""

    __slots__ = ("convert", "relaxed", "validator")

    def __init__(self, kind: Type, version: Version | None, *, relaxed: bool = False) -> None:
        self.validator = Validator(kind.schema(version))
        self.convert: Converter | None = kind.converter(version)
        self.relaxed = relaxed

    def read(self, value: Any) -> Any:
        """The plain value; BodyInvalid with the innermost field, its value and why."""
        if self.relaxed:
            value = tolerated(self.validator.schema, value)
        if not self.validator.fits(value):
            path, offending, words, report = self.validator.why_not(value)
            if not path:
                raise BodyInvalid(words, report=report)
            text = f"Invalid input for field/attribute {path[-1]}. Value: {_short(offending)}. {words}"
            raise BodyInvalid(text, report=report)
        return self.convert(value) if self.convert else value


class QueryReader:
    """A compiled query: drops or refuses what is unknown, checks the rest, converts."""

    __slots__ = ("_converters", "_known", "_open", "_passed", "_strict", "_validator")

    def __init__(self, query: Query, version: Version | None) -> None:
        self._known = query.known(version)
        self._strict = query.strict_at(version)
        self._open = query.open
        self._passed = query.passed or (lambda name: False)
        self._converters = {
            name: convert for name, row in self._known.items() if (convert := row.type.converter(version))
        }
        items: dict[str, Schema] = {
            name: {"type": "array", "items": row.type.schema(version)} for name, row in self._known.items()
        }
        for name, row in self._known.items():
            if row.once:
                items[name]["maxItems"] = 1
        self._validator = Validator({"type": "object", "properties": items})

    def read(self, values: Mapping[str, list[str]]) -> dict[str, Any]:
        """Plain values by name; QueryInvalid names the parameter."""
        if self._strict:
            unknown = [name for name in values if name not in self._known and not self._passed(name)]
            if unknown:
                names = ", ".join(repr(name) for name in unknown)
                verb = "was" if len(unknown) == 1 else "were"
                report = f"Additional properties are not allowed ({names} {verb} unexpected)"
                raise QueryInvalid(f"Additional query parameters are not allowed ({names} unexpected).", report=report)
        given = {name: list(found) for name, found in values.items() if name in self._known}
        if given and not self._validator.fits(given):
            path, offending, words, error = self._validator.why_not(given)
            text = f"Invalid input for query parameters {path[0]}. Value: {_short(offending)}. {words}"
            raise QueryInvalid(text, report=error)
        plain: dict[str, Any] = {}
        for name, found in given.items():
            convert = self._converters.get(name)
            several = [convert(value) for value in found] if convert else found
            plain[name] = several if self._known[name].many else several[-1]
        if self._open:
            plain |= {name: list(found) for name, found in values.items() if name not in self._known}
        return plain


def _short(value: Any) -> str:
    """Some of a text: an answer does not echo all that somebody sends."""
    text = str(value)
    return text if len(text) <= 300 else text[:150] + " … " + text[-150:]
