"""Units of bytes, work and time, and the two one-byte formats."""
import torch

KiB, MiB, GiB = 2**10, 2**20, 2**30
GB = 10**9
TERA = 10**12
DAY = 24 * 60 * 60
E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2
