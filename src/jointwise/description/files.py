"""Reading robot descriptions: size limits, and the choice of reader by the file's ending."""

from __future__ import annotations

from pathlib import Path

from jointwise.description.robot import Robot
from jointwise.errors import DescriptionError

LARGEST_BYTES = 16 * 1024 * 1024
"""No robot description is larger; a larger file is a mistake."""
TABLE_ENDINGS = (".csv", ".txt")
URDF_ENDINGS = (".urdf", ".xml")


def read_text(path: Path) -> str:
    """Return the text of a description file, or one line that says why it cannot be read."""
    try:
        size = path.stat().st_size
        if size > LARGEST_BYTES:
            raise DescriptionError(
                f"{path}: {size} bytes is more than a robot description may have ({LARGEST_BYTES}). "
                "Is it the right file?"
            )
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as problem:
        raise DescriptionError(f"{path}: not a text file in UTF-8 (byte {problem.start}).") from None
    except FileNotFoundError:
        raise DescriptionError(f"{path}: no such file.") from None
    except OSError as problem:
        raise DescriptionError(f"{path}: cannot be read ({problem.strerror}).") from None


def load_robot(path: str | Path, *, convention: str | None = None, tip: str | None = None) -> Robot:
    """Return the robot of a description file: ``.toml``, ``.csv`` (DH/MDH table), ``.urdf`` or ``.xml`` (URDF).

    `convention` says how a table is to be read where the file does not (see `description.rows`); `tip` names the last
    link of the chain where a URDF branches.
    """
    file = Path(path)
    ending = file.suffix.lower()
    if tip is not None and ending not in URDF_ENDINGS:
        raise DescriptionError(f"{file}: a tip link can be chosen in a URDF only.")
    if convention is not None and ending not in TABLE_ENDINGS:
        raise DescriptionError(f"{file}: a convention can be given for a CSV table only; this file says its own.")
    if ending == ".toml":
        from jointwise.description.toml import robot_from_toml

        return robot_from_toml(read_text(file), str(file))
    if ending in TABLE_ENDINGS:
        from jointwise.description.table import robot_from_csv

        return robot_from_csv(read_text(file), str(file), convention)
    if ending in URDF_ENDINGS:
        from jointwise.description.urdf import robot_from_urdf

        return robot_from_urdf(read_text(file), str(file), tip)
    raise DescriptionError(
        f"{file}: a description must end in .toml, .csv, .txt, .urdf or .xml. Got '{ending}' instead."
    )
