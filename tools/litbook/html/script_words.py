"""What our scripts say to a reader: the page carries their words as data, in the site's language.

`assets/player.js`, `answers.js` and `beside.js` look them up by these names, and fill in `{n}` and its like.
"""

from __future__ import annotations

from collections.abc import Collection

from litbook import i18n
from litbook.html import elements
from litbook.html.elements import Html
from litbook.i18n import _, gettext_noop
from litbook.page import margin

BESIDE = {"there": gettext_noop("Go there"), "close": gettext_noop("Close")}
PLAYER = margin.WORDS | {
    "through": gettext_noop("Step through the code"),
    "here": gettext_noop("Step through “{name}”"),
    "lost": gettext_noop("The steps of this page could not be loaded. The page itself is complete."),
    "player": gettext_noop("Player"),
    "rank": gettext_noop("rank {n}"),
    "ranks": gettext_noop("Whose steps"),
    "onRanks": gettext_noop("on all ranks, after this line"),
    "absent": gettext_noop("not run here"),
    "step": gettext_noop("step"),
    "ways": gettext_noop("player"),
    "after": gettext_noop("after this step"),
    "first": gettext_noop("First step"),
    "back": gettext_noop("Back"),
    "forward": gettext_noop("Forward"),
    "over": gettext_noop("Over calls"),
    "into": gettext_noop("Into the call, also of a helper in another file"),
    "change": gettext_noop("To the next change of a value"),
    "play": gettext_noop("Play, or stop"),
    "speed": gettext_noop("speed"),
    "guess": gettext_noop("Guess before a value or a claim is shown"),
    "see": gettext_noop("What will it be? Press to see"),
    "unchanged": gettext_noop("No value changes after this step."),
    "never": gettext_noop("That line does not run on this page."),
    "out": gettext_noop("Out of the call, or on to the next section"),
    "last": gettext_noop("Last step"),
    "sections": gettext_noop("Jump to a section"),
    "reveal": gettext_noop("Grey what is still to come"),
    "speaker": gettext_noop("Speaker notes"),
    "full": gettext_noop("Full screen, larger type"),
    "help": gettext_noop("Keys"),
    "close": gettext_noop("Close"),
    "isLast": gettext_noop("This is the last step."),
    "ends": gettext_noop("This is the last step of the section. Forward goes on with the page."),
    "order": gettext_noop("order"),
    "wBack": gettext_noop("back"),
    "wForward": gettext_noop("step"),
    "wOver": gettext_noop("over"),
    "wInto": gettext_noop("into"),
    "wOut": gettext_noop("out"),
    "wPlay": gettext_noop("play"),
    "wSections": gettext_noop("sections"),
    "wGuess": gettext_noop("guess"),
    "isFirst": gettext_noop("This is the first step."),
    "none": gettext_noop("There is no step {step} on this page; the nearest is {n} of {all}."),
    "of": gettext_noop("{n} of {all}"),
    "nth": gettext_noop("step {n}"),
    "at": gettext_noop("step {n} of {all}, {place}"),
    "line": gettext_noop("line {n}"),
    "turn": gettext_noop("iteration {n} of {all}"),
    "claim": gettext_noop("Claim {verdict}: {caption}."),
    "error": gettext_noop("Error: {text}"),
    "changed": gettext_noop("Changed: {values}."),
    "new": gettext_noop("changed"),
    "seen": gettext_noop("as of {place}"),
    "memory": gettext_noop("memory"),
    "inside": gettext_noop("In {name}."),
    "calls": gettext_noop("… {n} more calls"),
    "older": gettext_noop("… {n} older"),
    "note": gettext_noop("speaker note"),
    "nothing": gettext_noop("Nothing here."),
    "name": gettext_noop("name of a section"),
    "jump": gettext_noop("Jump to a section of this page"),
    "missing": gettext_noop("No section of this page has that in its name."),
    "keys": gettext_noop("Keys of the player"),
    "touch": gettext_noop("On a touch screen, swipe to the left for forward and to the right for back."),
}
ANSWERS = {
    "yours": gettext_noop("Your answer"),
    "in": gettext_noop(", in {unit}"),
    "check": gettext_noop("Check"),
    "right": gettext_noop("right"),
    "isRight": gettext_noop("✓ Right."),
    "isWrong": gettext_noop("✗ {why}."),
    "first": gettext_noop("Write an answer first."),
    "unread": gettext_noop("That cannot be read: write numbers such as 1,024, 1e6, 2^20, 2 GiB or 50 %."),
    "unit": gettext_noop("The answer is in {unit}, not in {word}."),
    "plain": gettext_noop("The answer is a plain number, not in {word}."),
    "many": gettext_noop("{n} are asked for, with commas between them."),
    "notIt": gettext_noop("not it"),
    "small": gettext_noop("{n} × too small"),
    "large": gettext_noop("{n} × too large"),
    "sign": gettext_noop("of the other sign"),
    "part": gettext_noop("part {n} is {verdict}"),
    "done": gettext_noop("{n} of {all} questions answered."),
    "kept": gettext_noop("What you answer stays in this browser."),
    "forget": gettext_noop("Forget it"),
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
