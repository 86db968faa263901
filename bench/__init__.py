"""What does it cost? One question a module; `python -m bench` asks them all, `bench.main.run` does for others."""
