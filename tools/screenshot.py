"""Take the picture of the README: the first page of the book as it was last built. Needs Chromium and `make book`."""

import io
import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "_build" / "html" / "index.html"
PICTURE = ROOT / "docs" / "screenshot.png"
VIEW = {"width": 1400, "height": 900}
COLOURS = 64  # enough for text and a figure, and a quarter of the size


def main() -> None:
    """Write the picture; stop with one line when something is missing."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None or not PAGE.is_file():
        sys.exit("screenshot: needs Chromium on this machine and a built book: run 'make book' first")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
        page = opened.new_page(viewport=VIEW, color_scheme="light")
        page.goto(PAGE.as_uri())
        page.wait_for_timeout(500)
        picture = Image.open(io.BytesIO(page.screenshot()))
        opened.close()
    PICTURE.parent.mkdir(exist_ok=True)
    picture.convert("RGB").quantize(COLOURS).save(PICTURE, optimize=True)


if __name__ == "__main__":
    main()
