"""The pages on campaigns, detection, near duplicates and segmentation: what they show is what happens."""

import re
import shlex
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)


@pytest.mark.slow
@pytest.mark.parametrize("page", ["campaigns", "detection", "duplicates", "segmentation", "studies"])
def test_the_blocks_of_a_page_run_in_order(page, cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    blocks = BLOCK.findall((DOCS / f"{page}.md").read_text(encoding="utf-8"))
    kinds = [kind for kind, _ in blocks]
    assert {"python", "console"} <= set(kinds)
    for kind, text in blocks:
        if kind == "python":
            exec(compile(text, f"{page}.md", "exec"), names)
            continue
        for line in text.splitlines():
            prompt, command, *arguments = shlex.split(line)
            assert (prompt, command) == ("$", "softgold")
            answer = cli(*arguments)
            assert answer.code == 0, f"{line}: {answer.err}"
