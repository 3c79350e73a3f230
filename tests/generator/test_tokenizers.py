from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import jinja2
import pytest
import tiktoken
from tokenizer_files import like_qwen, real_tokenizer, without_proof
from tokenizers import AddedToken
from tokenizers import Tokenizer as HuggingFaceTokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit

from gniah.generator.tokenizers import (
    FileTokenizer,
    Frame,
    TiktokenTokenizer,
    load_tokenizers,
    request_counts,
    slow_tokenizers,
)
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


def test_without_a_template_a_request_is_its_two_texts_only_when_that_is_said(tmp_path: Path) -> None:
    path = tokenizer_file(tmp_path, template=None)
    with pytest.raises(UsageFault, match="has no chat template") as caught:
        FileTokenizer(path, "toy")
    assert "--chat-template [LABEL=]none" in str(caught.value.remedy)
    tokenizer = FileTokenizer(path, "toy", "none")
    assert tokenizer.count_request("alpha", "alpha beta") == 3
    assert tokenizer.frame("alpha") == Frame("", "", 1)
    # That there is none is part of the digest, even where a template stands beside the file.
    other = tokenizer_file(tmp_path / "other")
    assert FileTokenizer(other, "toy", "none").digest == tokenizer.digest != FileTokenizer(other, "toy").digest
    assert FileTokenizer(other, "toy", "none").text_digest == FileTokenizer(other, "toy").text_digest


def test_a_template_file_goes_before_the_one_in_the_config(tmp_path: Path) -> None:
    path = tokenizer_file(tmp_path, jinja="{% for m in messages %}{{ m.content }} <|end|>{% endfor %}")
    assert FileTokenizer(path, "toy").count_request("alpha", "beta") == 4


def test_a_template_that_is_given_goes_before_those_beside_the_file(tmp_path: Path) -> None:
    given = tmp_path / "mine.jinja"
    given.write_text("{% for m in messages %}{{ m.content }} <|end|>{% endfor %}", encoding="utf-8")
    assert FileTokenizer(tokenizer_file(tmp_path / "t"), "toy", str(given)).count_request("alpha", "beta") == 4
    with pytest.raises(InputError, match=r"no\.jinja: no such chat template"):
        FileTokenizer(tokenizer_file(tmp_path / "t"), "toy", str(tmp_path / "no.jinja"))


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ messages[1].content }}{{ messages[0].content }}", "does not show a system and a user message once each"),
        ("{% for m in messages %}{{ m.content | upper }}{% endfor %}", "does not show a system and a user message"),
        ("{% for m in messages %}{{ m.content | replace('Which', 'What') }} {% endfor %}", "changes the text"),
        ("{{ raise_exception('no system message') }}", "cannot be rendered: no system message"),
        ("{{ strftime_now('%d') }}", "asks for the time of day"),
        ("{% for m in messages %}", "cannot be rendered"),
        ("{{ messages.append(1) }}", "cannot be rendered"),
        ("{{ ''.__class__.__mro__ }}", "cannot be rendered"),
        ("{{ 1 // 0 }}", "cannot be rendered"),
    ],
)
def test_a_template_that_cannot_be_counted_by_is_refused(template: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        FileTokenizer(tokenizer_file(tmp_path, template), "toy")


def test_space_around_a_message_is_counted_as_the_template_treats_it(tmp_path: Path) -> None:
    trimming = "{% for m in messages %}<|turn|>{{ m.content | trim }}<|end|>{% endfor %}"
    kept = trimming.replace(" | trim", "")
    for template, more in ((trimming, 0), (kept, 1)):
        tokenizer = FileTokenizer(like_qwen(tmp_path / str(more), template=template), "toy")
        plain = tokenizer.count_request("a", "b")
        assert tokenizer.count_request("a", "b\n\n") == plain + more
        assert tokenizer.count_request("a", "\n\nb") == plain + more
        assert tokenizer.count_request("\n\na", "b") == plain + more


def test_special_tokens_of_a_template_take_the_space_beside_them(tmp_path: Path) -> None:
    path = like_qwen(tmp_path, template="{% for m in messages %}<|turn|>\n{{ m.content }}\n<|end|>\n{% endfor %}")
    before = FileTokenizer(path, "toy").count_request("a", "b")
    value = json.loads(path.read_text(encoding="utf-8"))
    for token in value["added_tokens"]:
        if token["content"] == "<|turn|>":
            token["rstrip"] = True
        if token["content"] == "<|end|>":
            token["lstrip"] = token["rstrip"] = True
    path.write_text(json.dumps(value), encoding="utf-8")
    assert FileTokenizer(path, "toy").count_request("a", "b") == before - 6


def test_truncation_and_padding_of_a_file_are_switched_off(tmp_path: Path) -> None:
    path = like_qwen(tmp_path)
    whole = FileTokenizer(path, "toy")
    cut = HuggingFaceTokenizer.from_file(str(path))
    cut.enable_truncation(5)
    cut.enable_padding(length=3)
    cut.save(str(path))
    for text in ("one two three four five six", "one"):
        assert FileTokenizer(path, "toy").count(text) == whole.count(text)


def test_a_tokenizer_that_drops_merges_at_random_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="drops merges at random"):
        FileTokenizer(like_qwen(tmp_path, changed={"dropout": 0.1}), "toy")


SYSTEM, USER = "You answer.", "# Question\n\nWhich <|im_end|> <end_of_turn>?\n\n\tint x;\n\n漢字"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "system_text"), [("qwen3", "<|im_end|>"), ("gemma3", "<end_of_turn>")])
def test_a_request_of_a_real_model_is_counted_as_its_library_counts_it(name: str, system_text: str) -> None:
    folder = real_tokenizer(name)
    ours = FileTokenizer(folder / "tokenizer.json", name)
    theirs = HuggingFaceTokenizer.from_file(str(folder / "tokenizer.json"))
    config = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True)
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": USER.replace(system_text, "STOP")}]
    rendered = environment.from_string(config["chat_template"]).render(
        messages=messages, add_generation_prompt=True, bos_token=config.get("bos_token")
    )
    tokens = theirs.encode(rendered, add_special_tokens=False).tokens
    assert ours.count_request(SYSTEM, USER.replace(system_text, "STOP")) == len(tokens)
    assert sum(token == system_text for token in tokens) in (1, 2)
    # Spelled in the message, the token is plain text: several tokens where there was one word.
    assert ours.count_request(SYSTEM, USER) > len(tokens) + 2
    frame = ours.frame(SYSTEM)
    assert frame.others + ours.count(frame.before + USER + frame.after) == ours.count_request(SYSTEM, USER)


# --- the hub ----------------------------------------------------------------------------------------------------


def hub_cache(folder: Path, repository: str, template: str | None = TEMPLATE) -> Path:
    """Lay a repository out as the Hugging Face libraries keep it; return its `tokenizer.json`."""
    place = folder / f"models--{repository.replace('/', '--')}"
    commit = "0123456789abcdef0123456789abcdef01234567"
    path = tokenizer_file(place / "snapshots" / commit, template)
    (place / "refs").mkdir()
    (place / "refs" / "main").write_text(commit, encoding="utf-8")
    (place / ".no_exist" / commit).mkdir(parents=True)
    (place / ".no_exist" / commit / "chat_template.jinja").touch()
    return path


def test_a_repository_is_read_from_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = hub_cache(tmp_path, "toys/words")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    (found,) = load_tokenizers(["hf:toys/words"])
    assert (found.name, found.label) == ("hf:toys/words", "words")
    same = FileTokenizer(path, "words")
    assert (found.digest, found.count_request("alpha", "beta")) == (same.digest, same.count_request("alpha", "beta"))
    (found,) = load_tokenizers(["w=hf:toys/words@main"])
    assert (found.name, found.label) == ("hf:toys/words@main", "w")
    monkeypatch.delenv("HF_HUB_CACHE")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    hub_cache(tmp_path / "home" / "hub", "toys/other")
    assert load_tokenizers(["hf:toys/other"])[0].label == "other"


@pytest.mark.parametrize(
    "more", [{"HF_HUB_OFFLINE": "1"}, pytest.param({}, marks=pytest.mark.slow)], ids=["offline", "no network"]
)
def test_a_repository_that_cannot_be_fetched_says_what_to_do(more: dict[str, str], tmp_path: Path) -> None:
    code = "from gniah.generator.tokenizers import load_tokenizers as l; l(['hf:toys/none'])"
    given = {**os.environ, "HF_HUB_CACHE": str(tmp_path), "HF_ENDPOINT": "http://127.0.0.1:9", **more}
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, env=given)
    assert "MissingDependency: hf:toys/none is not in the Hugging Face cache and could not be fetched" in done.stderr


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
        (["hf:model"], "'model' is no repository"),
        (["hf:../model"], "'../model' is no repository"),
        (["tiktoken:o200k_base", "tiktoken:o200k_base"], "two tokenizers have the label 'o200k_base'"),
    ],
)
def test_names_that_say_nothing_are_refused(names: list[str], message: str) -> None:
    with pytest.raises(UsageFault, match=message):
        load_tokenizers(names)


def test_chat_templates_are_given_by_label_or_for_all(tmp_path: Path) -> None:
    one, two = (f"file:{tokenizer_file(tmp_path / name, template=None)}" for name in ("one", "two"))
    mine = tmp_path / "mine.jinja"
    mine.write_text(TEMPLATE, encoding="utf-8")
    both = load_tokenizers([one, two, "tiktoken:o200k_base"], [f"two={mine}", "none"])
    assert [tokenizer.count_request("", "") for tokenizer in both] == [9, 0, 9]
    with pytest.raises(UsageFault, match="has no chat template"):
        load_tokenizers([one, two], [f"two={mine}"])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["none"], "no tokenizer takes one"),
        (["o200k_base=none"], "no tokenizer that takes a chat template has the label 'o200k_base'; these do: none"),
        (["a=none", "a=none"], "two chat templates are given for a"),
        (["a="], r"takes \[LABEL=\]PATH or \[LABEL=\]none, not 'a='"),
        ([""], "takes"),
    ],
)
def test_chat_templates_for_nobody_are_refused(given: list[str], message: str) -> None:
    with pytest.raises(UsageFault, match=message):
        load_tokenizers(["tiktoken:o200k_base"], given)


def test_a_tokenizer_whose_counts_do_not_add_up_is_told_with_the_reason(tmp_path: Path) -> None:
    made = load_tokenizers(["tiktoken:o200k_base", f"gpt=file:{without_proof(tmp_path)}"])
    assert list(slow_tokenizers(made)) == [
        "gpt: the whole prompt is counted after each distractor, which is slow: "
        "its expression does not always cut after a blank line"
    ]
