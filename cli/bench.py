"""`pagewire bench`: the benchmarks of `bench/`, loaded when wanted."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from cli.output import NOT_SO, complain, explained

app = typer.Typer(
    help="Benchmarks: each prints a table and writes .bench/NAME.json. They start a system of their own.",
    no_args_is_help=True,
)
Data = Annotated[Path, typer.Option(help="Folder with xquad.LANG.json.")]


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

    quality.main(data, _names(langs) + _names(cross), peers, quotations, embedder)


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

    gate.main(data, _names(langs) + _names(cross), embedder, fit, charts)


@app.command()
def ingest(
    data: Data,
    lang: Annotated[str, typer.Option(help="Language of the pages.")] = "en",
    pages: Annotated[int, typer.Option(help="Pages imported, at most.")] = 48,
) -> None:
    """Bulk import against the embedder alone.

    Example: pagewire bench ingest --data xquad --lang en
    """
    from bench import ingest

    ingest.main(data, lang, pages)


@app.command()
def latency(rounds: Annotated[int, typer.Option(help="Questions and saves measured.")] = 60) -> None:
    """A question and a save through the bus against the same functions called directly.

    Example: pagewire bench latency --rounds 20
    """
    from bench import latency

    latency.main(rounds)


@app.command()
def streams(
    streams: Annotated[int, typer.Option(min=1, help="Visitors who read at once.")] = 100,
    tokens: Annotated[int, typer.Option(min=10, help="Tokens of each answer.")] = 200,
    interval: Annotated[float, typer.Option(min=0.001, help="Seconds between two of them.")] = 0.05,
) -> None:
    """Answers streamed to many at once through one gateway, against the same scripted model read directly.

    Example: pagewire bench streams --streams 10
    """
    from bench import streams as bench

    bench.main(streams, tokens, interval)


@app.command()
def transport(
    gateways: Annotated[int, typer.Option(min=1, help="Gateways that share the answers out.")] = 4,
    streams: Annotated[int, typer.Option(min=1, help="Readers at each, at once.")] = 50,
    events: Annotated[int, typer.Option(min=1, help="Events of each answer.")] = 100,
    interval: Annotated[float, typer.Option(min=0.001, help="Seconds between two of them.")] = 0.1,
) -> None:
    """What each of several gateways reads of all answers.

    Example: pagewire bench transport --gateways 2
    """
    from bench import transport as bench

    bench.main(gateways, streams, events, interval)


@app.command()
def gateway(
    streams: Annotated[int, typer.Option(min=1, help="Visitors who read at once.")] = 1000,
    events: Annotated[int, typer.Option(min=1, help="Events of each answer.")] = 100,
    interval: Annotated[float, typer.Option(min=0.001, help="Seconds between two of them.")] = 0.1,
    profile: Annotated[bool, typer.Option(help="Say where the time goes; the figures hold without it.")] = False,
) -> None:
    """What an event costs the gateway's processor, and how late it comes.

    Example: pagewire bench gateway --streams 100 --profile
    """
    from bench import gateway as bench

    bench.main(streams, events, interval, profile)


@app.command()
def restart(
    answers: Annotated[int, typer.Option(min=1, help="Answers under way.")] = 64,
    events: Annotated[int, typer.Option(min=0, help="Events of others in the log, before and after.")] = 50_000,
) -> None:
    """A worker starts again: how soon do the answers that were under way go on?

    Example: pagewire bench restart --events 1000
    """
    from bench import restart as bench

    bench.main(answers, events)


@app.command()
def rebuild(
    chunks: Annotated[str, typer.Option(help="Comma-separated sizes.")] = "10000",
    rounds: Annotated[int, typer.Option(min=1, help="Measured so often, alternating.")] = 2,
) -> None:
    """A rebuild from embeddings against `helpers.async_bulk` writing the same documents; memory.

    Example: pagewire bench rebuild --chunks 10000,100000
    """
    from bench import rebuild

    rebuild.main([int(size) for size in chunks.split(",")], rounds)


@app.command(name="rebuild-by-workers")
def rebuild_by_workers(
    pages: Annotated[int, typer.Option(min=4, help="Pages of the site.")] = 60,
    workers: Annotated[str, typer.Option(help="Comma-separated numbers of workers, beside one.")] = "4",
    milliseconds: Annotated[float, typer.Option(min=0, help="That each worker's model takes for a text.")] = 100.0,
) -> None:
    """A rebuild from changes by several workers against one, each with a simulated model of its own.

    Example: pagewire bench rebuild-by-workers --workers 2,4
    """
    from bench import rebuild_by_workers as bench

    bench.main(pages, [int(count) for count in workers.split(",")], milliseconds)


@app.command()
def shares(
    pages: Annotated[int, typer.Option(min=100, help="Pages of the large site.")] = 1_000,
    rounds: Annotated[int, typer.Option(min=1, help="Small sites, one after the other.")] = 3,
    milliseconds: Annotated[float, typer.Option(min=0, help="That the simulated model takes for a text.")] = 4.0,
) -> None:
    """A small site's 20 pages beside the import of a large one, over the same alone.

    Example: pagewire bench shares --pages 2000
    """
    from bench import shares as bench

    bench.main(pages, rounds, milliseconds)


@app.command()
def edits(
    data: Annotated[Path | None, typer.Option(help="Folder with xquad.LANG.json, for texts beside our own.")] = None,
    sizes: Annotated[str, typer.Option(help="Comma-separated chunk sizes.")] = "512,1000",
    edits: Annotated[int, typer.Option(min=15, help="Edits per text and size.")] = 3000,
) -> None:
    """Embeddings that a sentence inserted, changed or removed in a page of 50 chunks costs.

    Example: pagewire bench edits --data xquad --sizes 512
    """
    from bench import edits as bench

    bench.main(data, _numbers(sizes), edits)


@app.command()
def reimport(
    pages: Annotated[int, typer.Option(min=1, help="Pages imported.")] = 200,
    chunks: Annotated[int, typer.Option(min=1, help="Chunks a page, besides its title.")] = 5,
) -> None:
    """The same file imported twice: the second time nothing is embedded.

    Example: pagewire bench reimport --pages 1000
    """
    from bench import reimport

    reimport.main(pages, chunks)


@app.command()
def lanes(
    chunks: Annotated[int, typer.Option(min=25, help="Chunks of the site.")] = 20_000,
    saves: Annotated[int, typer.Option(min=2, help="Saves measured beside each load.")] = 60,
    pages: Annotated[int, typer.Option(min=1, help="Pages of the import; it must outlast the saves.")] = 200,
) -> None:
    """A save until searchable: idle, during an import, during rebuilds.

    Example: pagewire bench lanes --saves 40
    """
    from bench import lanes

    lanes.main(chunks, saves, pages)


@app.command()
def failures(
    minutes: Annotated[float, typer.Option(min=0.05, help="With a key that Elasticsearch refuses.")] = 20.0,
    saves: Annotated[int, typer.Option(min=4, help="Saves of a healthy site, idle and beside a broken one.")] = 160,
    scenes: Annotated[str, typer.Option(help="Comma-separated: `site`, `page`, `key`.")] = "site,page,key",
) -> None:
    """What a broken site, a page that kills its worker and a refused key cost their neighbours.

    Example: pagewire bench failures --minutes 5
    """
    from bench import failures

    wanted = [name.strip() for name in scenes.split(",")]
    if unknown := set(wanted) - set(failures.SCENES):
        raise typer.BadParameter(f"no such scene: {', '.join(sorted(unknown))}", param_hint="--scenes")
    failures.main(wanted, minutes, saves)


@app.command()
def scale(
    chunks: Annotated[str, typer.Option(help="Comma-separated sizes, multiples of 25.")] = "10000,100000",
    dims: Annotated[int, typer.Option(min=1, max=4096, help="Length of the vectors.")] = 384,
) -> None:
    """Rebuild, audit and search at several sizes: cost per chunk, memory, disk.

    Example: pagewire bench scale --chunks 10000 --dims 1024
    """
    from bench import scale

    scale.main(_numbers(chunks), dims)


@app.command()
def sizing(
    chunks: Annotated[str, typer.Option(help="Comma-separated sizes.")] = "1000000,100000000,1000000000",
    dims: Annotated[str, typer.Option(help="Comma-separated lengths of vectors, as measured.")] = "384,1024",
    markdown: Annotated[bool, typer.Option("--markdown", help="As in docs/reference/scale.md.")] = False,
) -> None:
    """What a site of any size needs: memory, disk, shards, partitions, workers, hours. Computed, nothing is run.

    Example: pagewire bench sizing --chunks 1000000 --dims 384
    """
    from bench import sizing

    sizing.main(_numbers(chunks), _numbers(dims), markdown)


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
    bench.main(model, data, texts, _numbers(batches), _numbers(slice_tokens) if slice_tokens else [], questions)


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

    retrieval.main(_numbers(chunks), questions, visitors)


@app.command()
def footprint() -> None:
    """Memory of the running system.

    Example: pagewire bench footprint
    """
    from bench import footprint

    footprint.main()


@app.command()
def attachments(
    pages: Annotated[int, typer.Option(min=1, help="At once.")] = 64,
    size: Annotated[int, typer.Option(min=1, max=20, help="MiB of each page's attachment.")] = 20,
) -> None:
    """Memory of a worker and its child that fetch and read large attachments. Needs what reads them.

    Example: pagewire bench attachments --pages 64
    """
    if find_spec("docx") is None:
        complain("bench attachments reads files of Word; `make setup-attachments` installs what does")
        raise typer.Exit(NOT_SO)
    from bench import attachments

    attachments.main(pages, size)


@app.command()
def widget(
    rounds: Annotated[int, typer.Option(help="First openings to measure.")] = 20,
) -> None:
    """Bytes of the widget, and milliseconds until its panel is painted. Needs Chromium.

    Example: pagewire bench widget --rounds 50
    """
    from bench import widget as bench

    bench.main(rounds)


@app.command()
def wordpress(
    data: Data,
    saves: Annotated[int, typer.Option(min=2, help="Saves measured.")] = 50,
    posts: Annotated[int, typer.Option(min=10, help="Posts of the first sync.")] = 1000,
) -> None:
    """A real WordPress: a save until it is found, what the plugin costs the editor, the first sync.

    From a checkout only: the WordPress is that of the tests.

    Example: pagewire bench wordpress --data xquad --posts 100
    """
    if find_spec("tests") is None:
        complain("bench wordpress runs from a checkout of Pagewire only: it uses the WordPress of its tests")
        raise typer.Exit(NOT_SO)
    from bench import wordpress

    wordpress.main(data, saves, posts)


@app.command("all")
def everything(data: Data) -> None:
    """All of them, one after the other.

    Example: pagewire bench all --data xquad
    """
    footprint()
    widget()
    latency()
    ingest(data)
    reimport()
    edits(data)
    lanes()
    failures()
    retrieval()
    rebuild()
    scale()
    sizing()
    quality(data)
    gate(data)


@app.command()
def visitors(
    part: Annotated[
        str, typer.Option(help="`tune` to look at, `hold-out` to report (its single answers are not shown), or `all`.")
    ] = "tune",
    show: Annotated[bool, typer.Option("--show", help="Print the questions that were not answered usefully.")] = False,
    without: Annotated[
        str, typer.Option(help="Instead: what is left without a part of the search, or without `each`.")
    ] = "",
) -> None:
    """Everyday questions on the sample site: useful answers, wrong material, false refusals, per kind and language.

    Example: pagewire bench visitors --part hold-out
    """
    from bench import ablation, visitors

    if without:
        known = [each for each in ablation.WITHOUT if each != "nothing"]
        if without not in (*known, "each"):
            raise typer.BadParameter(f"must be each, or one of: {', '.join(known)}", param_hint="--without")
        ablation.main(known if without == "each" else [without])
        return

    if part not in ("tune", "hold-out", "all"):
        raise typer.BadParameter("must be tune, hold-out or all", param_hint="--part")
    visitors.main(part, show)  # type: ignore[arg-type]


@app.command()
def gaps(
    part: Annotated[str, typer.Option(help="`tune` to look at, or `hold-out` to report.")] = "tune",
    embedder: Annotated[str, typer.Option(help="As PAGEWIRE_EMBEDDER.")] = "lite",
    questions: Annotated[int, typer.Option(min=0, help="Made-up questions for the time it takes; 0: none.")] = 10_000,
    show: Annotated[bool, typer.Option("--show", help="Print the groups, of the part to look at.")] = False,
) -> None:
    """Whether questions that mean the same fall together, in three languages and misspelled, and how long many take.
    Needs no system.

    Example: pagewire bench gaps --part hold-out
    """
    from bench import gaps as bench

    if part not in ("tune", "hold-out"):
        raise typer.BadParameter("must be tune or hold-out", param_hint="--part")
    bench.main(part, embedder, questions, show)  # type: ignore[arg-type]


@app.command()
def coverage(
    part: Annotated[str, typer.Option(help="`tune` to look at, or `hold-out` to report.")] = "tune",
    questions: Annotated[int, typer.Option(min=0, help="Made-up questions for the time it takes.")] = 10_000,
    pages: Annotated[int, typer.Option(min=0, help="Made-up pages for the time it takes; 0: none.")] = 10_000,
) -> None:
    """Whether topics that a site does not cover are named, and those that nobody asks for: pages of the sample site are
    taken away, and questions about others; and how long many pages and questions take.

    Example: pagewire bench coverage --part hold-out
    """
    from bench import coverage as bench

    if part not in ("tune", "hold-out"):
        raise typer.BadParameter("must be tune or hold-out", param_hint="--part")
    bench.main(part, questions, pages)  # type: ignore[arg-type]


@app.command()
def console(
    outcomes: Annotated[int, typer.Option(min=1, help="Made-up questions in the log.")] = 100_000,
    rounds: Annotated[int, typer.Option(min=1, help="Times that each page is asked for.")] = 20,
) -> None:
    """How long every page of the console and every filter takes over a full question log, at the server.

    Example: pagewire bench console --outcomes 100000
    """
    from bench import console as bench

    bench.main(outcomes, rounds)


@app.command()
def masking(
    part: Annotated[
        str, typer.Option(help="`tune` to look at, `hold-out` to report (its single cases are not shown), or `all`.")
    ] = "tune",
    show: Annotated[bool, typer.Option("--show", help="Print the cases that were masked wrongly.")] = False,
) -> None:
    """What of visitors' words is masked before it is logged: recall and precision, per kind and language. Needs no
    system.

    Example: pagewire bench masking --part hold-out
    """
    from bench import masking as bench

    if part not in ("tune", "hold-out", "all"):
        raise typer.BadParameter("must be tune, hold-out or all", param_hint="--part")
    bench.main(part, show)  # type: ignore[arg-type]


@app.command()
def sureness() -> None:
    """Fit how sure an embedder's best sentence is, on the tuned part of the everyday questions.

    Example: pagewire bench sureness
    """
    from bench import sureness as bench

    bench.main()


@app.command(name="small-sites")
def small_sites() -> None:
    """Ask sites of one to eight pages what they answer and what they do not: useful, wrong material, false refusals.

    Example: pagewire bench small-sites
    """
    from bench import small_sites as bench

    bench.main()


@app.command(name="site-bytes")
def site_bytes(
    sites: Annotated[int, typer.Option(min=2, help="Sites that share the change log.")] = 1_000,
) -> None:
    """What an audit and a rebuild of one small site read, where many share the change log.

    Example: pagewire bench site-bytes --sites 100
    """
    from bench import site_bytes as bench

    bench.main(sites)


@app.command(name="follow-ups")
def follow_ups() -> None:
    """Fit whether a question leans on the one before it, on follow-ups and changes of topic on the sample site.

    Example: pagewire bench follow-ups
    """
    from bench import follow_ups as bench

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


def _names(given: str) -> list[str]:
    return [name for name in given.split(",") if name]


def _numbers(given: str) -> list[int]:
    """Raises: typer.BadParameter."""
    try:
        return [int(number) for number in given.split(",")]
    except ValueError:
        raise typer.BadParameter(f"not whole numbers, separated by commas: {given}") from None


@app.command("gate-errors")
def gate_errors(
    sizes: Annotated[str, typer.Option(help="Comma-separated numbers of cases.")] = "100,300,1000",
    margin: Annotated[float, typer.Option(min=0.001, max=0.5, help="Loss that is put up with.")] = 0.03,
    draws: Annotated[int, typer.Option(min=1, help="Candidates of each kind.")] = 10_000,
) -> None:
    """How often `pagewire evaluate --against` lets a worse candidate through, or stops one that is as good: simulated.

    Example: pagewire bench gate-errors --sizes 300
    """
    from bench import gate_errors as bench

    bench.main(_numbers(sizes), margin, draws)


@app.command()
def evaluate(
    data: Data,
    lang: Annotated[str, typer.Option(help="Language of pages and questions.")] = "en",
    cases: Annotated[int, typer.Option(min=2, help="Questions asked, at most.")] = 1_000,
    keep: Annotated[
        Path | None, typer.Option(dir_okay=False, help="Write what came of each case, without times, to compare with.")
    ] = None,
) -> None:
    """`pagewire evaluate` over many cases without a model: time, and CPU of every process for a case; a run that is
    killed and begun again beside one that is not.

    Example: pagewire bench evaluate --data xquad --cases 1000
    """
    from bench import evaluation

    evaluation.main(data, lang, cases, keep)


@app.command("judge-errors")
def judge_errors(
    draws: Annotated[int, typer.Option(min=1, help="Sets of answers of each judge.")] = 2_000,
) -> None:
    """Whether what `pagewire judge-agreement` says of a judge is so: judges of known error, simulated.

    Example: pagewire bench judge-errors --draws 500
    """
    from bench import judge_errors as bench

    bench.main(draws)
