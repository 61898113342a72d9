"""``python -m sopool`` is ``sopool``."""

from sopool.cli import main

if __name__ == "__main__":
    main()
