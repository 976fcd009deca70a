"""Secrets in texts: addresses, settings and headers have them, and libraries quote those in their errors."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Final

_VALUE: Final = r"""(?:[bru]?"(?:[^"\\]|\\.)*"|[bru]?'(?:[^'\\]|\\.)*'|\{[^}]*\}|(?:\\.|[^\s,;&)}\]"'])+)"""
_PASSWORD: Final = r"(?:passw(?:or)?d|passphrase|pwd)"
_NAME: Final = rf"(?:{_PASSWORD}|secret|token|credentials?|(?:api|access|account|private)[_.\-]?key|key[_.\-]?pem)[\w.\-]{{0,64}}"
_IS: Final = r"""(?:\s*=\s*|["']\s*:\s*|(?<=["'])\s*,\s*(?=["'])|["']\s*,\s*(?=["']))"""
_SCHEME: Final = r"\b[a-z][a-z0-9+.\-]{0,31}://"
_USER: Final = r"(?<![\w*])[^\s/:@'\"]{1,256}:(?!//|\d+[/,])[^\s@'\"]"
_WORD: Final = r"(?<![^\s'\"])[^\s'\"]++"
_BEFORE_AT: Final = r"(?<![^\s@'\"])[^\s@'\"]++(?=@[\w\[])"
"""Words are found once and as long as they are, so that a long text takes a time of its length."""


def _without_question(word: re.Match[str]) -> str:
    """Return a word without what comes after the `?` of an address in it."""
    scheme = re.search(_SCHEME, word[0], re.IGNORECASE)
    place = -1 if scheme is None else word[0].find("?", scheme.end())
    return word[0] if place < 0 or place + 1 == len(word[0]) else f"{word[0][: place + 1]}***"


def _without_user(word: re.Match[str]) -> str:
    """Return what stands before an `@` without the name and the password at its end; of an address the scheme is left."""
    scheme, user = re.search(_SCHEME, word[0], re.IGNORECASE), re.search(_USER, word[0])
    if scheme is not None:
        return f"{word[0][: scheme.end()]}***"
    return word[0] if user is None else f"{word[0][: user.start()]}***"


_HIDDEN: Final = r"\1***"
_PATTERNS: Final[tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...]] = (
    # An address: what stands before its @, though there be slashes or spaces in it, and what comes after its ?.
    (rf"(?i)({_SCHEME})(?:[^\s/@:]*:(?!\d+(?:[\s/,?'\"]|$))[^\n@]{{0,512}}(?:@\S{{0,512}})?|\S{{0,1024}})(?=@)", _HIDDEN),
    (_WORD, _without_question),
    (_BEFORE_AT, _without_user),
    # Settings and headers by their names.
    (rf"(?is)(\bauthorization[\"']?\s*[:,=]\s*)(?:{_VALUE}(?:\s+[^\s,;'\"]+)?)", _HIDDEN),
    (r"(?i)(\bbearer\s+)[^\s,;'\"]+", _HIDDEN),
    (rf"(?is)({_NAME}{_IS})(?:{_VALUE})", _HIDDEN),
    (rf"(?is)({_PASSWORD}:\s+)(?:{_VALUE})", _HIDDEN),
    # What parsers quote of an address that they misread: a password with a slash or a space in it is taken for a port.
    (r"(\binteger value (?:as )?)(?:'[^']*'|\"[^\"]*\")", _HIDDEN),
    (r"(\b(?:missing \"=\" after|percent-encoded token:) )\"[^\"]*\"", _HIDDEN),
    (r"(?s)(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(?=-----END|$)", _HIDDEN),
)


def without_secrets(text: str) -> str:
    """Return a text with `***` for what may be a secret: names and passwords in addresses, what follows their `?`, settings.

    A secret is known by where it stands, or by the name before it; better too much is hidden than too little.

    >>> without_secrets("no answer from postgres://me:s3cret@db:5432/trips, nor from https://example.org/hook?key=s3cret")
    'no answer from postgres://***@db:5432/trips, nor from https://example.org/hook?***'
    >>> without_secrets("host=db password='s3 cret', {'sasl.password': 's3cret', 'linger.ms': 5}")
    "host=db password=***, {'sasl.password': ***, 'linger.ms': 5}"
    """
    for pattern, hidden in _compiled():
        text = pattern.sub(hidden, text)
    return text


def hide_secrets(error: BaseException) -> BaseException:
    """Return an error with secrets hidden in it, and in those that it came of: libraries quote the address that does not answer.

    It is the same error, or, if its text is not made of what can be changed, a `RuntimeError` that says the same.

    >>> hide_secrets(OSError("no route to http://me:s3cret@db"))
    OSError('no route to http://***@db')
    """
    return _safe(error, {})


def _safe(error: BaseException, known: dict[int, BaseException]) -> BaseException:
    if id(error) in known:
        return known[id(error)]
    notes = [without_secrets(str(note)) for note in getattr(error, "__notes__", ())]
    found = known[id(error)] = _rewritten(error)
    if notes:
        found.__notes__ = notes
    for name in ("__cause__", "__context__"):
        if (cause := getattr(error, name)) is not None:
            was_hidden = found.__suppress_context__
            setattr(found, name, _safe(cause, known))
            found.__suppress_context__ = was_hidden
    if isinstance(found, BaseExceptionGroup):
        members = [_safe(each, known) for each in found.exceptions]
        if any(new is not old for new, old in zip(members, found.exceptions, strict=True)):
            return found.derive(members)
    return found


def _rewritten(error: BaseException) -> BaseException:
    for name in ("strerror", "filename", "filename2") if isinstance(error, OSError) else ():
        if isinstance(was := getattr(error, name), str) and was != (now := without_secrets(was)):
            setattr(error, name, now)
    if without_secrets(str(error)) == str(error) and without_secrets(repr(error)) == repr(error):
        return error
    text = without_secrets(str(error))
    error.args = tuple(without_secrets(each) if isinstance(each, str) else each for each in error.args)
    if str(error) != without_secrets(str(error)):
        error.args = (text,)
    if str(error) == without_secrets(str(error)):
        return error
    return RuntimeError(f"{type(error).__name__}: {text}").with_traceback(error.__traceback__)


@cache
def _compiled() -> tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...]:
    return tuple((re.compile(pattern), hidden) for pattern, hidden in _PATTERNS)
