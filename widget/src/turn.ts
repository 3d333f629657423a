/** One question and its answer on the screen: what each event of the answer stream does to it. */

import type { Followed } from "./client";
import { element } from "./dom";
import { renderMarkdown, safeUrl } from "./markdown";
import { type ShownSource, sourceLink, sourceList } from "./sources";
import type { AskedTurn, Citation, Feedback } from "./wire";
import type { Say } from "./words";

const RELATED = 3; // pages offered when the answer cites none

export class Turn {
  readonly node: HTMLLIElement;
  requestId = "";
  feedback: Feedback | null = null;
  #status = element("p", { className: "status" });
  #text = element("div", { className: "text", dir: "auto" });
  #foot = element("div", { className: "foot" });
  #actions = element("div", { className: "actions", hidden: true });
  #trouble = "";
  #answer = "";
  #citations: Citation[] = [];
  #sources: ShownSource[] = [];
  #cited: ShownSource[] = [];
  #frame = 0;

  /** `heading`: the element of its headings. */
  constructor(
    readonly question: string,
    private readonly say: Say,
    private readonly heading: "h2" | "h3",
  ) {
    const asked = element("span", { className: "hidden", textContent: `${say("youAsked")} ` });
    const said = element("span", { dir: "auto", textContent: question });
    this.node = element(
      "li",
      { className: "turn busy" },
      element("p", { className: "question" }, asked, said),
      element("div", { className: "answer" }, this.#status, this.#text, this.#foot, this.#actions),
    );
    this.status(say("searching"));
  }

  get answered(): boolean {
    return this.#answer !== "";
  }

  /** The answer for a screen reader, once and whole: without the numbers of its sources. */
  get spoken(): string {
    const text = this.#text.cloneNode(true) as HTMLElement;
    for (const number of text.querySelectorAll("sup")) number.remove();
    for (const end of text.querySelectorAll("p, li, td, th, br, pre")) end.after(" ");
    return `${text.textContent} ${this.#trouble}`.replace(/\s+/g, " ").trim();
  }

  /** The answer to paste elsewhere, with its sources. */
  get copied(): string {
    const sources = this.#cited.map(({ n, title, url }) => `[${n}] ${title} ${safeUrl(url) ?? ""}`.trim());
    return [this.#answer, ...(sources.length ? [sources.join("\n")] : [])].join("\n\n");
  }

  /** What is going on; empty when text is arriving. */
  status(text: string): void {
    this.#status.textContent = text;
    this.#status.hidden = !text;
  }

  /** Show what was asked and answered before. */
  restore(kept: AskedTurn): void {
    this.requestId = kept.request_id;
    this.feedback = kept.feedback;
    if (kept.answer) this.#complete(kept.answer, kept.citations, kept.sources, kept.sources, kept.extractive);
    if (kept.state === "failed" || (kept.state === "answered" && !kept.answer)) this.fail(this.say("failed"));
    else if (kept.state === "stopped") this.fail(this.say("stopped"));
    else this.end();
  }

  /** What a visitor can do with the answer: in place of what was there. */
  offer(...parts: Node[]): void {
    this.#actions.replaceChildren(...parts);
    this.#actions.hidden = !parts.length;
  }

  /** Show one event of the stream. */
  show(event: Followed): void {
    const say = this.say;
    switch (event.type) {
      case "accepted":
        this.requestId = event.request_id;
        break;
      case "rephrased":
        this.status(say("searchingFor", { question: event.question }));
        break;
      case "sources":
        this.#sources = event.sources;
        if (event.sources.length) this.status(say("reading", { count: event.sources.length }));
        break;
      case "token":
        this.#answer += event.text;
        this.status("");
        this.#draw();
        break;
      case "citation":
        this.#citations.push(event);
        this.#draw();
        break;
      case "restart":
        this.#answer = "";
        this.#citations = [];
        this.status(say("again"));
        this.#draw();
        break;
      case "reconnecting":
        this.status(say("reconnecting"));
        break;
      case "answer":
        this.#complete(event.text, event.citations, event.sources, event.sources.filter(({ cited }) => cited), event.extractive);
        break;
    }
  }

  /** Nothing more comes. */
  end(): void {
    this.node.classList.remove("busy");
    if (this.#frame) this.#drawNow();
    this.status("");
  }

  /** End with a plain sentence, and with a way on where there is one. */
  fail(message: string, way?: HTMLElement): void {
    this.end();
    this.#trouble = message;
    this.#foot.append(element("p", { className: "trouble" }, message, ...(way ? [" ", way] : [])));
  }

  #complete(
    text: string,
    citations: Citation[],
    sources: ShownSource[],
    cited: ShownSource[],
    extractive: boolean,
  ): void {
    this.#answer = text;
    this.#citations = citations;
    this.#sources = sources;
    this.#cited = cited;
    this.status("");
    this.#drawNow();
    this.#foot.replaceChildren(...this.#footnotes(extractive));
  }

  /** At most once a frame, however fast the tokens come. */
  #draw(): void {
    this.#frame ||= requestAnimationFrame(() => this.#drawNow());
  }

  #drawNow(): void {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    const position = utf16Positions(this.#answer);
    const marks = this.#citations
      .flatMap((citation) => {
        const node = this.#mark(citation);
        return node ? [{ at: position(citation.end), node }] : [];
      })
      .sort((a, b) => a.at - b.at);
    const fresh = [...renderMarkdown(this.#answer, marks).childNodes];
    // What stays as it was keeps the visitor's selection and focus.
    const changed = fresh.findIndex((node, i) => !this.#text.childNodes[i]?.isEqualNode(node));
    const kept = changed < 0 ? fresh.length : changed;
    for (const old of [...this.#text.childNodes].slice(kept)) old.remove();
    this.#text.append(...fresh.slice(kept));
  }

  /** The raised number that leads to the cited sentence. */
  #mark({ n, quote }: Citation): HTMLElement | null {
    const source = this.#sources.find((candidate) => candidate.n === n);
    if (!source) return null; // a number nobody can follow is worse than none
    const link = sourceLink(source, quote, String(n));
    if (link instanceof HTMLAnchorElement) link.ariaLabel = this.say("source", { n, title: source.title });
    link.title = source.title;
    return element("sup", {}, link);
  }

  #footnotes(extractive: boolean): HTMLElement[] {
    const notes: HTMLElement[] = [];
    if (extractive && this.#citations.length) {
      notes.push(element("p", { className: "note", textContent: this.say("quoted") }));
    }
    const heading = (textContent: string) => element(this.heading, { textContent });
    if (this.#cited.length) {
      notes.push(sourceList(this.say, heading(this.say("sources")), this.#cited, this.#citations, true));
      return notes;
    }
    const pages = [...new Map(this.#sources.map((source) => [source.url, source])).values()].slice(0, RELATED);
    // A canned reply names its pages itself.
    const linked = new Set([...this.#text.querySelectorAll("a")].map(({ href }) => href));
    if (pages.length && !pages.some(({ url }) => linked.has(safeUrl(url) ?? ""))) {
      notes.push(sourceList(this.say, heading(this.say("related")), pages, [], false));
    }
    return notes;
  }
}

/** Positions count Unicode characters on the wire, and UTF-16 units in this language. */
function utf16Positions(text: string): (position: number) => number {
  const starts = [0];
  let end = 0;
  for (const character of text) starts.push((end += character.length));
  return (position) => starts[Math.min(position, starts.length - 1)] ?? end;
}
