"""Changing a site's corrections while the system runs: by the same versions as its texts, each correction a text.

put ─▶ its page is looked up ─▶ what would it answer? (log/correction_trials.py) ─▶ not too much ─▶ text_changes.py
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol

from pipelines.query.live.corrections import (
    CorrectionSet,
    correction_id,
    correction_set,
    page_content,
    read_correction,
    written_correction,
)
from pipelines.query.live.glossary import Glossary, read_glossary
from pipelines.query.live.live_texts import TextStore
from pipelines.query.live.text_changes import Place, TextChanges
from pipelines.runtime.errors import Permanent
from pipelines.runtime.settings import SitesSettings
from prompts.loader import PromptError
from schemas.correction import (
    CorrectedPage,
    Correction,
    CorrectionHistory,
    CorrectionList,
    CorrectionState,
    CorrectionTrial,
    CorrectionVersion,
    ListedCorrection,
    NewCorrection,
)
from schemas.http import IndexedPage, ListedPage
from schemas.ingest import Receipt
from schemas.keys import page_key
from schemas.text_version import NewText, TextChange, TextHistory, TextVersion
from text.language import language_of

HIDDEN = "…"  # in place of a text
PageName = tuple[str, str]  # id and language


class BadCorrection(Permanent):
    """The correction cannot be kept."""

    code = "bad-correction"


class UnknownCorrection(Permanent):
    """The site has no correction of this id, or it was taken back."""

    code = "unknown-correction"


class Pages(Protocol):
    """Pages as they stand in the live indexes (adapters.elastic.page_view). All raise Retryable."""

    async def page(self, site: str, page_key: str, groups: Iterable[str] = ()) -> IndexedPage: ...

    async def at(self, site: str, address: str, *, groups: Iterable[str] | None = ()) -> list[ListedPage]: ...

    async def readable(self, site: str, page_ids: Collection[str], groups: Iterable[str]) -> frozenset[PageName]: ...


# The state of the newest changes of a site's pages, by page key (pipelines.ingest.receipts). Raises: Retryable.
PageReceipts = Callable[[str, Iterable[str]], Awaitable[dict[str, Receipt]]]
# How often each correction of a site was used (pipelines.query.log.ports). Raises: Retryable.
Uses = Callable[[str], Awaitable[Mapping[str, int]]]
# What a correction would answer (pipelines.query.log.correction_trials). Raises: Retryable; Permanent: of the embedder.
Trials = Callable[[str, str, Correction, CorrectionSet, Glossary], Awaitable[CorrectionTrial]]


class CorrectionChanges:
    """Reads and changes corrections. `groups`: the access groups of their reader or editor."""

    def __init__(
        self,
        texts: TextChanges,
        store: TextStore,
        settings: SitesSettings,
        pages: Pages,
        receipts: PageReceipts,
        uses: Uses,
        trials: Trials,
    ) -> None:
        self._texts = texts
        self._store = store
        self._settings = settings
        self._pages = pages
        self._receipts = receipts
        self._uses = uses
        self._trials = trials

    async def list(self, site: str, groups: Iterable[str]) -> CorrectionList:
        """Raises: UnknownSite, Retryable."""
        self._settings.site(site)
        listed = await self._listed(site, await self._store.live(site), groups)
        return CorrectionList(site=site, corrections=tuple(sorted(listed, key=lambda one: one.at, reverse=True)))

    async def history(self, site: str, id: str, groups: Iterable[str]) -> CorrectionHistory:
        """Raises: UnknownCorrection, UnknownSite, Retryable."""
        history, mine = await self._history(site, id), list(groups)
        live = await self._listed(site, [one for one in history.versions if one.version == history.live], mine)
        told = {one.version: one for one in await self._listed(site, history.versions, mine)}
        return CorrectionHistory(
            site=site,
            id=id,
            live=next(iter(live), None),
            versions=tuple(
                CorrectionVersion(
                    **one.noted(),
                    of=one.of,
                    correction=told[one.version].correction if one.version in told else None,
                )
                for one in history.versions
            ),
        )

    async def put(
        self, site: str, new: NewCorrection, by: str, groups: Iterable[str], id: str | None = None
    ) -> ListedCorrection:
        """Go by it from now on, in place of the one of this id; without one, of the one about the same question.

        Raises: BadCorrection. TextChanged, TooManyTexts, UnknownSite, Retryable.
        """
        mine = list(groups)
        trial = _kept(await self.tried(site, new, mine, id))
        text = NewText(text=written_correction(trial.correction), note=new.note, over=new.over)
        made = await self._texts.put(_place(site, trial.id), text, by)
        return (await self._listed(site, [made], mine))[0]

    async def remove(self, site: str, id: str, change: TextChange, by: str) -> None:
        """Take it back; its versions stay. Raises: UnknownCorrection, TextChanged, Retryable."""
        if not (await self._history(site, id)).live:
            raise UnknownCorrection(f"correction {id} of site {site} is not in force: it was taken back already")
        await self._texts.remove(_place(site, id), change, by)

    async def restore(
        self, site: str, id: str, version: int, change: TextChange, by: str, groups: Iterable[str]
    ) -> CorrectionHistory:
        """Go by a version again. Raises: BadCorrection: it would be refused today. As TextChanges.restore."""
        return await self._back(
            site, id, version, groups, lambda: self._texts.restore(_place(site, id), version, change, by)
        )

    async def roll_back(
        self, site: str, id: str, change: TextChange, by: str, groups: Iterable[str]
    ) -> CorrectionHistory:
        """Go by what was in force before, nothing perhaps. Raises: as `restore`; NoEarlierText."""
        before = await self._texts.before(_place(site, id))
        return await self._back(site, id, before, groups, lambda: self._texts.roll_back(_place(site, id), change, by))

    async def _history(self, site: str, id: str) -> TextHistory:
        """Raises: UnknownCorrection: it has no versions."""
        found = await self._texts.history(_place(site, id))
        if not found.versions:
            raise UnknownCorrection(f"site {site} has no correction {id}")
        return found

    async def _back(
        self,
        site: str,
        id: str,
        version: int | None,
        groups: Iterable[str],
        work: Callable[[], Awaitable[TextVersion]],
    ) -> CorrectionHistory:
        """Do the work, if the version that comes back would be kept today."""
        wanted = next((one for one in (await self._history(site, id)).versions if one.version == version), None)
        if wanted is not None and wanted.text is not None:
            try:
                correction = read_correction(wanted.text)
            except PromptError as err:
                raise BadCorrection(str(err)) from None
            _kept(await self._try(site, id, correction, await self._store.live(site)))
        await work()
        return await self.history(site, id, groups)

    async def tried(
        self, site: str, new: NewCorrection, groups: Iterable[str], id: str | None = None
    ) -> CorrectionTrial:
        """What a correction would do if it were kept. Raises: BadCorrection, UnknownSite, Retryable."""
        groups = list(groups)
        lang = new.lang or language_of(" ".join(new.questions) or new.word, self._settings.site(site).languages)
        page = await self._page(site, new.page, lang, groups) if new.page else None
        said = new.model_dump(exclude={"lang", "page", "note", "over"})
        correction = Correction(**said, lang=lang, page=page)
        live = await self._store.live(site)
        known = correction_set(live)
        own = id or correction_id(correction, known)
        replaced = await self._listed(site, [one for one in live if one.name == own], groups)
        trial = await self._try(site, own, correction, live)
        return trial.model_copy(update={"replaces": next(iter(replaced), None)})

    async def _try(self, site: str, id: str, correction: Correction, live: Sequence[TextVersion]) -> CorrectionTrial:
        others = CorrectionSet(tuple(one for one in correction_set(live).kept if one.id != id))
        return await self._trials(site, id, correction, others, self._glossary(site, live))

    def _glossary(self, site: str, live: Iterable[TextVersion]) -> Glossary:
        changed = next((one.text for one in live if one.kind == "glossary" and one.text), None)
        try:
            return read_glossary(changed) if changed is not None else self._settings.site(site).glossary
        except PromptError:  # of another release; workers go by the file, too
            return self._settings.site(site).glossary

    async def _page(self, site: str, given: str, lang: str, groups: Sequence[str]) -> CorrectedPage:
        """A page by its id or its address, in a language if it is there. Raises: BadCorrection, Retryable."""
        if "/" in given and (found := await self._pages.at(site, given, groups=groups)):
            names = [(one.page_id, one.lang) for one in found]
        else:
            names = sorted(await self._pages.readable(site, [given], groups))
        own = lang.partition("-")[0]
        names.sort(key=lambda name: name[1].partition("-")[0] != own)
        if not names:
            raise BadCorrection(f"page: site {site} has no page {given!r} that you may read")
        page_id, spoken = names[0]
        key = page_key(site, spoken, page_id)
        indexed = await self._pages.page(site, key, groups)
        receipt = (await self._receipts(site, [key])).get(key)
        first = indexed.chunks[0]
        return CorrectedPage(
            page_id=page_id,
            lang=spoken,
            title=first.title,
            url=first.url,
            revision=(receipt.searchable_revision if receipt else None) or 0,
            content=_content(indexed),
        )

    async def _listed(
        self, site: str, versions: Iterable[TextVersion], groups: Iterable[str]
    ) -> Sequence[ListedCorrection]:
        """Those that can be read."""
        found: list[tuple[TextVersion, Correction]] = []
        for one in versions:
            if one.kind == "corrections" and one.text is not None:
                try:
                    found.append((one, read_correction(one.text)))
                except PromptError:
                    continue
        mine, used = list(groups), await self._uses(site) if found else {}
        states = await self._states(site, [correction for _, correction in found], mine)
        return [
            ListedCorrection(
                id=one.name,
                **one.noted(),
                correction=_cleared(correction) if state == "hidden" else correction,
                state=state,
                gone_in=gone if state == "in-force" else (),
                used=used.get(one.name, 0),
            )
            for (one, correction), (state, gone) in zip(found, states, strict=True)
        ]

    async def _states(
        self, site: str, corrections: Sequence[Correction], groups: Sequence[str]
    ) -> Sequence[tuple[CorrectionState, tuple[str, ...]]]:
        """The state of each, and the languages in which its page is gone."""
        pages = {(one.page.page_id, one.page.lang): one.page for one in corrections if one.page is not None}
        if not pages:
            return [("in-force", ())] * len(corrections)
        keys = {name: page_key(site, name[1], name[0]) for name in pages}
        receipts = await self._receipts(site, keys.values())
        readable = await self._pages.readable(site, {id for id, _ in pages}, groups)
        spoken = {id for id, _ in readable}
        languages = self._settings.site(site).languages
        states: list[tuple[CorrectionState, tuple[str, ...]]] = []
        for one in corrections:
            if one.page is None:
                states.append(("in-force", ()))
                continue
            name = (one.page.page_id, one.page.lang)
            receipt = receipts.get(keys[name])
            there = name in readable if one.kind == "answer" else one.page.page_id in spoken
            if not there:
                gone = receipt is None or receipt.searchable_revision is None
                states.append(("page-gone" if gone else "hidden", ()))
            elif one.kind == "page":
                states.append(("in-force", _without(one.page, languages, readable)))
            elif receipt is not None and receipt.searchable_revision == one.page.revision:
                states.append(("in-force", ()))
            else:
                same = _content(await self._pages.page(site, keys[name], groups)) == one.page.content
                states.append(("in-force" if same else "page-changed", ()))
        return states


def _without(page: CorrectedPage, languages: Iterable[str], readable: frozenset[PageName]) -> tuple[str, ...]:
    """The languages whose visitors are shown neither their own version of a pinned page nor the one that was pinned."""
    if (page.page_id, page.lang) in readable:
        return ()
    there = {lang.partition("-")[0] for id, lang in readable if id == page.page_id}
    return tuple(lang for lang in dict.fromkeys((page.lang, *languages)) if lang.partition("-")[0] not in there)


def _place(site: str, id: str) -> Place:
    return Place(site, "corrections", id)


def _content(page: IndexedPage) -> str:
    return page_content(chunk.text for chunk in page.chunks if chunk.field == "content")


def _cleared(correction: Correction) -> Correction:
    """Without what its page says: its reader may not read that."""
    page = correction.page and correction.page.model_copy(update={"title": "", "url": ""})
    return correction.model_copy(update={"page": page, "text": HIDDEN})


def _kept(trial: CorrectionTrial) -> CorrectionTrial:
    """Raises: BadCorrection: it would be refused."""
    match trial.refused:
        case None:
            return trial
        case "circle":
            raise BadCorrection(f"words would mean each other in a circle: {' → '.join(trial.circle)}")
        case "says-nothing":
            name = trial.correction.names[0]
            raise BadCorrection(f"{name!r} says nothing of what it is about: it would answer anything")
        case "catches-all":
            some = "; ".join(one.question for one in trial.questions[:5])
            found = f"{trial.answered} of {trial.logged} questions of the log"
            raise BadCorrection(f"it would answer {found}, such as: {some}")
