"""Completion for shells: what the last word of a command line may become.

    bash, zsh   complete -o default -C 'litbook --complete' litbook
    fish        complete -c litbook -a '(env COMP_LINE=(commandline -cp) litbook --complete)'

The shell asks litbook itself, with the line so far in `COMP_LINE`, so whatever a command takes is known. (zsh
first needs `autoload -U bashcompinit; bashcompinit`.) It runs nothing, and of a lecture reads its text alone.
"""

from __future__ import annotations

import argparse
import contextlib
import shlex
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from litbook.errors import LitbookError
from litbook.lecture import parse
from litbook.project import Project, name_of


class Unfinished(list[str]):
    """The words of a command line that a shell wants completed; the last one may be empty."""


class Parser(argparse.ArgumentParser):
    """A parser that, of unfinished words, prints what the last may become, and ends the program."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As the standard library's; its other ways to parse come here, but for the one below."""
        if isinstance(args, Unfinished):
            self._complete(args)
        return super().parse_known_args(args, namespace)

    def parse_known_intermixed_args(self, args: Any = None, namespace: Any = None) -> Any:
        """The same, with options between the words."""
        if isinstance(args, Unfinished):
            self._complete(args)
        return super().parse_known_intermixed_args(args, namespace)

    def _complete(self, words: Unfinished) -> NoReturn:
        *before, last = words
        options = {name: action for action in self._actions for name in action.option_strings}
        plain, waits = list[str](), None  # words that are no options', and the option whose value comes next
        for word in before:
            if waits is not None:
                waits = None
            elif word.startswith("-"):
                option = options.get(word)
                waits = option if option is not None and option.nargs != 0 else None
            else:
                plain.append(word)
        places = [action.dest for action in self._actions if not action.option_strings]
        offered: Iterable[str] = ()
        if waits is not None:
            offered = waits.choices or ()  # of a file none: the shell knows files itself
        elif last.startswith("-"):
            offered = options
        else:
            with contextlib.suppress(LitbookError, OSError):
                if not plain and places[:1] == ["lecture"]:
                    offered = Project.find(Path.cwd()).names()
                elif plain and places[:2] == ["lecture", "sections"]:
                    lectures = Project.find(Path.cwd()).lectures()
                    path = next((path for path in lectures if name_of(path) == plain[0]), Path(plain[0]))
                    offered = parse.outline(path).section_names()
        _offer(offered, last)


def complete(commands: Mapping[str, Callable[[list[str]], object]], line: str) -> None:
    """Print what the last word of the line may become; a command's own parser knows its words."""
    try:
        words = [*shlex.split(line), *[""] * line.endswith(" ")]  # behind a space the last is empty
    except ValueError:  # an open quotation is as if it were none
        words = line.replace('"', "").replace("'", "").split(" ")
    words = words[1:] or [""]
    if len(words) == 1:
        _offer([*commands, "--help", "--version"], words[0])
    if words[0] in commands:
        commands[words[0]](Unfinished(words[1:]))


def _offer(words: Iterable[str], begun: str) -> NoReturn:
    for word in words:
        if word.startswith(begun):
            print(word)
    raise SystemExit(0)
