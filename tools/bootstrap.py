"""Make `.venv` and install the locked packages into it. Needs Python 3.11 or newer and nothing else.

Two of these at once do not mix: the second waits and then finds the work done.
"""

import fcntl
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
READY = VENV / "ready"
NEEDS = [ROOT / name for name in ("requirements.lock", "pyproject.toml", "tools/bootstrap.py")]
OLDEST = (3, 11)


def up_to_date() -> bool:
    """Whether everything was installed after the last change of what is to be installed."""
    return READY.is_file() and all(READY.stat().st_mtime >= path.stat().st_mtime for path in NEEDS)


def run(*command: str) -> None:
    """Run a step; stop with one line when it fails."""
    done = subprocess.run(command, cwd=ROOT, check=False)
    if done.returncode:
        sys.exit(f"bootstrap: '{' '.join(command)}' failed with code {done.returncode}. Mend that and run make again.")


def main() -> None:
    """Install under a lock."""
    if sys.version_info < OLDEST:
        sys.exit(f"bootstrap: this is Python {sys.version.split()[0]}; 3.11 or newer is needed: make PYTHON=python3.11")
    with (ROOT / ".venv.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if up_to_date():
            return
        print("Installing the locked packages into .venv (about a minute, once) ...", file=sys.stderr)
        python = str(VENV / "bin" / "python")
        if not Path(python).exists():
            run(sys.executable, "-m", "venv", str(VENV))
        pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        run(*pip, "--require-hashes", "--requirement", "requirements.lock")
        run(*pip, "--no-deps", "--no-build-isolation", "--editable", ".")
        READY.touch()


if __name__ == "__main__":
    main()
