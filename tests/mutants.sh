#!/bin/sh
# Changes decision.py and quality.py in hundreds of small ways, and names the changes that no test of theirs notices.
# usage: tests/mutants.sh [FOLDER]    (a copy of the package goes there; settings: [tool.mutmut] in pyproject.toml)
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:-$(mktemp -d)}
mkdir -p "$folder"
cp -rL "$root/edge_road" "$root/tests" "$root/pyproject.toml" "$folder"
cd "$folder"
# mutmut 3.8 asks for a name that pytest 9 no longer has
printf '\n\ndef pytest_itemcollected(item):\n    item._nodeid = item.nodeid\n' >> tests/conftest.py
python=$root/.venv/bin/python
"$python" -m mutmut run --max-children "${EDGE_ROAD_MUTANTS_AT_ONCE:-1}"
"$python" -m mutmut results --all true | awk '{ count[$NF]++; total++ } END { for (how in count) print how, count[how]; print "total", total }'
"$python" -m mutmut results
echo "see one: cd $folder && $python -m mutmut show NAME"
