"""Model files: what they may say, what is refused and how, and what the shipped ones say."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from gniah.evaluator.inference.model_files import (
    Expected,
    Limits,
    ModelFile,
    PriceRow,
    find_model,
    read_model_file,
    shipped_models,
)
from gniah.records.errors import GniahError, InputError

LEAST = 'schema = "gniah/model/1"\nname = "toy-1"\nlitellm = "openai/toy-1"\n'
PAPER = (
    "gemini-3.1-pro",
    "gemini-3.6-flash",
    "gemini-3.8-flash",
    "gpt-5.6-luna",
    "gpt-5.6-sol",
    "qwen3.5-122b-a10b",
    "qwen3.5-35b-a3b",
    "qwen3.5-397b-a17b",
)


def write(folder: Path, more: str = "", least: str = LEAST) -> Path:
    path = folder / "toy.toml"
    path.write_text(least + more, encoding="utf-8")
    return path


def refused(folder: Path, more: str, least: str = LEAST) -> InputError:
    path = write(folder, more, least)
    with pytest.raises(InputError) as caught:
        read_model_file(path)
    assert str(path) in caught.value.message
    assert caught.value.remedy
    return caught.value


def test_three_fields_are_enough(tmp_path: Path) -> None:
    found = read_model_file(write(tmp_path))
    assert found == ModelFile("toy-1", "openai/toy-1")
    assert (found.stream, found.cache_markers, found.reported_cost, found.uncached_input) == (
        True,
        False,
        False,
        "input",
    )
    assert found.limits == Limits(8, None, None, 1800, 300)
    assert (found.reasoning_effort, found.output_limit, found.billed_tiers) == (None, None, ("default",))


def test_every_field_is_read(tmp_path: Path) -> None:
    found = read_model_file(
        write(
            tmp_path,
            """
base_address = "http://localhost:8000/v1"
key_variable = "TOY_KEY"
tokenizers = ["a", "b"]
context_window = 1000
max_input_tokens = 900
max_output_tokens = 100
tiers = ["flex", "default"]
stream = false
cache_markers = true
prices_from = "a list"
uncached_input = "cache-write"
reported_cost = true
[parameters]
temperature = 1.0
reasoning_effort = "high"
max_tokens = 50
prompt_cache_key = "gniah"
[extra_body.provider]
order = ["x", "y"]
[limits]
concurrency = 2
requests_per_minute = 60
tokens_per_minute = 5000
time_limit_seconds = 20
idle_limit_seconds = 5
[[prices]]
tier = "flex"
above = 500
input = "0.20"
[[prices]]
input = "1"
cached = "0.1"
cache_write = "1.25"
output = "8"
[expected.high]
output_tokens = "12.5"
seconds = "3"
source = "a run"
""",
        )
    )
    assert found == ModelFile(
        name="toy-1",
        litellm="openai/toy-1",
        base_address="http://localhost:8000/v1",
        key_variable="TOY_KEY",
        tokenizers=("a", "b"),
        context_window=1000,
        max_input_tokens=900,
        max_output_tokens=100,
        tiers=("flex", "default"),
        stream=False,
        cache_markers=True,
        parameters={
            "temperature": 1.0,
            "reasoning_effort": "high",
            "max_tokens": 50,
            "prompt_cache_key": "gniah",
        },
        extra_body={"provider": {"order": ["x", "y"]}},
        limits=Limits(2, 60, 5000, 20, 5),
        prices=(
            PriceRow("default", 0, Decimal(1), Decimal("0.1"), Decimal("1.25"), Decimal(8)),
            PriceRow("flex", 500, Decimal("0.20"), None, None, None),
        ),
        prices_from="a list",
        uncached_input="cache-write",
        reported_cost=True,
        expected={"high": Expected(Decimal("12.5"), Decimal(3), "a run")},
    )
    assert (found.reasoning_effort, found.output_limit, found.billed_tiers) == ("high", 50, ("flex", "default"))


@pytest.mark.parametrize(
    ("more", "field", "remedy"),
    [
        ("max_output_token = 5", "max_output_token", "did you mean max_output_tokens?"),
        ("[limits]\nconcurency = 5", "limits.concurency", "did you mean concurrency?"),
        ('[[prices]]\ninput = "1"\n[[prices]]\ncashed = "2"', "prices[2].cashed", "did you mean cached?"),
        ("zzz = 1", "zzz", "known here are schema, name"),
        ('[expected.low]\nsource = "x"\nsecond = "1"', "expected.low.second", "did you mean seconds?"),
        ('[expected.low]\nseconds = "1"', "expected.low.source", "give expected.low.source"),
        ("context_window = 0", "context_window", "leave it out"),
        ("context_window = -5", "context_window", "digits"),
        ("context_window = 1000.0", "context_window", "digits"),
        ("context_window = true", "context_window", "digits"),
        ('context_window = "1000"', "context_window", "digits"),
        ('stream = "yes"', "stream", "true or false"),
        ("stream = 1", "stream", "true or false"),
        ("tokenizers = 'a'", "tokenizers", "["),
        ("tokenizers = ['a', 'a']", "tokenizers", "once"),
        ("tiers = ['standard']", "tiers", '"default"'),
        ("tiers = ['batch']", "tiers", "prices"),
        ("tiers = ['auto']", "tiers", "flex"),
        ("uncached_input = 'free'", "uncached_input", "docs/models.md"),
        ('base_address = "localhost:8000"', "base_address", "https://"),
        ('base_address = "file:///etc/passwd"', "base_address", "https://"),
        ('base_address = "https://host/v1?x=1"', "base_address", "https://"),
        ('base_address = "https://[host"', "base_address", "https://"),
        ('key_variable = "MY KEY"', "key_variable", "OPENAI_API_KEY"),
        ("limits = 3", "limits", "[name]"),
        ("prices = 3", "prices", "[[prices]]"),
        ("[[prices]]\ninput = 0.2", "prices[1].input", 'as "0.20"'),
        ('[[prices]]\ninput = "-1"', "prices[1].input", 'as "0.20"'),
        ('[[prices]]\ninput = "1e3"', "prices[1].input", 'as "0.20"'),
        ('[[prices]]\ninput = "NaN"', "prices[1].input", 'as "0.20"'),
        ('[[prices]]\ninput = "٣"', "prices[1].input", 'as "0.20"'),
        ('[[prices]]\ninput = "1"\n[[prices]]\ninput = "2"', "prices[2].above", "one of the two"),
        ('[[prices]]\ninput = "1"', "prices_from", "say where"),
        ("[parameters]\nn = 3", "parameters.n", "--repeats"),
        ('[parameters]\nservice_tier = "flex"', "parameters.service_tier", "tiers"),
        ("[parameters]\ndrop_params = true", "parameters.drop_params", "leave it out"),
        ("[parameters]\nmax_tokens = 0", "parameters.max_tokens", "leave it out"),
        ("[parameters]\nmax_tokens = 4e4", "parameters.max_tokens", "digits"),
        ("[parameters]\ntemperature = nan", "parameters.temperature", "JSON"),
        ("[parameters]\nseed = 9007199254740993", "parameters.seed", "53 bits"),
        ("[parameters]\nstop = [1979-05-27]", "parameters.stop[1]", "string"),
        ("[extra_body.a]\nb = inf", "extra_body.a.b", "JSON"),
        ("[extra_body]\na = " + "[" * 300 + "]" * 300, "extra_body", "no request needs that"),
    ],
)
def test_a_mistake_names_file_field_and_remedy(tmp_path: Path, more: str, field: str, remedy: str) -> None:
    error = refused(tmp_path, more)
    assert f"toy.toml: {field} " in error.message
    assert remedy in (error.remedy or "")


@pytest.mark.parametrize(
    ("least", "words"),
    [
        ("", "expected the schema"),
        ('schema = "gniah/pool/1"', "expected the schema"),
        ('schema = "gniah/model/2"', "newer version"),
        ('schema = "gniah/model/1"', "name is missing"),
        ('schema = "gniah/model/1"\nname = "x"', "litellm is missing"),
        ('schema = "gniah/model/1"\nname = "../x"\nlitellm = "a/b"', "name must be"),
        ('schema = "gniah/model/1"\nname = ".x"\nlitellm = "a/b"', "name must be"),
        ('schema = "gniah/model/1"\nname = "x"\nlitellm = "toy"', "litellm must name a provider"),
        ("schema = ", "not TOML: at end of document"),
        ("a = 1\nb c = 2\n", "not TOML: at line 2, column 3"),
        ("a = " + "[" * 5000, "not TOML"),
    ],
)
def test_what_is_no_model_file_is_refused(tmp_path: Path, least: str, words: str) -> None:
    assert words in refused(tmp_path, "", least).message


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "toy.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not TOML"):
        read_model_file(path)


def test_what_cannot_be_read_is_an_error_of_ours(tmp_path: Path) -> None:
    for path in (tmp_path / "none.toml", tmp_path):
        with pytest.raises(GniahError, match=str(path)):
            read_model_file(path)


SECRET = "sk-proj-0123456789abcdefghij"


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ("api_key = 'abc'", "api_key"),
        ("key = 'abc'", "key"),
        ("apikey = 'abc'", "apikey"),
        ("[parameters]\napi_key = 'abc'", "parameters.api_key"),
        ("[parameters.extra_headers]\nAuthorization = 'abc'", "parameters.extra_headers.Authorization"),
        ("[parameters.extra_headers]\nX-Api-Key = 'abc'", "parameters.extra_headers.X-Api-Key"),
        ("[extra_body]\naccess_token = 'abc'", "extra_body.access_token"),
        ("[extra_body]\nclient_secret = 'abc'", "extra_body.client_secret"),
        (f"[extra_body]\na = [['{SECRET}']]", "extra_body.a[1][1]"),
        (f"key_variable = '{SECRET}'", "key_variable"),
        ("key_variable = 'AIzaSyA0123456789abcdefghijk'", "key_variable"),
        (f"prices_from = 'list, {SECRET}'", "prices_from"),
        ("[parameters]\nuser = 'Bearer abcdefghijkl'", "parameters.user"),
        ("base_address = 'https://me:abc@host/v1'", "base_address"),
        ("base_address = 'https://abc@host/v1'", "base_address"),
        ("[extra_body]\nproxy = 'http://me:abc@host'", "extra_body.proxy"),
    ],
)
def test_a_key_is_refused_and_not_shown(tmp_path: Path, more: str, field: str) -> None:
    error = refused(tmp_path, more)
    assert f"toy.toml: {field} " in error.message
    assert "key_variable" in (error.remedy or "")
    shown = f"{error.message} {error.remedy}"
    for secret in ("abc", "0123456789", "AIza"):
        assert secret not in shown.replace(str(tmp_path), "")


def test_a_key_in_a_broken_file_is_not_shown(tmp_path: Path) -> None:
    error = refused(tmp_path, f'a = "{SECRET}" "')
    assert "sk-" not in f"{error.message} {error.remedy}"


@pytest.mark.parametrize("name", ["max_tokens", "top_k", "prompt_cache_key", "max_completion_tokens"])
def test_fields_that_only_sound_like_a_key_are_taken(tmp_path: Path, name: str) -> None:
    value: Any = "gniah" if name == "prompt_cache_key" else 5
    assert read_model_file(write(tmp_path, f"[parameters]\n{name} = {value!r}")).parameters == {name: value}


def test_a_model_is_found_by_shipped_name_or_path(tmp_path: Path) -> None:
    found = find_model(str(write(tmp_path)))
    assert found is not None and found.name == "toy-1"
    luna = find_model("gpt-5.6-luna")
    assert luna is not None and luna.litellm == "openai/gpt-5.6-luna"
    assert find_model("gpt-5.6-lunar") is None
    assert find_model("../models/gpt-5.6-luna") is None
    with pytest.raises(InputError, match="no such file"):
        find_model(str(tmp_path / "none.toml"))


def shipped(name: str) -> ModelFile:
    found = find_model(name)
    assert found is not None
    return found


def test_the_eight_models_of_the_paper_are_shipped() -> None:
    assert shipped_models() == PAPER
    for name in PAPER:
        assert shipped(name).name == name


@pytest.mark.parametrize("name", PAPER)
def test_a_shipped_file_is_as_appendix_c_has_it(name: str) -> None:
    model = shipped(name)
    gpt, gemini, qwen = (name.startswith(family) for family in ("gpt", "gemini", "qwen"))
    assert model.parameters["temperature"] == 1.0
    assert model.parameters.get("top_p") == (None if gpt else 0.95)
    assert model.reasoning_effort == "low"
    assert model.context_window == (1_050_000 if gpt else 1_048_576 if gemini else 262_144)
    assert model.max_input_tokens == (922_000 if gpt else 1_048_576 if gemini else None)
    assert model.output_limit == (128_000 if gpt else 65_536 if gemini else 40_000)
    assert model.reported_cost == qwen
    assert model.tiers == (() if qwen or name == "gemini-3.8-flash" else ("flex", "default"))
    more = {"top_k": 20, "min_p": 0, "presence_penalty": 1.5, "max_tokens": 40_000}
    assert {field: model.parameters.get(field) for field in more} == (more if qwen else dict.fromkeys(more))
    assert model.key_variable == ("OPENAI_API_KEY" if gpt else "GEMINI_API_KEY" if gemini else "OPENROUTER_API_KEY")
    provider = {"provider": {"order": ["alibaba", "deepinfra/fp8"], "allow_fallbacks": False}}
    assert model.extra_body == (provider if qwen else {})


# Table 4: the standard prices of input and output, in US dollars per million tokens.
TABLE_4 = {
    "gpt-5.6-sol": ("4.00", "20.00"),
    "gpt-5.6-luna": ("0.20", "1.20"),
    "gemini-3.8-flash": ("0.75", "3.75"),
    "gemini-3.6-flash": ("0.75", "3.75"),
    "gemini-3.1-pro": ("2.00", "12.00"),
    "qwen3.5-397b-a17b": ("0.39", "2.34"),
    "qwen3.5-122b-a10b": ("0.26", "2.08"),
    "qwen3.5-35b-a3b": ("0.16", "1.30"),
}


@pytest.mark.parametrize("name", PAPER)
def test_shipped_prices_are_those_of_table_4(name: str) -> None:
    (row,) = [row for row in shipped(name).prices if (row.tier, row.above) == ("default", 0)]
    assert (row.input, row.output) == tuple(map(Decimal, TABLE_4[name]))
    for tier in ("flex", "batch"):
        for half in (row for row in shipped(name).prices if (row.tier, row.above) == (tier, 0)):
            assert half.input is not None and half.output is not None
            assert (half.input * 2, half.output * 2) == (row.input, row.output)


def test_prices_of_long_prompts_are_shipped() -> None:
    rows = {(row.tier, row.above): row for row in shipped("gemini-3.1-pro").prices}
    assert (rows["default", 200_000].input, rows["default", 200_000].output) == (Decimal(4), Decimal(18))
    assert (rows["flex", 200_000].input, rows["flex", 200_000].output) == (Decimal(2), Decimal(9))
    for name in ("gpt-5.6-luna", "gpt-5.6-sol"):
        rows = {(row.tier, row.above): row for row in shipped(name).prices}
        for tier in ("flex", "default", "batch"):
            short, long = rows[tier, 0], rows[tier, 272_000]
            assert short.input and short.cached and short.cache_write and short.output
            assert long.input == 2 * short.input and long.output == Decimal("1.5") * short.output
            assert (long.cached, long.cache_write) == (2 * short.cached, 2 * short.cache_write)
            assert short.cache_write == Decimal("1.25") * short.input


LITELLM = {
    "gpt-5.6-sol": "gpt-5.6-sol",
    "gpt-5.6-luna": "gpt-5.6-luna",
    "gemini-3.8-flash": "gemini/gemini-3.8-flash",
    "gemini-3.6-flash": "gemini/gemini-3.6-flash",
    "gemini-3.1-pro": "gemini/gemini-3.1-pro-preview",
}


@pytest.mark.parametrize("name", LITELLM)
def test_shipped_prices_are_those_of_litellms_own_list(name: str) -> None:
    """Compared with the list of the version that the files were written from; a later one may have new prices."""
    json = pytest.importorskip("orjson")
    metadata = pytest.importorskip("importlib.metadata")
    try:
        files, version = metadata.files("litellm"), metadata.version("litellm")
    except metadata.PackageNotFoundError:
        pytest.skip("LiteLLM is not installed")
    if version != "1.110.2":
        pytest.skip("another version of LiteLLM")
    (place,) = [file for file in files if file.name == "model_prices_and_context_window_backup.json"]
    listed = json.loads(place.locate().read_bytes())[LITELLM[name]]
    model = shipped(name)
    assert (model.max_input_tokens, model.max_output_tokens) == (
        listed["max_input_tokens"],
        listed["max_output_tokens"],
    )
    fields = {
        "input": "input_cost_per_token",
        "output": "output_cost_per_token",
        "cached": "cache_read_input_token_cost",
        "cache_write": "cache_creation_input_token_cost",
    }
    for row in model.prices:
        above = f"_above_{row.above // 1000}k_tokens" if row.above else ""
        tier = {"default": "", "flex": "_flex", "batch": "_batches"}[row.tier]
        for field, theirs in fields.items():
            found = listed.get(f"{theirs}{above}{tier}")
            per_million = None if found is None else Decimal(repr(found)).scaleb(6)
            assert getattr(row, field) == per_million, (row, field)
