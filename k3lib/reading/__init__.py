"""What a user's own files say: benchmark results, engine logs and measured exchanges, recognised by their content."""

from k3lib.reading.recognise import read_files, recognise
from k3lib.reading.records import ExchangeReading, LogReading, OtherReading, Reading, RunReading, UnknownError
from k3lib.reading.rows import as_run, run_fields
from k3lib.reading.show import as_json, describe

__all__ = [
    "ExchangeReading",
    "LogReading",
    "OtherReading",
    "Reading",
    "RunReading",
    "UnknownError",
    "as_json",
    "as_run",
    "describe",
    "read_files",
    "recognise",
    "run_fields",
]
