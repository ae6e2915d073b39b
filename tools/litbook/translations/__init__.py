"""The engine's words in other languages: `locale/LANGUAGE.po` -> what the catalogue speaks, by Babel."""

from __future__ import annotations

import datetime
import gettext
import io
from pathlib import Path

from litbook import i18n

LOCALE = Path(__file__).parent / "locale"


class Translation(gettext.GNUTranslations, i18n.Language):
    """The language of a `.po` file; a text that it lacks stays English."""

    def __init__(self, name: str, file: Path) -> None:
        from babel.messages import mofile, pofile

        self.name, self.locale = name, name.replace("-", "_")
        packed = io.BytesIO()
        with file.open("rb") as text:
            mofile.write_mo(packed, pofile.read_po(text, locale=self.locale))
        packed.seek(0)
        super().__init__(packed)

    def number(self, value: float, places: int) -> str:
        """A number with so many decimals."""
        from babel.numbers import format_decimal

        return format_decimal(value, f"#,##0.{'0' * places}", locale=self.locale)

    def day(self, when: datetime.date) -> str:
        """A date."""
        from babel.dates import format_date

        return format_date(when, locale=self.locale)


def find(language: str) -> Translation | None:
    """The language, if there are translations into it."""
    file = LOCALE / f"{language}.po"
    return Translation(language, file) if file.is_file() else None


i18n.LANGUAGES.append(find)
