"""`make bench`: every benchmark of this folder, one after the other."""

import subprocess
import sys
from pathlib import Path

for script in sorted(Path(__file__).parent.glob("[a-z]*.py")):
    print(f"\n{script.name}", flush=True)
    subprocess.run([sys.executable, "-W", "ignore", str(script)], check=True)
