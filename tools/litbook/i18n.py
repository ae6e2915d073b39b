"""The words that a reader sees and no author wrote: in English where they are used, and looked up here.

A site asks for its language, and whoever knows one puts it into `LANGUAGES`; what it lacks stays English.
Nothing but a site asks, so what prints to a terminal speaks English.
"""

from __future__ import annotations

import datetime
import gettext
from collections.abc import Callable

MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()


def gettext_noop(text: str) -> str:
    """The text as it stands; it is in the catalogue, and looked up where a reader sees it."""
    return text


class Language(gettext.NullTranslations):
    """English. Another language says each of these in its own way."""

    name = "en"  # as browsers call it

    def number(self, value: float, places: int) -> str:
        """A number with so many decimals."""
        return f"{value:,.{places}f}"

    def day(self, when: datetime.date) -> str:
        """A date."""
        return f"{when.day} {MONTHS[when.month - 1]} {when.year}"


# Each takes the name of a language (`de`, `pt-BR`), and returns it where it has its words.
LANGUAGES: list[Callable[[str], Language | None]] = []
_language = Language()


def use(language: str) -> None:
    """From now on words and numbers are those of `language`, if anybody has its words."""
    global _language
    languages = (find(language) for find in LANGUAGES)
    _language = next(filter(None, languages), Language())


def _(text: str, **values: object) -> str:
    """The text in the site's language, with these values in the place of their `{names}`."""
    text = _language.gettext(text)
    return text.format(**values) if values else text


def ngettext(one: str, more: str, n: int, **values: object) -> str:
    """The form of the text for `n` things; `{n}` in it is their number."""
    return _language.ngettext(one, more, n).format(n=number(n), **values)


def language() -> str:
    """The language of words and numbers, as browsers call it."""
    return _language.name


def number(value: float, places: int = 0) -> str:
    """A count, or a number with so many decimals, as the site's language writes it: `1,200`."""
    return _language.number(value, places)


def day(date: str) -> str:
    """An ISO date as `20 Nov 2026`; anything else as it stands."""
    try:
        return _language.day(datetime.date.fromisoformat(date[:10]))
    except ValueError:
        return date
