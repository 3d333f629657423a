"""Prompts are checked before they are used."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from prompts.loader import PromptError, fence, load, sentences, tried, written
from prompts.strict_yaml import UniqueKeys

FRONT = """\
id: answer
version: 7
language: any
variables: {site: s, language: l, today: t, fence: f, sources: s, conversation: c, question: q, asked: a, notes: n,
  terms: t}
"""
BODY = """\
system:
  - title: Role
    content: "{site} {language} {today} {fence}"
user:
  - title: All
    content: "{sources} {conversation} {question} {asked}"
  - title: Extra
    when: notes
    content: "{notes} {terms}"
"""


def override(folder: Path, front: str = FRONT, body: str = BODY) -> Path:
    (folder / "answer.yaml").write_text(f"---\n{front}---\n{body}", encoding="utf-8")
    return folder


NAMES = ("site", "language", "today", "fence", "sources", "conversation", "question", "asked", "notes", "terms")
VALUES = {name: f"<{name}>" for name in NAMES}


def test_a_site_can_have_its_own_prompt(tmp_path: Path) -> None:
    prompt = load("answer", override(tmp_path))
    assert prompt.version == 7
    system, user = prompt.messages(VALUES, "en")
    assert (system.role, system.content) == ("system", "# Role\n<site> <language> <today> <fence>")
    assert (user.role, user.content) == (
        "user",
        "# All\n<sources> <conversation> <question> <asked>\n\n# Extra\n<notes> <terms>",
    )


def test_a_segment_is_left_out_where_its_variable_is_empty(tmp_path: Path) -> None:
    _, user = load("answer", override(tmp_path)).messages(VALUES | {"notes": ""}, "en")
    assert user.content == "# All\n<sources> <conversation> <question> <asked>"


def test_a_segment_cannot_hang_on_a_variable_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(PromptError, match=r"answer\.yaml: `when` names an unknown variable: note"):
        load("answer", override(tmp_path, body=BODY.replace("when: notes", "when: note")))


def test_a_site_without_one_gets_ours(tmp_path: Path) -> None:
    assert load("answer", tmp_path) == load("answer")


@pytest.mark.parametrize(
    ("front", "body", "complaint"),
    [
        (FRONT, BODY.replace("{question}", "{questoin}"), "questoin|question"),
        (FRONT, BODY.replace("{question}", ""), "variable unknown or unused: question"),
        (FRONT.replace("question: q, ", ""), BODY.replace("{question}", ""), "variable missing: question"),
        (FRONT.replace("site: s,", "site: s, shoe: s,"), BODY.replace("{site}", "{site}{shoe}"), "unused: shoe"),
        (FRONT + "colour: red\n", BODY, "colour"),
        (FRONT, BODY + "assistant: []\n", "assistant"),
        (FRONT, BODY.replace("title: All", "name: All"), "name"),
        (FRONT.replace("id: answer", "id: other"), BODY, "must be 'answer'"),
        (FRONT, "system: [\n", "cannot be read"),
        (FRONT, "system: []\nuser: []\nsystem: []\n", "the key 'system' stands twice"),
        (FRONT + "examples: [x]\n", BODY, "examples"),
    ],
)
def test_a_wrong_prompt_is_refused_by_file_and_name(tmp_path: Path, front: str, body: str, complaint: str) -> None:
    with pytest.raises(PromptError, match=rf"answer\.yaml: .*({complaint})"):
        load("answer", override(tmp_path, front, body))


def test_a_prompt_without_front_matter_is_refused(tmp_path: Path) -> None:
    (tmp_path / "answer.yaml").write_text(BODY, encoding="utf-8")
    with pytest.raises(PromptError, match="front matter"):
        load("answer", tmp_path)


def examples(folder: Path, text: str) -> Path:
    (folder / "examples").mkdir()
    (folder / "examples" / "answer.en.yaml").write_text(text, encoding="utf-8")
    return override(folder, FRONT + "examples: true\n")


EXAMPLE = """\
prompt: answer
language: en
examples:
  - title: One
    variables: {sources: "S {fence}", conversation: "(none)", question: Q, asked: A, notes: ""}
    output: "A for {site}"
"""


def test_examples_come_before_the_question_with_the_same_fence(tmp_path: Path) -> None:
    messages = load("answer", examples(tmp_path, EXAMPLE)).messages(VALUES, "pl")
    assert [m.role for m in messages] == ["system", "user", "assistant", "user"]
    assert messages[1].content == "# All\nS <fence> (none) Q A"
    assert messages[2].content == "A for <site>"


@pytest.mark.parametrize("wrong", ["{sauces}", "{sources} {x_y}"])
def test_an_example_with_an_unknown_variable_is_refused(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(PromptError, match=r"answer\.en\.yaml: example 'One': unknown variable (sauces|x_y)"):
        load("answer", examples(tmp_path, EXAMPLE.replace("A for {site}", wrong)))


def test_an_example_of_another_prompt_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PromptError, match="must be 'answer'"):
        load("answer", examples(tmp_path, EXAMPLE.replace("prompt: answer", "prompt: rephrase")))


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({k: v for k, v in VALUES.items() if k != "today"}, "value for variable missing: today"),
        (VALUES | {"tomorrow": "x"}, "unknown or unused: tomorrow"),
    ],
)
def test_values_must_be_exactly_those_that_are_wanted(values: dict[str, str], complaint: str) -> None:
    with pytest.raises(PromptError, match=rf"answer\.yaml: .*{complaint}"):
        load("answer").messages(values, "en")


def test_values_are_put_in_once_and_never_looked_into() -> None:
    messages = load("answer").messages(VALUES | {"question": "{site} {today}"}, "en")
    assert "\n{site} {today}\n" in messages[-1].content


def test_the_fingerprint_follows_the_text(tmp_path: Path) -> None:
    ours = load("answer")
    assert ours.fingerprint == load("answer").fingerprint
    theirs = load("answer", override(tmp_path))
    assert theirs.fingerprint.startswith("answer-7-")
    changed = load("answer", override(tmp_path, body=BODY.replace("{site}", "{site}!")))
    assert changed.fingerprint != theirs.fingerprint


def test_a_fence_belongs_to_its_request() -> None:
    assert fence("request-0001") == fence("request-0001") != fence("request-0002")
    assert len(fence("request-0001")) == 16


def test_sentences_need_english(tmp_path: Path) -> None:
    (tmp_path / "errors.yaml").write_text("error: [x]\n", encoding="utf-8")
    with pytest.raises(PromptError, match=r"errors\.yaml"):
        sentences("errors", tmp_path)


def test_a_site_may_have_examples_of_its_own_for_our_prompt(tmp_path: Path) -> None:
    ours = load("answer")
    examples(tmp_path, EXAMPLE)
    (tmp_path / "answer.yaml").unlink()
    prompt = load("answer", tmp_path)
    assert [example.title for example in prompt.examples["en"]] == ["One"]
    assert prompt.examples["de"] == ours.examples["de"]
    assert (prompt.system, prompt.fingerprint) != (ours.system, ours.fingerprint)


def test_examples_of_a_prompt_that_has_none_are_refused(tmp_path: Path) -> None:
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "think.en.yaml").write_text(
        "prompt: think\nlanguage: en\nexamples: [{title: One, variables: {}, output: Yes.}]\n", encoding="utf-8"
    )
    with pytest.raises(PromptError, match="the prompt think has no examples"):
        load("think", tmp_path)


def test_a_prompt_that_is_tried_keeps_the_examples_it_takes_the_place_of(tmp_path: Path) -> None:
    own = load("answer")
    assert tried(written("answer"), own).messages(VALUES, "de") == own.messages(VALUES, "de")
    bare = tried(f"---\n{FRONT}---\n{BODY}", own)
    assert (bare.version, bare.examples) == (7, {})
    assert written("answer", override(tmp_path)) == f"---\n{FRONT}---\n{BODY}"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (f"---\n{FRONT}---\n" + BODY.replace("{question}", "{questoin}"), "questoin|question"),
        (f"---\n{FRONT.replace('id: answer', 'id: other')}---\n{BODY}", "must be 'answer'"),
        ("", "front matter"),
        ("a: b", "front matter"),
        ("\x00", "cannot be read"),
        ("[" * 20_000, "more than 8 levels"),
        ("a: &x 1\n---\nb: *x", "anchors, aliases and tags"),
        ("<<: *x", "anchors, aliases and tags"),
        ("a: !!int ''\n---\nb: c", "anchors, aliases and tags"),
        ("a: 2026-99-99\n---\nb: c", "month must be in"),
        (f"a: {'9' * 5_000}\n---\nb: c", "limit"),
        ("a: 1" + ":1" * 400 + ".5\n---\nb: c", "cannot be read"),
    ],
)
def test_what_is_no_prompt_is_not_tried(text: str, complaint: str) -> None:
    with pytest.raises(PromptError, match=complaint):
        tried(text, load("answer"))


def test_libyaml_reads_files_where_it_is_there() -> None:
    assert yaml.__with_libyaml__ is issubclass(UniqueKeys, yaml.CSafeLoader)
