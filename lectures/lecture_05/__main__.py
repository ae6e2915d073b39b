"""Prints the lecture and checks its claims: `python -m lecture_05`."""
from . import main

if __name__ == "__main__":
    main()
