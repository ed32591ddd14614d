"""The commands of the program, a module for each."""

__all__: list[str] = []
