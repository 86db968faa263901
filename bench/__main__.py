"""What does it cost, asked from a shell: `python -m bench --help`."""

from bench.main import main

main()
