"""Install what the tests need beyond Python: Chromium, fonts, LibreOffice, Poppler, promtool. Fails without them."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PACKAGES = {"chromium": "chromium", "fc-list": "fontconfig", "soffice": "libreoffice-calc", "pdfinfo": "poppler-utils"}
FONTS = ("fonts-dejavu-core", "fonts-noto-cjk")
# The package of promtool would also start a server, so only the one file is taken out of it.
PROMTOOL, PROMTOOL_PACKAGE = "promtool", "prometheus"
OWN_BIN = Path(sys.prefix) / "bin"
APT = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}


def missing() -> list[str]:
    """Debian packages whose command is not on the machine."""
    return [package for command, package in PACKAGES.items() if not shutil.which(command)]


def has_promtool() -> bool:
    """Whether the checker of Prometheus rules is on the machine or beside this Python."""
    return bool(shutil.which(PROMTOOL)) or os.access(OWN_BIN / PROMTOOL, os.X_OK)


def run(*command: str, hint: str, folder: str | None = None) -> None:
    """Run a step; stop with one line when it fails."""
    done = subprocess.run(command, env=APT, stdout=subprocess.DEVNULL, check=False, cwd=folder)
    if done.returncode:
        sys.exit(f"system_packages: '{' '.join(command)}' failed; {hint}")


def put_promtool(hint: str) -> None:
    """Take promtool out of its package and put it beside this Python."""
    with tempfile.TemporaryDirectory() as folder:
        run("apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root", PROMTOOL_PACKAGE, hint=hint, folder=folder)
        package = next(Path(folder).glob("*.deb"))
        run("dpkg-deb", "-x", str(package), f"{folder}/out", hint=hint)
        shutil.copy(Path(folder) / "out" / "usr" / "bin" / PROMTOOL, OWN_BIN)


def main() -> None:
    """Install with apt where there is a right to; otherwise say what to install."""
    wanted = missing()
    if not wanted and has_promtool():
        return
    names = [*wanted, *([] if has_promtool() else [PROMTOOL])]
    hint = (f"the tests need {', '.join(names)}: install them, e.g. apt-get install "
            f"{' '.join((*wanted, *FONTS, PROMTOOL_PACKAGE))}")  # fmt: skip
    if not shutil.which("apt-get") or os.geteuid() != 0:
        sys.exit(f"system_packages: {hint}")
    run("apt-get", "update", "-qq", hint=hint)
    if wanted:
        run("apt-get", "install", "-y", "-qq", "--no-install-recommends", *wanted, *FONTS, hint=hint)
    if not has_promtool():
        put_promtool(hint)
    if missing() or not has_promtool():
        sys.exit(f"system_packages: {hint}")


if __name__ == "__main__":
    main()
