"""`python -m gind` is the command line."""

from gind.cli import main

if __name__ == "__main__":
    main()
