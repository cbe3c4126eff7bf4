"""``python -m bpk_lite``: the command `bpk`."""

from bpk_lite.cli import main

if __name__ == "__main__":
    main()
