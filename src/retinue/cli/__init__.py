"""The `retinue` command line. Translates between arguments and the service; contains no logic of its own.

`main.py` is the entry point and loads the module of a subcommand only when it is needed.
"""
