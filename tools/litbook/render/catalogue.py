"""The words that a reader sees and no author wrote: in English where they are used, and looked up here.

`locale/LANGUAGE.po` of the engine has their translations; a text that it lacks stays English. Nothing but a
site asks for a language, so what prints to a terminal speaks English and needs no Babel.
"""

from __future__ import annotations

import datetime
import gettext
import io
from pathlib import Path

from litbook.text.words import later as later  # noqa: PLC0414 (mypy: other modules take it from here)

LOCALE = Path(__file__).resolve().parents[1] / "locale"

_found = gettext.NullTranslations()
_language = ""  # of `_found`, as Babel calls it; "" is English
MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()


def use(language: str) -> None:
    """From now on words and numbers are those of `language` (`de`, `pt-BR`), if the engine has its words."""
    global _found, _language
    _found, _language = gettext.NullTranslations(), ""
    file = LOCALE / f"{language}.po"
    if file.is_file():
        from babel.messages import mofile, pofile

        packed = io.BytesIO()
        with file.open("rb") as text:
            mofile.write_mo(packed, pofile.read_po(text, locale=language.replace("-", "_")))
        packed.seek(0)
        _found, _language = gettext.GNUTranslations(packed), language.replace("-", "_")


def _(text: str, **values: object) -> str:
    """The text in the site's language, with these values in the place of their `{names}`."""
    text = _found.gettext(text)
    return text.format(**values) if values else text


def ngettext(one: str, more: str, n: int, **values: object) -> str:
    """The form of the text for `n` things; `{n}` in it is their number."""
    return _found.ngettext(one, more, n).format(n=number(n), **values)


def language() -> str:
    """The language of words and numbers, as browsers call it."""
    return _language.replace("_", "-") or "en"


def number(value: float, places: int = 0) -> str:
    """A count, or a number with so many decimals, as the site's language writes it: `1,200`."""
    if not _language:
        return f"{value:,.{places}f}"
    from babel.numbers import format_decimal

    return format_decimal(value, f"#,##0.{'0' * places}", locale=_language)


def day(date: str) -> str:
    """An ISO date as `20 Nov 2026`; anything else as it stands."""
    try:
        when = datetime.date.fromisoformat(date[:10])
    except ValueError:
        return date
    if not _language:
        return f"{when.day} {MONTHS[when.month - 1]} {when.year}"
    from babel.dates import format_date

    return format_date(when, locale=_language)
