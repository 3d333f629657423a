"""Site texts: what a site says in fixed words, and which of them are its own, for whoever looks after it.

pagewire.yaml (glossary, contact), the site's folder `prompts`, our own files ─▶ SiteTexts
"""

from __future__ import annotations

from pathlib import Path

from pipelines.query.site_prompts import SENTENCES, SitePrompts
from pipelines.runtime.settings import SitesSettings
from prompts.loader import Prompt, load, own_sentences
from schemas.site_texts import GlossaryTerm, PromptExamples, PromptPart, SitePrompt, SiteSentence, SiteTexts


def site_texts(settings: SitesSettings, name: str) -> SiteTexts:
    """The files as they are now; workers have read them when they started. Takes some 50 ms.

    Raises:
        UnknownSite. SettingsError: a file of the site is wrong.
    """
    site = settings.site(name)
    found = SitePrompts({name: site.prompts} if site.prompts else {}).of(name)
    said = {"canned": found.phrases.canned, "errors": found.phrases.errors}
    sentences = []
    for kind in SENTENCES:
        own = own_sentences(kind, site.prompts)
        sentences += [
            SiteSentence.model_validate({"kind": kind, "name": each, "said": words, "own": tuple(own.get(each, {}))})
            for each, words in said[kind].items()
        ]
    return SiteTexts(
        site=name,
        sentences=tuple(sentences),
        contact=site.contact,
        glossary=tuple(
            GlossaryTerm(
                term=term,
                names={lang: (names,) if isinstance(names, str) else names for lang, names in by_lang.items()},
            )
            for term, by_lang in site.glossary.items()
        ),
        prompts=tuple(_shown(each, prompt, site.prompts) for each, prompt in sorted(found.prompts.items())),
    )


def _shown(name: str, prompt: Prompt, folder: Path | None) -> SitePrompt:
    ours = load(name)
    messages = (("system", prompt.system), ("user", prompt.user))
    return SitePrompt(
        name=name,
        fingerprint=prompt.fingerprint,
        own=folder is not None and prompt.path.parent == folder,
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
