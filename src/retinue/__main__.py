"""`python -m retinue` is the `retinue` command."""

from retinue.cli.main import main

if __name__ == "__main__":
    main()
