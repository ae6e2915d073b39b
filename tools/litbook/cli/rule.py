"""`litbook rule`: what a rule finds, why that is wrong, an example and the way out."""

from __future__ import annotations

import click

from litbook.cli.output import say


def _codes(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    """For a shell, what a code may become."""
    from litbook.rules.registry import all_rules

    return [code for code in all_rules() if code.startswith(begun)]


@click.command()
@click.argument("code", required=False, shell_complete=_codes)
def rule(code: str | None) -> int:
    """Explain what a rule finds; without CODE, list all rules."""
    from litbook.rules.registry import all_rules, find_rule

    if code is None:
        rules = list(all_rules().values())
        width = max(len(one.code) for one in rules)
        say("\n".join(f"{one.code:{width}}  {one.severity:5}  {one.summary}" for one in rules))
        return 0
    one = find_rule(code)
    told, fixed = one.explanation, ", which no severity changes" if one.refuses else ""
    parts = [f"{one.code} ({one.severity}{fixed})", told.what, f"Why: {told.why}"]
    for title, text in (("Example", told.example), ("Later", told.then)):
        if text:
            parts.append(f"{title}:\n" + "\n".join(f"    {line}".rstrip() for line in text.split("\n")))
    say("\n\n".join([*parts, f"Way out: {told.way_out}"]))
    return 0
