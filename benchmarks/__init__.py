"""How fast the engine is, beside plain Python, edtrace and nbconvert: `make bench`.

Ratios are formed within one round of one run, in which every contestant takes its turn, so that a machine
that slows down slows all of them. What is reported is the median of the rounds, and the quartiles.
"""
