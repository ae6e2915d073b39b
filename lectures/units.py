"""Units of bytes, work and time."""

KiB, MiB, GiB = 2**10, 2**20, 2**30
GB = 10**9
TERA = 10**12
MICRO = 1e-6
HOUR = 60 * 60
DAY = 24 * HOUR
