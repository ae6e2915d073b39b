"""What our scripts say to a reader: the page carries their words as data, in the site's language.

`assets/player.js`, `answers.js` and `beside.js` look them up by these names, and fill in `{n}` and its like.
"""

from __future__ import annotations

from collections.abc import Collection

from litbook import i18n
from litbook.html import elements
from litbook.html.elements import Html
from litbook.i18n import _, later
from litbook.page import margin

BESIDE = {"there": later("Go there"), "close": later("Close")}
PLAYER = margin.WORDS | {
    "through": later("Step through"),
    "lost": later("The steps of this page could not be loaded. The page itself is complete."),
    "player": later("Player"),
    "rank": later("rank {n}"),
    "ranks": later("Whose steps"),
    "step": later("step"),
    "ways": later("player"),
    "after": later("after this step"),
    "first": later("First step"),
    "back": later("Back"),
    "forward": later("Forward"),
    "over": later("Over calls"),
    "into": later("Into the call, also of a helper in another file"),
    "change": later("To the next change of a value"),
    "play": later("Play, or stop"),
    "speed": later("speed"),
    "guess": later("Guess before a value or a claim is shown"),
    "see": later("What will it be? Press to see"),
    "unchanged": later("No value changes after this step."),
    "never": later("That line does not run on this page."),
    "out": later("Out of the call, or on to the next section"),
    "last": later("Last step"),
    "sections": later("Jump to a section"),
    "reveal": later("Hide what is still to come"),
    "speaker": later("Speaker notes"),
    "full": later("Full screen, larger type"),
    "help": later("Keys"),
    "close": later("Close"),
    "isLast": later("This is the last step."),
    "isFirst": later("This is the first step."),
    "none": later("There is no step {step} on this page; the nearest is {n} of {all}."),
    "of": later("{n} of {all}"),
    "nth": later("step {n}"),
    "at": later("step {n} of {all}, {place}"),
    "line": later("line {n}"),
    "turn": later("iteration {n} of {all}"),
    "claim": later("Claim {verdict}: {caption}."),
    "error": later("Error: {text}"),
    "changed": later("Changed: {values}."),
    "new": later("changed"),
    "memory": later("memory"),
    "inside": later("In {name}."),
    "calls": later("… {n} more calls"),
    "older": later("… {n} older"),
    "note": later("speaker note"),
    "nothing": later("Nothing here."),
    "name": later("name of a section"),
    "jump": later("Jump to a section of this page"),
    "missing": later("No section of this page has that in its name."),
    "keys": later("Keys of the player"),
    "touch": later("On a touch screen, swipe to the left for forward and to the right for back."),
}
ANSWERS = {
    "yours": later("Your answer"),
    "in": later(", in {unit}"),
    "check": later("Check"),
    "right": later("right"),
    "isRight": later("✓ Right."),
    "isWrong": later("✗ {why}."),
    "first": later("Write an answer first."),
    "unread": later("That cannot be read: write numbers such as 1,024, 1e6, 2^20, 2 GiB or 50 %."),
    "unit": later("The answer is in {unit}, not in {word}."),
    "plain": later("The answer is a plain number, not in {word}."),
    "many": later("{n} are asked for, with commas between them."),
    "notIt": later("not it"),
    "small": later("{n} × too small"),
    "large": later("{n} × too large"),
    "sign": later("of the other sign"),
    "part": later("part {n} is {verdict}"),
    "done": later("{n} of {all} questions answered."),
    "kept": later("What you answer stays in this browser."),
    "forget": later("Forget it"),
}
SCRIPTS = {"player": PLAYER, "answers": ANSWERS, "beside": BESIDE}


def data(scripts: Collection[str]) -> Html:
    """The words of these scripts, the ones that have something to do on a page; nothing where none has."""
    if not scripts:
        return elements.NOTHING
    words = {name: {key: _(text) for key, text in SCRIPTS[name].items()} for name in scripts}
    # No script element: what navigates without loading pages would run it.
    told = elements.data({"lang": i18n.language(), **words}, ours=True)
    return Html(f'<div id="lb-words" hidden data-words={told}></div>')
