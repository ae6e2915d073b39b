"""What each rule finds, why that is wrong, an example, the way out: texts by code.

A rule whose function has a docstring of its own in this form needs none here. `registry.explain` takes a text
apart; the docs and `litbook rule` show it, and a test runs each example. An example without `def` stands in a
section; `Then:` is what the text has become since it was recorded.
"""

from __future__ import annotations

# What is found before anything runs: the lecture cannot run as it stands.
REFUSALS = {
    "unreadable": """
        A file of the lecture that cannot be opened.
        Why: what cannot be read cannot be run.
        Way out: mend its permissions, or take it out of the lecture's folder.
    """,
    "not-text": """
        A file that is no text in the encoding that it names.
        Why: Python could not read it either.
        Way out: save the file as UTF-8.
    """,
    "no-name": """
        A lecture whose file or folder has no plain name.
        Why: the name becomes that of pages, recordings, and of a module that Python imports.
        Way out: call it by letters, digits and _ alone.
    """,
    "no-init": """
        A lecture that is a folder without `__init__.py`.
        Why: its `main()` stands there.
        Way out: create the file, or name the one that has `main()` so.
    """,
    "syntax": """
        Text that is no Python.
        Why: nothing of the lecture can run.
        Example:
            total = (1 + 2
        Way out: as Python's own message says; where indentation is wrong, the line above is shown, too.
    """,
    "too-deep": """
        Statements that are nested deeper than Python can follow.
        Why: neither Python's compiler nor a reader gets to their end.
        Way out: take the inner ones out into functions.
    """,
    "no-main": """
        A lecture without a plain function `main()`.
        Why: `main()` is the table of contents; without it there are no sections.
        Example:
            def one() -> None:
                pass
        Way out: write `def main() -> None:`, and call the sections there.
    """,
    "unknown-directive": """
        A comment that begins as a directive and names none.
        Why: what the author wanted shown would be missing without a word.
        Example:
            total = 3  # @inspct total
        Way out: the nearest name stands in the message.
    """,
    "bad-directive": """
        A directive that says too much, too little, or stands where it means nothing.
        Why: it would do nothing without a word.
        Example:
            total = 3  # @hide total
        Way out: `litbook rule` does not know what was meant; the message gives the form.
    """,
    "homeless-directive": """
        A directive on a line that is no statement.
        Why: it belongs to nothing, and would do nothing.
        Example:
            # @inspect total
            total = 3
        Way out: put it at the end of the statement that it is about.
    """,
    "bad-expression": """
        An expression of `@inspect`, `@measure` or `@clear` that does not parse, or cannot stand there.
        Why: there would be no value to show.
        Example:
            total = 3  # @inspect total +
        Way out: write Python expressions, separated by commas, each with an optional `as UNIT`.
    """,
    "extra-module": """
        A name in `__beside__` that is no module beside the lecture, or is one that it cannot have.
        Why: its text would be missing on the pages.
        Example:
            __beside__ = ("nowhere",)

            def main() -> None:
                pass
        Way out: name modules that stand beside the lecture.
    """,
    "circular-import": """
        Files of a lecture that import each other in a circle.
        Why: which of them is ready first depends on who asks.
        Way out: move what they need of each other into a file of its own.
    """,
    "no-section": """
        A call that looks like a section's, of a function that cannot be one.
        Why: the claims of that function would not count, and nobody would be told.
        Example:
            def main() -> None:
                one(3)
                two()

            def two() -> None:
                one(3)
                three()

            async def three() -> None:
                assert 1 + 1 == 2

            def one(n) -> None:
                pass
        Way out: a section is a plain function without parameters, at the left margin.
    """,
    "no-claim": """
        An assert or an annotation that looks like a claim and can claim nothing.
        Why: readers would take it for one.
        Example:
            total = 3
            assert (total == 4, "four")
        Way out: claim something that can be false; the message says which part cannot.
    """,
    "bad-mark": """
        `@requires` or `@aside` with brackets too many or too few.
        Why: the section would not be marked.
        Example:
            from litbook import aside

            def main() -> None:
                one()

            @aside()
            def one() -> None:
                pass
        Way out: write `@aside`, and `@requires("cuda")`.
    """,
    "unknown-need": """
        `@requires` of something that no machine is known to have.
        Why: the section would wait for ever, or run where it must not.
        Example:
            from litbook import requires

            def main() -> None:
                one()

            @requires("quantum")
            def one() -> None:
                pass
        Way out: name a device of the table, `linux`, `ranks=4` or `slow`, in one mark and as a text.
    """,
    "no-aside": """
        `@aside` on what is no section, or has a page of its own.
        Why: there is nothing to fold.
        Example:
            from litbook import aside

            def main() -> None:
                helper(1)

            @aside
            def helper(n) -> None:
                pass
        Way out: mark the sections that it calls, or take the mark away.
    """,
    "replaced": """
        A function of which a later one, or an import, takes the name.
        Why: the first one never runs, and its claims say nothing.
        Example:
            def main() -> None:
                one()

            def one() -> None:
                assert 1 + 1 == 3

            def one() -> None:
                assert 1 + 1 == 2
        Way out: give one of them another name.
    """,
    "namesake": """
        A module beside the lecture that has the name of one of Python's or of a library that runs it.
        Why: which of both an import finds depends on what has been imported before.
        Way out: give yours another name.
    """,
}

# What no page can show of a lecture's prose, and what cites or links to nothing.
PROSE = {
    "broken-link": """
        A link to a section, helper or line that no page shows.
        Why: it would lead nowhere.
        Example:
            note("See [the other one](#nowhere).")
        Way out: link to what the lecture defines, without @hide.
    """,
    "bad-link": """
        A link that no note can have.
        Why: only addresses of the web, mail and of sections work on every page.
        Example:
            note("See [the file](../notes.txt).")
        Way out: use https://… or #section.
    """,
    "unknown-citation": """
        A citation of a work that the bibliography does not have.
        Why: the sentence claims a source that nobody can look up.
        Example:
            note("This is known [@nobody2020].")
        Way out: add the work to the bibliography.
    """,
    "unknown-name": """
        A reference to a figure, table or equation that has no such name.
        Why: it would point at nothing.
        Example:
            note("See [@fig:nothing].")
        Way out: begin the caption with the name: `[@fig:rate]: …`.
    """,
    "bad-math": r"""
        LaTeX that cannot be drawn.
        Why: readers would see its source.
        Example:
            note(r"The rate is $\\frac{1$.")
        Way out: write it in other words, or cut it into several formulas.
    """,
    "twice": """
        One name for two figures, tables or equations.
        Why: a reference would lead to either.
        Example:
            note("[@eq:one]: $$x = 1$$")
            note("[@eq:one]: $$y = 2$$")
        Way out: give each its own.
    """,
    "no-alt": """
        A picture without words for who cannot see it.
        Why: for them it is not there.
        Way out: say what it shows in a sentence.
    """,
    "bad-picture": """
        A picture that cannot be shown.
        Why: its place would be empty, or run a script.
        Way out: draw it anew, as SVG, PNG or JPEG.
    """,
    "no-notebook": """
        A lecture of which no notebook can be made.
        Why: its page would offer one.
        Way out: as the message says; or `notebooks: false` below litbook, in mkdocs.yml.
    """,
}

# A note that is refused, by the code of its kind: see `markdown.refusals`.
REFUSED_NOTES = {
    "long-note": 'note("word " * 500_000)',
    "deep-note": 'note("> " * 500 + "x")',
    "picture-in-note": 'note("![a plot](plot.png)")',
    "foreign-formula": r'note(r"The rate is \(x\).")',
    "caption-without-table": 'note("[@tab:sizes]: Sizes.")',
    "fence-words": 'note("```{python} one\\nx = 1\\n```")',
    "open-fence": 'note("```python\\nx = 1")',
    "uneven-table": 'note("| a | b |\\n|---|\\n| 1 | 2 |")',
    "empty-box": """note('!!! note "Title"')""",
    "html-in-note": 'note("<div>a box</div>")',
    "footnote-in-note": 'note("It stalls[^why].")',
    "unreadable-box": "note('!!! note Title')",
    "tab-in-note": """note('=== "CPU"')""",
    "definition-in-note": 'note("Exponent\\n: how large")',
    "task-in-note": 'note("- [x] measured")',
    "foreign-block": 'note(":::: warning")',
    "attribute-in-note": 'note("A word {.red} in a text.")',
    "marked-text": 'note("A ==marked== word.")',
    "raised-text": 'note("x^2^")',
    "icon-in-note": 'note("Well done :rocket: today.")',
    "link-without-address": 'note("See [the text][there].")',
    "citation-with-place": 'note("This is known [@known, page two].")',
    "open-display": 'note("$$ x = y")',
    "open-formula": r'note(r"The rate is $\alpha x.")',
}
BROKEN_PROSE = """
Why: readers would see the marks, or another text than was meant.
Example:
    {example}
Way out: {way_out}.
"""
TEXTS = {
    **REFUSALS,
    **PROSE,
    "overlooked": """
        A file or folder that looks like a lecture and is none.
        Why: nobody runs it, and its claims say nothing.
        Way out: the message gives the name that it needs; what begins with _ is left alone.
    """,
    "unreadable-recording": """
        A recording that cannot be read: cut short, edited by hand, or of another schema.
        Why: what it says of another device would be missing without a word.
        Way out: record anew, or take the file out of the history.
    """,
    "differs": """
        A value or claim that is not what was recorded.
        Why: another machine, another release or another text gives another number, and somebody should know.
        Example:
            def main() -> None:
                one()

            def one() -> None:
                total = value()  # @inspect total

            def value() -> int:
                return 3
        Then:
            def main() -> None:
                one()

            def one() -> None:
                total = value()  # @inspect total

            def value() -> int:
                return 4
        Way out: where the new value is right, `litbook record LECTURE --approve`.
    """,
    "older": """
        Sections of which something has changed since they were recorded.
        Why: their recording no longer stands for them.
        Way out: record anew; or let them wait: `rules: {older: warn}`.
    """,
    "claim-fails": """
        A claim that is false.
        Why: the page would promise what the run refutes.
        Example:
            total = 2 + 2
            assert total == 5, "Two and two are five."
        Way out: correct the claim, or what it is about; both sides stand in the message. Where failing is the
            point, `# @allow claim-fails: why`.
    """,
    "raised": """
        An exception in a section, or in an expression that is to be shown.
        Why: what stands behind it never ran.
        Example:
            rate = 1 / 0
        Way out: mend the line; catch the exception where it is what the section shows.
    """,
    "recorded-failure": """
        A claim that fails in a recording.
        Why: no run leaves such a recording; somebody edited it, or two were merged.
        Way out: record anew.
    """,
    "large-picture": """
        A picture that takes long to load.
        Why: every reader loads it.
        Way out: fewer pixels, JPEG or WebP.
    """,
    "shown-nowhere": """
        An expression alone on its line: a notebook would show its value, and a page does not.
        Why: its author expects readers to see it.
        Example:
            total = 3
            total
        Way out: show it: # @inspect total.
    """,
    "uncalled": """
        A function with prose that nothing calls.
        Why: no page shows it.
        Example:
            from litbook import note

            def main() -> None:
                pass

            def one() -> None:
                note("Nobody reads this.")
        Way out: call it in main() or a part, or take it out.
    """,
    "bibliography": """
        A bibliography that cannot be read.
        Why: no citation can be checked.
        Way out: mend the entry that the message names.
    """,
    "never-ran": """
        A claim, an assert or an `@inspect` that no run reaches.
        Why: it promises what nobody has seen, and no known device will ever see it.
        Example:
            total = 3
            if total > 3:
                assert total == 4, "four"
        Way out: let a run reach it, mark its section @requires(…), or take it out.
    """,
    "waits": """
        A claim that has run nowhere yet, because its section needs a device that is not here.
        Why: it is nobody's fault, but a promise all the same.
        Way out: record the lecture where there is one.
    """,
    "vacuous": """
        A claim that holds and says nothing: 0 == 0, empty against empty, x == x.
        Why: it would hold if what it is about were wrong, or not there at all.
        Example:
            lost = [n for n in range(9) if n > 9]
            assert len(lost) == 0, "None is lost."
        Way out: claim also that there was something to see; where zero is the point, say so:
            `# @allow vacuous: why`.
    """,
    "unbacked": """
        A number in prose that is neither computed nor cited.
        Why: it was typed, and nothing notices when it becomes wrong.
        Example:
            note("The model has 70 billion parameters.")
        Way out: compute it in an f-string's {…}, cite its source with [@key], or say it without the number.
    """,
    "forgotten-f": """
        A name in braces that is shown as it stands, because the string has no f.
        Why: readers would see the braces.
        Example:
            total = 3
            note("The total is {total}.")
        Way out: put f before the quotation mark, or backticks around the braces.
    """,
    "unchecked": """
        A question whose answer is computed in one way only.
        Why: an author who errs there is told by nobody.
        Example:
            question("How much is two and two?", answer=2 + 2)
        Way out: compute it a second way, check=…: by a count, a counter, a published number.
    """,
    "unbounded": """
        A measured value that no claim reads.
        Why: whatever it comes to, the book builds.
        Example:
            import time
            seconds = time.perf_counter()  # @measure seconds as s
        Way out: claim what it may be, from both sides where that can be told.
    """,
    "unknown-allow": """
        `# @allow` with a code that no rule has.
        Why: it excuses nothing.
        Example:
            total = 3  # @allow unbaked: a typing error
        Way out: the nearest code stands in the message; `litbook rule` lists all.
    """,
    "unused-allow": """
        `# @allow` where its rule finds nothing.
        Why: it would excuse the next mistake on these lines without a word.
        Example:
            total = 3  # @allow unbacked: there is no number here
        Way out: take it away.
    """,
}
