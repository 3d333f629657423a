"""The benchmarks of what visitors are shown: search, quotations, the gate, citations; and what fits their figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.bench.given import Data, names, numbers
from cli.output import explained

app = typer.Typer()


@app.command()
def quality(
    data: Data,
    langs: Annotated[str, typer.Option(help="Comma-separated: pages and questions in that language.")] = "en,de",
    cross: Annotated[
        str, typer.Option(help="Comma-separated pairs; `de:en` asks in German on English pages.")
    ] = "de:en",
    peers: Annotated[bool, typer.Option(help="LlamaIndex, Haystack and LangChain beside it.")] = True,
    quotations: Annotated[bool, typer.Option(help="Answers without a model, too.")] = True,
    embedder: Annotated[str, typer.Option(help="As PAGEWIRE_EMBEDDER.")] = "lite",
) -> None:
    """Right page first, answer within the context, answers by quoting: ours beside the peers'.

    Vectors are kept in PAGEWIRE_HOME/bench; the second run takes seconds where the first takes minutes.

    Example: pagewire bench quality --data xquad --langs en,de --cross de:en
    """
    from bench import quality

    quality.main(data, names(langs) + names(cross), peers, quotations, embedder)


@app.command()
def gate(
    data: Data,
    langs: Annotated[str, typer.Option(help="Comma-separated: pages and questions in that language.")] = "en,de",
    cross: Annotated[
        str, typer.Option(help="Comma-separated pairs; `de:en` asks in German on English pages.")
    ] = "de:en",
    fit: Annotated[bool, typer.Option("--fit", help="Fit the weights and print them for the profile.")] = False,
    charts: Annotated[Path | None, typer.Option(help="Folder for the curve and the calibration, as SVG.")] = None,
    embedder: Annotated[str, typer.Option(help="As PAGEWIRE_EMBEDDER.")] = "lite",
) -> None:
    """Questions that cannot be answered: how many are refused, and how many others with them.

    Example: pagewire bench gate --data xquad --langs en --cross ""
    """
    from bench import gate

    gate.main(data, names(langs) + names(cross), embedder, fit, charts)


@app.command()
def visitors(
    part: Annotated[
        str, typer.Option(help="`tune` to look at, `hold-out` to report (its single answers are not shown), or `all`.")
    ] = "tune",
    show: Annotated[bool, typer.Option("--show", help="Print the questions that were not answered usefully.")] = False,
    without: Annotated[
        str, typer.Option(help="Instead: what is left without a part of the search, or without `each`.")
    ] = "",
    site: Annotated[str, typer.Option(help="`demo`, the sample site, or `radhaus`, a bicycle shop.")] = "demo",
    shared: Annotated[bool, typer.Option("--shared", help="The site shares its index with the other one.")] = False,
) -> None:
    """Everyday questions on an invented site: useful answers, wrong material, false refusals, per kind and language.

    Example: pagewire bench visitors --part hold-out
    """
    from bench import ablation, visitors

    _known_site(site, "--site")
    if without:
        known = [each for each in ablation.WITHOUT if each != "nothing"]
        if without not in (*known, "each"):
            raise typer.BadParameter(f"must be each, or one of: {', '.join(known)}", param_hint="--without")
        ablation.main(site, known if without == "each" else [without])
        return

    if part not in ("tune", "hold-out", "all"):
        raise typer.BadParameter("must be tune, hold-out or all", param_hint="--part")
    visitors.main(site, part, show, shared)  # type: ignore[arg-type]


@app.command(name="small-sites")
def small_sites() -> None:
    """Ask sites of one to eight pages what they answer and what they do not: useful, wrong material, false refusals.

    Example: pagewire bench small-sites
    """
    from bench import small_sites as bench

    bench.main()


@app.command()
def citations(
    part: Annotated[
        str, typer.Option(help="`tune` to look at, `report` to report (its single sentences are not shown), or `all`.")
    ] = "report",
    show: Annotated[bool, typer.Option("--show", help="Print the sentences that were judged wrongly.")] = False,
    judge: Annotated[
        str, typer.Option(help="Asked beside the rules: `none`, the `model` or the `reranker` of the settings.")
    ] = "none",
) -> None:
    """True and false sentences against the passages they cite: which are found not to be borne out. Needs no system.

    Example: pagewire bench citations --part tune --show
    """
    from bench import citations

    if part not in ("tune", "report", "all"):
        raise typer.BadParameter("must be tune, report or all", param_hint="--part")
    if judge not in ("none", "model", "reranker"):
        raise typer.BadParameter("must be none, model or reranker", param_hint="--judge")

    with explained():
        citations.main(part, show, judge)  # type: ignore[arg-type]


@app.command()
def retrieval(
    chunks: Annotated[str, typer.Option(help="Comma-separated sizes, multiples of 25.")] = "10000",
    questions: Annotated[int, typer.Option(min=10, help="Questions asked each way.")] = 200,
    visitors: Annotated[int, typer.Option(min=1, help="At once, for the throughput.")] = 8,
) -> None:
    """The retrieve stage's work against one raw kNN request to Elasticsearch.

    Example: pagewire bench retrieval --chunks 10000,100000
    """
    from bench import retrieval

    retrieval.main(numbers(chunks), questions, visitors)


@app.command()
def sureness(
    sites: Annotated[str, typer.Option(help="Comma-separated: whose questions it is fitted on.")] = "demo,radhaus",
) -> None:
    """Fit how sure an embedder's best sentence is, on the tuned parts of the everyday questions.

    Example: pagewire bench sureness
    """
    from bench import sureness as bench

    for site in names(sites):
        _known_site(site, "--sites")
    bench.main(names(sites))


@app.command(name="follow-ups")
def follow_ups() -> None:
    """Fit whether a question leans on the one before it, on follow-ups and changes of topic on the sample site.

    Example: pagewire bench follow-ups
    """
    from bench import follow_ups as bench

    bench.main()


@app.command()
def floors(data: Data, embedder: Annotated[str, typer.Option(help="As PAGEWIRE_EMBEDDER.")] = "lite") -> None:
    """Cosines of right and of random pairs, and the similarity floors that follow from them.

    Example: pagewire bench floors --data xquad --embedder bge-m3
    """
    from bench import floors

    floors.main(data, embedder=embedder)


@app.command()
def common(
    data: Data,
    langs: Annotated[str, typer.Option(help="Comma-separated.")] = "de,en,ar,ro,th,zh",
    embedder: Annotated[str, typer.Option(help="As PAGEWIRE_EMBEDDER.")] = "lite",
) -> None:
    """What all of an embedder's vectors have in common, for its profile: without it they tell texts apart better.

    Example: pagewire bench common --data xquad --embedder bge-m3
    """
    from bench import common as bench

    bench.main(data, langs.split(","), embedder)


@app.command()
def engine(data: Data, langs: Annotated[str, typer.Option(help="Comma-separated.")] = "en,de") -> None:
    """The bundled model as we run it against the engine that its weights come with. Needs no system.

    Example: pagewire bench engine --data xquad --langs en,de,zh
    """
    from bench import engine as bench

    bench.main(data, langs.split(","))


@app.command()
def embedder(
    model: Annotated[Path | None, typer.Option(help="Folder with bge-m3's weights.")] = None,
    random: Annotated[
        bool, typer.Option("--random", help="Weights by chance: of bge-m3's size on a GPU, small on a CPU.")
    ] = False,
    data: Annotated[
        Path | None, typer.Option(help="Folder with xquad.en.json; without it, generated texts are embedded.")
    ] = None,
    texts: Annotated[int, typer.Option(min=1, help="Texts embedded, at most; thousands on a GPU.")] = 200,
    batches: Annotated[str, typer.Option(help="Comma-separated: texts at once of FlagEmbedding.")] = "8,32,128,256",
    slice_tokens: Annotated[
        str, typer.Option(help="Comma-separated: tokens at once of ours; without it, as set for the device.")
    ] = "",
    questions: Annotated[int, typer.Option(min=1, help="Questions asked for each figure.")] = 50,
) -> None:
    """bge-m3 as Pagewire asks it against FlagEmbedding alone, and how long questions take meanwhile.

    Needs `make setup-bge`; starts no system, and is not part of `pagewire bench all`.

    Example: pagewire bench embedder --random --texts 2000 --slice-tokens 1500,3000,6000,12000
    """
    from bench import embedder as bench

    if random == (model is not None):
        raise typer.BadParameter("give either --model FOLDER or --random")
    bench.main(model, data, texts, numbers(batches), numbers(slice_tokens) if slice_tokens else [], questions)


@app.command()
def widget(
    rounds: Annotated[int, typer.Option(help="First openings to measure.")] = 20,
) -> None:
    """Bytes of the widget, and milliseconds until its panel is painted. Needs Chromium.

    Example: pagewire bench widget --rounds 50
    """
    from bench import widget as bench

    bench.main(rounds)


def _known_site(site: str, option: str) -> None:
    """Raises: typer.BadParameter."""
    from bench.visitors import ROOTS

    if site not in ROOTS:
        raise typer.BadParameter(f"must be of {', '.join(ROOTS)}: {site}", param_hint=option)
