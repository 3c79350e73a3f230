"""Small examples made by hand, in the structure of real prompts but in toy words."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gniah.records.examples import Example, Option
from gniah.records.files import json_line
from gniah.records.responses import Request, Response

TASKS = {
    "yes-no": ("reachability-yesno", "REACHABILITY_YESNO"),
    "multiple-choice": ("reachability-multiple", "REACHABILITY_MULTIPLE"),
    "counting": ("reachability-counting", "REACHABILITY_COUNTING"),
}
QUESTIONS = {
    "yes-no": 'Can one get from the paper "How many shots" to the paper "Beta {n}"?',
    "multiple-choice": 'Which can one get to from the paper "How many shots {n}"?\n\n{options}',
    "counting": 'From the paper "Alpha {n}", how many papers can one get to?',
}


def example(
    task: str = "yes-no",
    answer: str = "YES",
    number: int = 0,
    letters: str = "ABCD",
    config: Mapping[str, object] | None = None,
    token_counts: Mapping[str, int] | None = None,
) -> Example:
    question_type, answer_type = TASKS[task]
    options = tuple(Option(letter, f"Paper {letter}") for letter in letters) if task == "multiple-choice" else None
    lines = "\n".join(f'{option.label}. Paper "{option.text}"' for option in options or ())
    question = QUESTIONS[task].format(n=number, options=lines)
    return Example(
        qid=f"qid-{number}",
        task=task,
        system_prompt="Read the text.",
        user_prompt=f"# Question\n\n{question}\n\n# Context\n\nTitle: X.\n\n# Response Format\n\nEnd so.",
        question=question,
        answer=answer,
        question_type=question_type,
        answer_type=answer_type,
        options=options,
        config={
            "question_depth": 4 if number % 2 else 16,
            "component_node_count": 100 + number,
            "distractor_type": "disjoint-tree",
            "context_length": 200000,
        }
        if config is None
        else config,
        token_counts=token_counts or {},
        generator_version="toy",
    )


def mixed(count: int) -> list[Example]:
    kinds = [("yes-no", "NO"), ("multiple-choice", "A"), ("counting", "99")]
    return [example(*kinds[number % 3], number=number) for number in range(count)]


def response(to: Example, text: str = r"\answer{YES}", **changes: object) -> Response:
    model, parameters = str(changes.pop("model", "toy")), changes.pop("parameters", {})
    repeat = changes.pop("repeat", 0)
    assert isinstance(parameters, dict) and isinstance(repeat, int)
    request = Request(to.qid, model, to.system_prompt, to.user_prompt, parameters=parameters, repeat=repeat)
    values: dict[str, object] = {
        "key": request.key,
        "qid": to.qid,
        "model": model,
        "repeat": repeat,
        "prompt_sha256": request.prompt_sha256,
        "text": text,
        "parameters": parameters,
    }
    return Response(**{**values, **changes})  # type: ignore[arg-type]


def write_examples(folder: Path, examples: list[Example]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "examples.jsonl"
    path.write_bytes(b"".join(json_line(item.to_json()) for item in examples))
    return path
