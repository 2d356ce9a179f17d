"""Write what the engines' own argument parsers accept to data/engine_parsers/; tests then need no engine.

    python tools/snapshot_parsers.py /tmp/parsers

makes an environment of its own in that folder (about 3 GB), takes the two packages without what they depend on, and
builds each parser there on the CPU. Only names, choices and counts of values are kept, no text of the packages.
"""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

OUT = Path(__file__).resolve().parent.parent / "data" / "engine_parsers"
TORCH = "torch==2.13.0"
# What the two packages import on the way to their parsers.
NEEDS = """aiohttp anthropic blake3 cachetools cbor2 cloudpickle compressed-tensors depyf diskcache einops fastapi gguf
ipython lark llguidance mistral_common msgspec numpy openai openai-harmony orjson partial-json-parser pillow
prometheus-client prometheus-fastapi-instrumentator psutil py-cpuinfo pybase64 pydantic python-multipart pyyaml pyzmq
regex requests sentencepiece setproctitle tiktoken transformers uvicorn uvloop watchfiles xgrammar""".split()
PARSERS = {
    "vllm-0.33.0": """
from vllm.entrypoints.common.cli_args import make_arg_parser
from vllm.utils.argparse_utils import FlexibleArgumentParser
parser = make_arg_parser(FlexibleArgumentParser())
from typing import get_args
from vllm import envs
from vllm.config.cache import CacheDType
from vllm.config.parallel import DistributedExecutorBackend
from vllm.model_executor.model_loader import LoadFormats
from vllm.reasoning import ReasoningParserManager
from vllm.tool_parsers import ToolParserManager
from vllm.v1.attention.backends.registry import AttentionBackendEnum
late = {"--attention-backend": AttentionBackendEnum.__members__, "--kv-cache-dtype": get_args(CacheDType),
        "--distributed-executor-backend": get_args(DistributedExecutorBackend), "--load-format": get_args(LoadFormats),
        "--reasoning-parser": ReasoningParserManager.list_registered(),
        "--tool-call-parser": ToolParserManager.list_registered()}
variables = envs.environment_variables
""",
    "sglang-0.5.23": """
import argparse
from sglang.srt.server_args import ServerArgs
parser = argparse.ArgumentParser()
ServerArgs.add_cli_args(parser)
late = {}
import re, sglang
from pathlib import Path
variables = {name for path in Path(sglang.__path__[0]).rglob("*.py")
             for name in re.findall(r"SGLANG_[A-Z0-9_]+", path.read_text(encoding="utf-8"))}
""",
}
# One entry an option, under its first name: the others, what it takes, the kind of value, the legal choices, those that
# the package checks only after it has parsed (late_choices); and the names of the variables that it reads.
DUMP = """
import json, sys
table = {}
accepted = parser._option_string_actions
for action in parser._actions:
    names = [n for n in action.option_strings if n.startswith("--")] or list(action.option_strings)
    if not names or "--help" in names:
        continue
    takes = action.nargs if action.nargs in ("?", "*", "+") else "none" if action.nargs == 0 else "one"
    entry = {"takes": takes, "also": sorted(n for n, a in accepted.items() if a is action and n != names[0])}
    if getattr(action.type, "__name__", "") in ("int", "float"):
        entry["kind"] = action.type.__name__
    if action.choices is not None:
        entry["choices"] = sorted(str(c) for c in action.choices)
    if names[0] in late:
        entry["late_choices"] = sorted(late[names[0]])
    table[names[0]] = {k: v for k, v in entry.items() if v}
sys.stdout.write("\\n" + json.dumps({"options": table, "variables": sorted(variables)}))
"""


def main(folder: Path) -> None:
    """Make the environment, build the parsers, write one file each."""
    python = folder / "venv" / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", TORCH, *NEEDS], check=True)
    for name, build in PARSERS.items():
        engine, version = name.rsplit("-", 1)
        wheels, unpacked = folder / "wheels", folder / name
        if not unpacked.exists():
            subprocess.run([python, "-m", "pip", "download", "--quiet", "--no-deps", f"{engine}=={version}",
                            "--dest", str(wheels)], check=True)  # fmt: skip
            with zipfile.ZipFile(next(wheels.glob(f"{name}-*.whl"))) as wheel:
                wheel.extractall(unpacked, [m for m in wheel.namelist() if not m.endswith(".so")])
        environment = {**os.environ, "PYTHONPATH": str(unpacked), "VLLM_TARGET_DEVICE": "cpu"}
        said = subprocess.run([python, "-c", build + DUMP], env=environment, check=True, capture_output=True, text=True)
        head = {"engine": engine, "version": version, "made_by": "tools/snapshot_parsers.py: the package's own parser",
                **json.loads(said.stdout.splitlines()[-1])}  # fmt: skip
        OUT.mkdir(exist_ok=True)
        (OUT / f"{name}.json").write_text(json.dumps(head, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
