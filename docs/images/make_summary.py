"""Draws the picture of the README from a run directory: python docs/images/make_summary.py RUN SECONDS"""

import io
import re
import sys
from pathlib import Path

from rich.console import Console

from opsuite.reports.terminal import print_summary
from opsuite.results.store import RECORDS, load_plan, load_records

run, seconds = Path(sys.argv[1]), float(sys.argv[2])
console = Console(record=True, width=118, file=io.StringIO(), force_terminal=True, color_system="truecolor")
print_summary(console, load_plan(run), load_records(run / RECORDS).records, "opsuite-runs/latest", seconds)
picture = console.export_svg(title="opsuite run executorch:operators")
# rich's own fonts are fetched from elsewhere; any monospace font will do.
picture = re.sub(r"@font-face \{.*?\}", "", picture, flags=re.DOTALL)
Path(__file__).with_name("summary.svg").write_text(picture, "utf-8")
