"""`python -m datum`: the command line."""

from datum.cli import main

__all__: list[str] = []

if __name__ == "__main__":
    main()
