"""What users would pick instead: LlamaIndex, Haystack and LangChain as their documentation sets them up.

    page text ─ their splitter ─▶ chunks ─ our embedder ─▶ their store ─ their retrievers ─▶ chunks, best first

Everything is theirs but the embedder and the question. They are an extra that nothing else needs: where it is not
installed, the benchmark says so and runs without them.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

from adapters.embedders.base import Vectors
from bench.xquad import Corpus

INSTALL = "pip install --editable '.[peers]'"
DEEP = 30  # chunks retrieved, so that there are five pages among them
HAYSTACK_JOINED = 10  # chunks each retriever gives the joiner, and the joiner gives: its defaults

Chunk = tuple[str, str]  # page, text
Ask = Callable[[str], Sequence[Chunk]]
Pages = Mapping[str, str]  # page -> title and paragraphs, joined by blank lines


class Model(Protocol):
    """The embedder (bench.vectors)."""

    async def passages(self, texts: Sequence[str]) -> Vectors: ...

    async def query(self, text: str) -> Vectors: ...


@dataclass(frozen=True)
class Embed:
    """The embedder as the peers want it: without `await`, lists of numbers. Called from threads of their own."""

    model: Model
    loop: asyncio.AbstractEventLoop

    def passages(self, texts: Sequence[str]) -> list[list[float]]:
        found: list[list[float]] = (
            asyncio.run_coroutine_threadsafe(self.model.passages(texts), self.loop).result().tolist()
        )
        return found

    def query(self, text: str) -> list[float]:
        found: list[float] = asyncio.run_coroutine_threadsafe(self.model.query(text), self.loop).result().tolist()
        return found


def missing() -> str | None:
    """What is not installed, and the command that installs it; None if all peers are there."""
    for name in (
        "llama_index.core",
        "llama_index.retrievers.bm25",
        "haystack",
        "langchain_classic",
        "langchain_community",
    ):
        try:
            _load(name)
        except ImportError as err:
            return f"{err.name or name} is not installed: {INSTALL}"
    return None


async def retrieved(corpus: Corpus, questions: Sequence[str], model: Model) -> dict[str, list[list[Chunk]]]:
    """Chunks for each question, best first, by the name of the peer."""
    pages = {article.id: "\n\n".join((article.title, *article.paragraphs)) for article in corpus.articles}
    embed = Embed(model, asyncio.get_running_loop())
    found: dict[str, list[list[Chunk]]] = {}
    for build in (_llama_index, _haystack, _langchain):
        found |= await asyncio.to_thread(_asked, build, pages, embed, questions)
    return found


def _asked(
    build: Callable[[Pages, Embed], Mapping[str, Ask]], pages: Pages, embed: Embed, questions: Iterable[str]
) -> dict[str, list[list[Chunk]]]:
    asked = list(questions)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about their own futures
        return {name: [list(ask(question)) for question in asked] for name, ask in build(pages, embed).items()}


def _llama_index(pages: Pages, embed: Embed) -> Mapping[str, Ask]:
    """SentenceSplitter() = 1024 tokens / 200; reciprocal rank fusion with BM25Retriever (English stemmer)."""
    core, embeddings = _load("llama_index.core"), _load("llama_index.core.embeddings")
    retrievers, llms = _load("llama_index.core.retrievers"), _load("llama_index.core.llms")
    bm25 = _load("llama_index.retrievers.bm25")

    class Ours(embeddings.BaseEmbedding):  # type: ignore[misc, name-defined]
        def _get_text_embedding(self, text: str) -> list[float]:
            return embed.passages([text])[0]

        def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
            return embed.passages(texts)

        def _get_query_embedding(self, query: str) -> list[float]:
            return embed.query(query)

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return embed.query(query)

    documents = [core.Document(text=text, doc_id=page) for page, text in pages.items()]
    ours = Ours()
    splitter = _load("llama_index.core.node_parser").SentenceSplitter()
    nodes = (
        _load("llama_index.core.ingestion").IngestionPipeline(transformations=[splitter, ours]).run(documents=documents)
    )
    dense = core.VectorStoreIndex(nodes, embed_model=ours).as_retriever(similarity_top_k=DEEP)
    words = bm25.BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=DEEP)
    hybrid = retrievers.QueryFusionRetriever(
        [dense, words],
        llm=llms.MockLLM(),
        similarity_top_k=DEEP,
        num_queries=1,
        mode="reciprocal_rerank",
        use_async=False,
    )

    def asking(retriever: Any) -> Ask:
        return lambda question: [(hit.node.ref_doc_id, hit.node.get_content()) for hit in retriever.retrieve(question)]

    return {"LlamaIndex": asking(dense), "LlamaIndex hybrid": asking(hybrid)}


def _haystack(pages: Pages, embed: Embed) -> Mapping[str, Ask]:
    """DocumentSplitter() = 200 words / 0; reciprocal rank fusion with BM25, ten of each."""
    haystack, memory = _load("haystack"), _load("haystack.components.retrievers.in_memory")
    splitter = _load("haystack.components.preprocessors").DocumentSplitter()
    splitter.warm_up()
    whole = [haystack.Document(content=text, meta={"page": page}) for page, text in pages.items()]
    documents = splitter.run(documents=whole)["documents"]
    for document, vector in zip(documents, embed.passages([each.content for each in documents]), strict=True):
        document.embedding = vector
    store = _load("haystack.document_stores.in_memory").InMemoryDocumentStore()
    store.write_documents(documents)
    dense = memory.InMemoryEmbeddingRetriever(store)
    words = memory.InMemoryBM25Retriever(store)
    joiner = _load("haystack.components.joiners").DocumentJoiner(
        join_mode="reciprocal_rank_fusion", top_k=HAYSTACK_JOINED
    )

    def by_vector(question: str, size: int) -> list[Any]:
        found: list[Any] = dense.run(query_embedding=embed.query(question), top_k=size)["documents"]
        return found

    def by_both(question: str) -> list[Any]:
        lists = [by_vector(question, HAYSTACK_JOINED), words.run(query=question, top_k=HAYSTACK_JOINED)["documents"]]
        found: list[Any] = joiner.run(documents=lists)["documents"]
        return found

    def chunks(documents: Iterable[Any]) -> list[Chunk]:
        return [(document.meta["page"], document.content) for document in documents]

    return {
        "Haystack": lambda question: chunks(by_vector(question, DEEP)),
        "Haystack hybrid": lambda question: chunks(by_both(question)),
    }


def _langchain(pages: Pages, embed: Embed) -> Mapping[str, Ask]:
    """RecursiveCharacterTextSplitter(1000, 200) as documented; EnsembleRetriever .5/.5 with BM25Retriever."""
    embeddings = _load("langchain_core.embeddings")

    class Ours(embeddings.Embeddings):  # type: ignore[misc, name-defined]
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return embed.passages(texts)

        def embed_query(self, text: str) -> list[float]:
            return embed.query(text)

    splitter = _load("langchain_text_splitters").RecursiveCharacterTextSplitter(chunk_size=1000, chunk_overlap=200)
    documents = splitter.create_documents(list(pages.values()), metadatas=[{"page": page} for page in pages])
    store = _load("langchain_core.vectorstores").InMemoryVectorStore(Ours())
    store.add_documents(documents)
    dense = store.as_retriever(search_kwargs={"k": DEEP})
    words = _load("langchain_community.retrievers").BM25Retriever.from_documents(documents, k=DEEP)
    hybrid = _load("langchain_classic.retrievers").EnsembleRetriever(retrievers=[dense, words], weights=[0.5, 0.5])

    def asking(retriever: Any) -> Ask:
        return lambda question: [(hit.metadata["page"], hit.page_content) for hit in retriever.invoke(question)]

    return {"LangChain": asking(dense), "LangChain hybrid": asking(hybrid)}


def _load(name: str) -> Any:
    return import_module(name)
