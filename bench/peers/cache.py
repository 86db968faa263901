"""What do the peers need, and where is it kept? All in one folder, `.bench-peers`, which may be removed at any time.

A program that is installed already is taken as it is. Nothing is installed outside of the folder: packages of Debian
are fetched with `apt-get download` and unpacked there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.peers.process import Absent

FOLDER = Path(__file__).resolve().parents[2] / ".bench-peers"
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
WORKERD = "workerd@1.20261117.1"
FETCH_S = 900
PLACES = ("usr/lib/*/*/bin", "usr/lib/*/lib/*/sbin", "usr/local/bin", "usr/bin", "usr/sbin")


class Cache:
    """The folder, filled as it is asked for."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self.folder = folder
        self.debian = folder / "debian"

    def python(self) -> Path:
        """An interpreter with what requirements.txt names. Raises Absent."""
        python = self.folder / "venv" / "bin" / "python"
        stamp = self.folder / "venv" / "requirements.txt"
        wanted = REQUIREMENTS.read_text()
        if stamp.is_file() and stamp.read_text() == wanted:
            return python
        self._run([sys.executable, "-m", "venv", "--clear", str(self.folder / "venv")])
        self._run([str(python), "-m", "pip", "install", "--require-hashes", "-r", str(REQUIREMENTS)])
        stamp.write_text(wanted)
        return python

    def nats(self) -> Path:
        """The server that a package of Python carries. Raises Absent."""
        found = self.python().with_name("nats-server")
        if not found.is_file():
            raise Absent("its package has no server for this machine")
        return found

    def workerd(self) -> Path:
        """The program of npm's package. Raises Absent."""
        found = self._find("npm", f"**/@cloudflare/*/bin/{WORKERD.partition('@')[0]}")
        if found is None:
            if shutil.which("npm") is None:
                raise Absent("npm is not there")
            place = self.folder / "npm"
            place.mkdir(parents=True, exist_ok=True)
            (place / "package.json").write_text('{"private": true}')
            quiet = ["--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts"]
            self._run(["npm", "install", *quiet, WORKERD], place)
            found = self._find("npm", "**/@cloudflare/*/bin/workerd")
        if found is None:
            raise Absent("npm has no workerd for this machine")
        return found

    def program(self, name: str, package: str) -> Path:
        """A program of a package of Debian: the one that is installed, else one unpacked here. Raises Absent."""
        found = _below(Path("/"), name) or _below(self.debian, name)
        if found is None:
            self._unpack(package)
            found = _below(self.debian, name)
        if found is None:
            raise Absent(f"the package {package} has no {name}")
        return found

    def libraries(self) -> dict[str, str]:
        """The environment in which a program finds the libraries that were unpacked here."""
        folders = sorted({str(one.parent) for one in self.debian.glob("usr/lib/*/lib*.so.*")})
        before = os.environ.get("LD_LIBRARY_PATH")
        return {"LD_LIBRARY_PATH": ":".join([*folders, *([before] if before else [])])}

    def _unpack(self, package: str) -> None:
        """Fetch a package, and what it needs and is not installed, and unpack them here."""
        if shutil.which("apt-get") is None:
            raise Absent(f"{package} is not installed, and there is no apt-get to fetch it")
        simulated = self._run(["apt-get", "install", "--simulate", "--no-install-recommends", package])
        names = [line.split()[1] for line in simulated.splitlines() if line.startswith("Inst ")]
        place = self.folder / "debs" / package
        place.mkdir(parents=True, exist_ok=True)
        self._run(["apt-get", "download", *names], place)
        for each in sorted(place.glob("*.deb")):
            self._run(["dpkg", "-x", str(each), str(self.debian)])

    def _find(self, below: str, pattern: str) -> Path | None:
        files = (one for one in (self.folder / below).glob(pattern) if one.is_file())
        return next((one for one in files if os.access(one, os.X_OK)), None)

    def _run(self, command: Sequence[str], folder: Path | None = None) -> str:
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            ran = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, timeout=FETCH_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Absent(f"{command[0]}: {error}") from error
        if ran.returncode != 0:
            raise Absent(f"{' '.join(command[:2])} failed: {(ran.stderr or ran.stdout).strip()[-300:]}")
        return ran.stdout


def _below(root: Path, name: str) -> Path | None:
    """Where a program lies, wrappers for an operator's use last."""
    return next((one for place in PLACES for one in sorted(root.glob(f"{place}/{name}"))), None)
