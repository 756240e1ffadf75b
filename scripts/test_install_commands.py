"""Pages install the package in one way, from the folder of a checkout, so that any command can be copied."""

import re

from test_links import ROOT, pages

COMMAND = re.compile(r"pip install\s+([^`\n]*?keywright[^`\s]*|'?\.[^`\s]*)")

FROM_CHECKOUT = re.compile(r"\./keywright|'\./keywright\[[a-z,]+\]'")

ELSEWHERE = {
    "docs/how-to/install.md": {
        "'keywright[serve,storage]'",  # adds extras to an installed package
        "target/packages/files/keywright-*-manylinux_2_28_x86_64.whl",
    }
}
"""What a page installs in another way."""


def test_pages_install_the_package_in_one_way() -> None:
    texts = {
        name: (ROOT / name).read_text(encoding="utf-8")
        for name in pages()
        if not name.startswith(("benchmarks/record/", "CHANGELOG"))
    }
    installed = [(name, what) for name, text in texts.items() for what in COMMAND.findall(text)]
    assert len(installed) > 10
    assert not [
        (name, what)
        for name, what in installed
        if not FROM_CHECKOUT.fullmatch(what) and what not in ELSEWHERE.get(name, ())
    ]
