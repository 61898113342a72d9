"""What ``--help`` says of each command, beside its options: its docstring, and examples, which the tests parse."""

import inspect
from collections.abc import Callable

EXAMPLES = {
    "demo": ["sopool demo"],
    "datasets": ["sopool datasets", "sopool datasets --root ~/graphs --json"],
    "inspect": ["sopool inspect MUTAG", "sopool inspect molecules.csv --label-column toxic"],
    "pools": ["sopool pools", "sopool pools --channels 64"],
    "fit": [
        "sopool fit MUTAG -o mutag.sopool",
        "sopool fit molecules.csv --label-column toxic --class-weight balanced -o toxic.sopool",
    ],
    "predict": [
        "sopool predict toxic.sopool new.csv -o predictions.csv",
        "cat graphs.jsonl | sopool predict model.sopool - --format jsonl",
    ],
    "explain": [
        "sopool explain mutag.sopool MUTAG --graph 7 -o page.html",
        "sopool explain toxic.sopool molecules.csv --graph 12 --format json -o -",
    ],
    "evaluate": [
        "sopool evaluate MUTAG --pool sopool-bimap,sum-avg --protocol fair,single-epoch",
        "sopool evaluate NCI1 --pool sopool-bimap,sum-avg --preset best",
        "sopool evaluate PROTEINS --pool sopool-m-attn,diffpool --blocks 3 --hidden 16,32 -o result.json",
    ],
    "reproduce": [
        "sopool reproduce table2 --dry-run",
        "sopool reproduce table2 --datasets MUTAG,PTC --pools sum-avg,sopool-bimap",
    ],
    "controls": ["sopool controls MUTAG", "sopool controls NCI1 --controls wl,size --json"],
    "report": ["sopool report runs -o report.html", "sopool report runs -o tables.tex"],
    "runs": ["sopool runs", "sopool runs --runs elsewhere --all"],
    "runs list": ["sopool runs list --all"],
    "runs compare": ["sopool runs compare 3fa9 77b2"],
    "runs clean": ["sopool runs clean --runs elsewhere"],
    "runs remove": ["sopool runs remove 3fa9 77b2"],
}
START = [
    "sopool demo",
    "sopool fit molecules.csv --label-column toxic -o toxic.sopool",
    "sopool evaluate MUTAG --pool sopool-bimap,sum-avg --protocol fair",
]
"""For the help of ``sopool`` itself."""


def epilog(lines: list[str]) -> str:
    """How examples stand at the end of a help text."""
    return "\n\n".join(["Examples:" if len(lines) > 1 else "Example:", *lines])


def prose(command: Callable[..., None]) -> str:
    """A command's docstring, each paragraph in one line: the terminal breaks it."""
    paragraphs = (inspect.getdoc(command) or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
