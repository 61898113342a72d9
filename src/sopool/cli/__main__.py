"""``python -m sopool.cli``, for where the command is not on the path."""

from sopool.cli import main

if __name__ == "__main__":  # workers import this file under another name
    main()
