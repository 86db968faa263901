"""Makes the pictures of the dashboard in docs/pictures: `python -m tests.dashboard.pictures [FOLDER]`.

The same queues each time, in a window of the same size, by the clock of the day it is made. Needs Debian's chromium.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Literal, NamedTuple

from playwright.sync_api import Page, ViewportSize

from .browser.chromium import browsing
from .browser.site import serving
from .browser.world import filled

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
BYTES_MAX = 150_000


class Picture(NamedTuple):
    """One page. height: of the window, in px. press: a button that is pressed before."""

    name: str
    address: str
    scheme: Literal["light", "dark"]
    height: int
    press: str = ""


PICTURES = (
    Picture(
        "sessions", "#/spaces/demo/queues/chat/sessions", "light", 440
    ),  # first, while one still backs off
    Picture("space", "#/spaces/demo", "light", 520),
    Picture("letters", "#/spaces/demo/queues/orders/dead-letters", "dark", 700),
    Picture("replay", "#/spaces/demo/queues/orders/dead-letters", "light", 640, press="Replay all …"),
)
WIDTH = 1160


def ready(page: Page, picture: Picture) -> None:
    """Have the page as it is to be shown: drawn, and with the focus where nobody sees it."""
    page.goto(f"/ui{picture.address}")
    page.locator("main h1").wait_for()
    if picture.press:
        page.get_by_role("button", name=picture.press).click()
        page.get_by_role("dialog").wait_for()
    if "/queues/" not in picture.address:
        page.get_by_text("Live").wait_for()
    page.evaluate("document.activeElement.blur()")


def main(folder: Path) -> int:
    """Write them; 1 where one is larger than a page of documentation should load."""
    with tempfile.TemporaryDirectory() as data, serving(Path(data) / "data") as site, browsing() as browser:
        filled(site)
        for picture in PICTURES:
            size: ViewportSize = {"width": WIDTH, "height": picture.height}
            context = browser.new_context(base_url=site.url, viewport=size, color_scheme=picture.scheme)
            page = context.new_page()
            ready(page, picture)
            path = folder / f"dashboard-{picture.name}.png"
            page.screenshot(path=path, animations="disabled")
            context.close()
            length = path.stat().st_size
            print(f"{path.name}: {length / 1000:.0f} kB")
            if length > BYTES_MAX:
                print(f"{path}: more than {BYTES_MAX} bytes; make its window smaller", file=sys.stderr)
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER))
