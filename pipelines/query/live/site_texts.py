"""Site texts: what a site says in fixed words, and which of them are its own, for its operators.

pagewire.yaml (glossary, contact), the site's folder `prompts`, our own files ─┐
versions that were made live while the system runs ────────────────────────────┴─▶ SiteTexts
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import get_args

from pipelines.query.live.site_prompts import GLOSSARY, SENTENCES, SitePrompts
from pipelines.query.live.tuning import ANSWERS, Configured, SiteTuning
from prompts.loader import Prompt, load, own_sentences
from schemas.query import Tuned
from schemas.text_version import (
    ChangedText,
    EditedKind,
    GlossaryTerm,
    PromptExamples,
    PromptPart,
    SitePrompt,
    SiteSentence,
    SiteTexts,
    TextVersion,
)


def site_texts(settings: Configured, name: str, live: Iterable[TextVersion] = ()) -> SiteTexts:
    """The files as they are now, and what was made live over them; workers have read the files when they started.
    Takes some 50 ms.

    Raises: UnknownSite. SettingsError: a file of the site is wrong.
    """
    site = settings.site(name)
    site_prompts = SitePrompts({name: site.prompts} if site.prompts else {})
    over = [one for one in live if one.site == name and one.text is not None]
    site_prompts.take(over)
    tuning = SiteTuning(settings)
    tuning.take(over)
    tuned = tuning.of(name)
    numbers: dict[tuple[str, str], int] = {(one.kind, one.name): one.version for one in over}
    found = site_prompts.of(name)
    said = {"canned": found.phrases.canned, "errors": found.phrases.errors}
    sentences = []
    for kind in SENTENCES:
        own = own_sentences(kind, site.prompts)
        for each, words in said[kind].items():
            changed = {lang: numbers[kind, f"{each}.{lang}"] for lang in words if (kind, f"{each}.{lang}") in numbers}
            sentence = {"kind": kind, "name": each, "said": words, "own": tuple(own.get(each, {})), "live": changed}
            sentences.append(SiteSentence.model_validate(sentence))
    return SiteTexts(
        site=name,
        sentences=tuple(sentences),
        contact={**site.contact, **found.contact},
        contact_live={lang: numbers["contact", lang] for lang in found.contact},
        glossary=tuple(
            GlossaryTerm(
                term=term,
                names={lang: (names,) if isinstance(names, str) else tuple(names) for lang, names in by_lang.items()},
            )
            for term, by_lang in found.glossary_of(site).items()
        ),
        glossary_live=numbers["glossary", GLOSSARY] if found.glossary is not None else None,
        prompts=tuple(
            _shown(each, prompt, site.prompts, numbers.get(("prompts", each)))
            for each, prompt in sorted(found.prompts.items())
        ),
        settings=tuned or Tuned(),
        settings_live=None if tuned is None else numbers["settings", ANSWERS],
        changed=tuple(
            ChangedText.model_validate(one.model_dump(include=set(ChangedText.model_fields)))
            for one in over
            if one.kind in get_args(EditedKind)
        ),
    )


def _shown(name: str, prompt: Prompt, folder: Path | None, live: int | None) -> SitePrompt:
    ours = load(name)
    messages = (("system", prompt.system), ("user", prompt.user))
    return SitePrompt(
        name=name,
        fingerprint=prompt.fingerprint,
        own=folder is not None and (folder / f"{name}.yaml").is_file(),
        live=live,
        parts=tuple(
            PromptPart.model_validate({"role": role, "title": part.title, "text": part.content, "when": part.when})
            for role, parts in messages
            for part in parts
        ),
        examples=tuple(
            PromptExamples(lang=lang, count=len(examples), own=examples != ours.examples.get(lang))
            for lang, examples in sorted(prompt.examples.items())
        ),
    )
