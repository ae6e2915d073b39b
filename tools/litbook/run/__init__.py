"""Running a lecture, the one impure package: a process, its device and its state -> a record."""
