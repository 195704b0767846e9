"""Fetches the script that draws the figures of reports: a part of plotly.js, compressed, with its licence.

    python tools/bundle_plotly.py 4.1.1

It needs npm. The bundle is the cartesian one: it contains the traces that reports use (scatter, bar, contour) and is a
quarter of the whole library. Reports carry the compressed script; the browser unpacks it.
"""

from __future__ import annotations

import gzip
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

PACKAGE = "plotly.js-cartesian-dist-min"
ASSETS = Path(__file__).parents[1] / "src" / "jointwise" / "report" / "assets"


def main(version: str) -> None:
    """Write the bundle of a version and its licence."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["npm", "pack", f"{PACKAGE}@{version}"], cwd=folder, check=True)
        (archive,) = Path(folder).glob("*.tgz")
        with tarfile.open(archive) as package:
            for member, name in (("plotly-cartesian.min.js", "plotly.min.js.gz"), ("LICENSE", "plotly.LICENSE")):
                content = package.extractfile(f"package/{member}")
                assert content is not None
                data = content.read()
                (ASSETS / name).write_bytes(gzip.compress(data, 9, mtime=0) if name.endswith(".gz") else data)


if __name__ == "__main__":
    main(sys.argv[1])
