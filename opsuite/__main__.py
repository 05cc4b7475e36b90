"""`python -m opsuite`."""

from opsuite.cli import main

if __name__ == "__main__":
    main()
