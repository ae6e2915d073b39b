"""How fast the engine is, beside plain Python, nbconvert, edtrace, lectrace and mkdocs-jupyter: `make bench`.

`stages` says what is measured, `goals.toml` what is wanted, `page` writes it down. Contestants take turns
within a round, and ratios are formed within one: a machine that slows down slows all of them.
"""
