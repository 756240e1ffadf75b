"""The page of a record."""
from pathlib import Path
PAGE = Path(); RECORD = Path()
def text(record: Path) -> str:
    return ""
