"""Install what the tests need beyond Python packages: Chromium, fonts, LibreOffice. Fails where they cannot be had."""

import os
import shutil
import subprocess
import sys

PACKAGES = {"chromium": "chromium", "fc-list": "fontconfig", "soffice": "libreoffice-calc"}
FONTS = ("fonts-dejavu-core", "fonts-noto-cjk")


def missing() -> list[str]:
    """Debian packages whose command is not on the machine."""
    return [package for command, package in PACKAGES.items() if not shutil.which(command)]


def main() -> None:
    """Install with apt where there is a right to; otherwise say what to install."""
    wanted = missing()
    if not wanted:
        return
    hint = f"the tests need {', '.join(wanted)}: install them, e.g. apt-get install {' '.join((*wanted, *FONTS))}"
    if not shutil.which("apt-get") or os.geteuid() != 0:
        sys.exit(f"system_packages: {hint}")
    apt = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (
        ["apt-get", "update", "-qq"],
        ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *wanted, *FONTS],
    ):
        if subprocess.run(command, env=apt, stdout=subprocess.DEVNULL, check=False).returncode:
            sys.exit(f"system_packages: '{' '.join(command)}' failed; {hint}")
    if missing():
        sys.exit(f"system_packages: {hint}")


if __name__ == "__main__":
    main()
