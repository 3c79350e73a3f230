from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import tiktoken
from tokenizers import AddedToken
from tokenizers import Tokenizer as HuggingFaceTokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit

from gniah.generator.tokenizers import FileTokenizer, TiktokenTokenizer, load_tokenizers, request_counts
from gniah.records.errors import InputError, UsageFault

RANKS = "fb374d419588a4632f3f557e76b4b70aebbca790"
RANKS_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"

TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}<|turn|> {{ message['role'] }} {{ message['content'] }} <|end|>"
    "{% endfor %}{% if add_generation_prompt %}<|turn|> assistant{% endif %}"
)


# --- tiktoken ---------------------------------------------------------------------------------------------------


def test_o200k_base_counts_what_tiktoken_counts() -> None:
    ours = TiktokenTokenizer("o200k_base", "gpt")
    theirs = tiktoken.get_encoding("o200k_base")
    for text in ("", "hello world", "Ein längerer Satz.\n\n\tmit العربية und 漢字 🙂", "a" * 1000):
        assert ours.count(text) == len(theirs.encode(text))
    assert (ours.name, ours.label) == ("tiktoken:o200k_base", "gpt")


def test_a_special_token_in_a_text_is_plain_text() -> None:
    tokenizer = TiktokenTokenizer("o200k_base", "o")
    assert tokenizer.count("<|endoftext|>") > 1
    assert tokenizer.count("<|endoftext|>") == len(
        tiktoken.get_encoding("o200k_base").encode("<|endoftext|>", disallowed_special=())
    )


def test_a_request_has_three_tokens_a_message_and_three_more() -> None:
    tokenizer = TiktokenTokenizer("o200k_base", "o")
    assert tokenizer.count_request("", "") == 9
    assert (
        tokenizer.count_request("You are.", "Who am I?")
        == tokenizer.count("You are.") + tokenizer.count("Who am I?") + 9
    )
    assert request_counts([tokenizer], "", "") == {"o": 9}


COUNT = (
    "from gniah.generator.tokenizers import TiktokenTokenizer as T; print(T('o200k_base', 'o').count('hello world'))"
)


def counted_elsewhere(cache: Path) -> subprocess.CompletedProcess[str]:
    """Count in a process of its own, whose network leads nowhere."""
    nowhere = "http://127.0.0.1:9"
    environment = {**os.environ, "TIKTOKEN_CACHE_DIR": str(cache), "HTTPS_PROXY": nowhere, "https_proxy": nowhere}
    return subprocess.run([sys.executable, "-c", COUNT], check=False, capture_output=True, text=True, env=environment)


def test_the_ranks_come_from_a_package_when_the_cache_is_empty(tmp_path: Path) -> None:
    done = counted_elsewhere(tmp_path / "cache")
    assert (done.stdout, done.returncode) == ("2\n", 0), done.stderr
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [RANKS]
    assert hashlib.sha256((tmp_path / "cache" / RANKS).read_bytes()).hexdigest() == RANKS_SHA256


def test_a_corrupt_file_in_the_cache_is_replaced(tmp_path: Path) -> None:
    (tmp_path / RANKS).write_bytes(b"IQ== 0\n")
    done = counted_elsewhere(tmp_path)
    assert (done.stdout, done.returncode) == ("2\n", 0), done.stderr
    assert hashlib.sha256((tmp_path / RANKS).read_bytes()).hexdigest() == RANKS_SHA256


def test_an_unknown_encoding_is_refused() -> None:
    with pytest.raises(UsageFault, match=r"tiktoken has no encoding 'o300k_base'; it has .*o200k_base"):
        TiktokenTokenizer("o300k_base", "o")


# --- tokenizer.json ---------------------------------------------------------------------------------------------


def tokenizer_file(folder: Path, template: str | None = TEMPLATE, jinja: str | None = None) -> Path:
    """Write a tokenizer of one token a word, with three special ones, and a chat template beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    words = ["[UNK]", "<s>", "system", "user", "assistant", "alpha", "beta"]
    made = HuggingFaceTokenizer(WordLevel({word: number for number, word in enumerate(words)}, unk_token="[UNK]"))
    made.pre_tokenizer = WhitespaceSplit()
    made.add_special_tokens([AddedToken(text, special=True) for text in ("<s>", "<|turn|>", "<|end|>")])
    made.save(str(folder / "tokenizer.json"))
    config: dict[str, object] = {"bos_token": {"content": "<s>"}, "eos_token": "<|end|>"}
    if template is not None:
        config["chat_template"] = template
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    if jinja is not None:
        (folder / "chat_template.jinja").write_text(jinja, encoding="utf-8")
    return folder / "tokenizer.json"


def test_special_tokens_count_once_in_the_template_and_as_plain_text_in_a_message(tmp_path: Path) -> None:
    tokenizer = FileTokenizer(tokenizer_file(tmp_path), "toy")
    assert tokenizer.count("alpha beta gamma") == 3
    # <s>, then <|turn|> system … <|end|>, <|turn|> user … <|end|>, <|turn|> assistant
    assert tokenizer.count_request("", "") == 1 + 3 + 3 + 2
    assert tokenizer.count_request("alpha", "alpha beta") == 9 + 3
    # Glued to a word, the text of a special token is no cut: one word, one token.
    assert tokenizer.count("alpha<|end|>beta") == 1
    assert tokenizer.count_request("", "alpha<|end|>beta") == 9 + 1
    assert tokenizer.count("alpha<|end|>beta") == 1


def test_without_a_template_a_request_is_its_two_texts(tmp_path: Path) -> None:
    tokenizer = FileTokenizer(tokenizer_file(tmp_path, template=None), "toy")
    assert tokenizer.count_request("alpha", "alpha beta") == 3


def test_a_template_file_goes_before_the_one_in_the_config(tmp_path: Path) -> None:
    path = tokenizer_file(tmp_path, jinja="{% for m in messages %}{{ m.content }} <|end|>{% endfor %}")
    assert FileTokenizer(path, "toy").count_request("alpha", "beta") == 4


def test_the_digest_covers_vocabulary_template_and_special_tokens_and_no_path(tmp_path: Path) -> None:
    one = FileTokenizer(tokenizer_file(tmp_path / "one"), "toy").digest
    assert FileTokenizer(tokenizer_file(tmp_path / "two"), "other").digest == one
    assert FileTokenizer(tokenizer_file(tmp_path / "three", template=TEMPLATE + " "), "toy").digest != one
    path = tokenizer_file(tmp_path / "four")
    path.write_bytes(path.read_bytes() + b"\n")
    assert FileTokenizer(path, "toy").digest != one
    path = tokenizer_file(tmp_path / "five")
    config = {"bos_token": "<|turn|>", "eos_token": "<|end|>", "chat_template": TEMPLATE}
    path.with_name("tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    assert FileTokenizer(path, "toy").digest != one


def test_a_bad_tokenizer_file_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such tokenizer file"):
        FileTokenizer(tmp_path / "tokenizer.json", "toy")
    (tmp_path / "tokenizer.json").write_text("{}", encoding="utf-8")
    with pytest.raises(InputError, match=r"tokenizer\.json: not a tokenizer file"):
        FileTokenizer(tmp_path / "tokenizer.json", "toy")


# --- names ------------------------------------------------------------------------------------------------------


def test_tokenizers_are_sorted_by_label_and_named_by_their_folder(tmp_path: Path) -> None:
    path = tokenizer_file(tmp_path / "zeta")
    found = load_tokenizers([f"file:{path}", "gpt-5.4=tiktoken:o200k_base", "tiktoken:o200k_base"])
    assert [tokenizer.label for tokenizer in found] == ["gpt-5.4", "o200k_base", "zeta"]
    assert found[2].name == "file:tokenizer.json"


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], "at least one tokenizer is needed"),
        (["o200k_base"], "'o200k_base' does not name a tokenizer"),
        (["hf:some/model"], "'hf:some/model' does not name a tokenizer"),
        (["tiktoken:o200k_base", "tiktoken:o200k_base"], "two tokenizers have the label 'o200k_base'"),
    ],
)
def test_names_that_say_nothing_are_refused(names: list[str], message: str) -> None:
    with pytest.raises(UsageFault, match=message):
        load_tokenizers(names)
