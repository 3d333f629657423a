/** One question and its answer on the screen, updated by the events of the answer stream. */

import type { Followed } from "./client";
import type { ChatContext } from "./context";
import { spoken, writtenOut } from "./copying";
import { directionOf } from "./direction";
import { element, textButton } from "./dom";
import { handover } from "./handover";
import { type Mark, renderMarkdown, safeUrl } from "./markdown";
import { stepsFold } from "./steps";
import { type NumberedSource, type ShownSource, citedSources, numbered, relatedPages, sourceLink, wholeTable } from "./sources";
import type { Answered, AskedTurn, Citation, Doubted, Feedback, QuestionMeaning, WholeTable } from "./wire";

/** The fields of a complete answer, streamed or stored. */
type Whole = Answered | AskedTurn;

const RELATED = 3; // pages offered when the answer cites none ...
const MORE = 2; // ... or only shows a place on one
const LONG = 8_000; // ms without an event until the visitor reads that it takes long
const SECOND = 1_000; // ms
const RESTS = 3; // pause between two renderings of a growing answer, as a multiple of the last one's duration
const UNITS = [["hour", 3_600], ["minute", 60], ["second", 1]] as const; // in seconds

export class Turn {
  readonly node: HTMLLIElement;
  readonly asked = element("p", { className: "question" });
  requestId = "";
  feedback: Feedback | null = null;
  courtesy = false; // a courtesy has no actions below it
  rating: HTMLElement[] | null = null; // the buttons for feedback
  #status = element("p", { className: "status" });
  #text = element("div", { className: "text prose" });
  #foot = element("div", { className: "foot" });
  #person = element("div", { className: "person", hidden: true });
  #handsOver = false;
  #narrower = element("section", { className: "narrower", hidden: true });
  #next = element("section", { className: "narrower", hidden: true });
  #actions = element("div", { className: "actions", hidden: true });
  #trouble = "";
  #answer = "";
  #citations: Citation[] = [];
  #doubted: Doubted[] = [];
  #html = true; // as models write it; what is quoted is as its page shows it
  #sources: ShownSource[] = [];
  #tables: WholeTable[] = []; // known with the whole answer
  #cited: ShownSource[] = []; // as the gateway says; while the answer arrives, its citations tell
  #searched: string; // the question as it was searched for
  #frame = 0;
  #rest = 0; // until when it is not drawn again
  #patience = 0; // the timer of a long wait

  constructor(
    readonly question: string,
    private readonly context: ChatContext,
  ) {
    const { say } = context;
    this.#searched = question;
    this.asked.append(
      element("span", { className: "hidden", textContent: `${say("youAsked")} ` }),
      element("span", { dir: "auto", textContent: question }),
    );
    this.node = element(
      "li",
      { className: "turn busy" },
      this.asked,
      element("div", { className: "answer" }, this.#text, this.#status, this.#narrower, this.#foot, this.#person, this.#actions, this.#next),
    );
    this.status(say("searching"));
  }

  get answered(): boolean {
    return this.#answer !== "";
  }

  /** The answer for a screen reader, once and whole: without the numbers of its sources. */
  get spoken(): string {
    return `${spoken(this.#text)} ${this.#trouble}`.replace(/\s+/g, " ").trim();
  }

  /** The answer to paste elsewhere, with its sources. */
  get copied(): string {
    const sources = this.#numbered().map(
      ({ number, source }) => `[${number}] ${source.title} ${safeUrl(source.url) ?? ""}`.trim(),
    );
    return [writtenOut(this.#text), ...(sources.length ? [sources.join("\n")] : [])].join("\n\n");
  }

  /** Show the current activity; empty: none. If it takes long, a message appears once. */
  status(text: string): void {
    clearTimeout(this.#patience);
    if (text !== this.#status.textContent) this.#status.textContent = text;
    this.#status.hidden = !text;
    if (!text) return;
    this.#patience = setTimeout(() => {
      this.#status.textContent = `${text} ${this.context.say("long")}`;
      this.context.announce(this.#status.textContent);
    }, LONG);
  }

  /** Show what was asked and answered before. */
  restore(kept: AskedTurn): void {
    this.requestId = kept.request_id;
    this.feedback = kept.feedback;
    this.#tables = kept.tables ?? []; // of a gateway that is a version older
    this.#handsOver = kept.handover ?? false;
    this.courtesy = kept.generated_by === "site" && kept.grade === 0 && !kept.sources.length;
    if (kept.withheld) this.#foot.replaceChildren(element("p", { className: "note", textContent: this.context.say("withheld") }));
    if (kept.answer) this.#complete(kept.answer, kept, kept.sources);
    if (kept.state === "failed" || (kept.state === "answered" && !kept.answer && !kept.withheld)) this.fail(this.context.say("failed"));
    else if (kept.state === "stopped") this.stop();
    else this.end();
  }

  /** Replace the actions below the answer. */
  offer(...parts: Node[]): void {
    this.#actions.replaceChildren(...parts);
    this.#actions.hidden = !parts.length;
  }

  /** The form for a message to a person, where the answer offers it; once: a message may be half written. */
  handOver(conversation: string): void {
    if (!this.#handsOver || this.#person.hasChildNodes()) return;
    this.#person.append(handover(this.context, this.courtesy ? "" : this.question, conversation, this.courtesy));
    this.#person.hidden = false;
  }

  /** Narrower questions, for a question that fits many pages; `ask` is called with the chosen one. */
  narrow(topics: readonly QuestionMeaning[], ask: (question: string) => void): void {
    const choices = topics.map(({ label, question }) => element("li", {}, textButton(label, () => ask(question))));
    const title = element(this.context.subheading, { textContent: this.context.say("narrower") });
    this.#narrower.replaceChildren(title, element("ul", { dir: "auto" }, ...choices));
    this.#narrower.hidden = !topics.length;
  }

  /** Frequent questions about the answer's pages; `ask` is called with the chosen one. */
  lead(questions: readonly string[], ask: (question: string) => void): void {
    const choices = questions.map((question) => element("li", {}, textButton(question, () => ask(question))));
    const title = element(this.context.subheading, { textContent: this.context.say("next") });
    this.#next.replaceChildren(title, element("ul", { dir: "auto" }, ...choices));
    this.#next.hidden = !questions.length;
  }

  /** Ids of the pages that the answer cites. */
  get cited(): string[] {
    const pages = this.#numbered().filter(({ source }) => source.kind !== "tool");
    return [...new Set(pages.map(({ source }) => source.page_id))];
  }

  /** Show one event of the stream. */
  show(event: Followed): void {
    const { say } = this.context;
    switch (event.type) {
      case "accepted":
        this.requestId = event.request_id;
        break;
      case "rephrased":
        this.#searched = event.question;
        this.courtesy = event.mode === "courtesy";
        this.status(say("searchingFor", { question: event.question }));
        break;
      case "sources":
        this.#sources = event.sources;
        if (event.sources.length) this.status(say("reading", { count: event.sources.length }));
        break;
      case "token":
        this.#answer += event.text;
        this.status(say("writing"));
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
      case "offline":
        this.status(say("offline"));
        break;
      case "answer":
        this.#tables = event.tables;
        this.#handsOver = event.handover ?? false; // of a gateway that is a version older
        this.#complete(event.text, event, event.sources.filter(({ cited }) => cited));
        this.#foot.append(...[stepsFold(say, this.#searched, event.sources.length, event) ?? []].flat());
        break;
    }
  }

  /** End without further events. */
  end(): void {
    this.node.classList.remove("busy");
    if (this.#frame) this.#drawNow();
    this.status("");
  }

  /** End at the current text: the visitor has stopped the answer. */
  stop(): void {
    this.end();
    const stopped = element("p", { className: "note", textContent: this.context.say("stopped") });
    this.#trouble = this.context.say("stopped");
    this.#foot.replaceChildren(...(this.#numbered().length ? this.#footnotes() : []), stopped);
  }

  /** Show that an action on the answer has failed. */
  tell(message: string): void {
    this.#foot.querySelector(":scope > .told")?.remove();
    this.#foot.append(element("p", { className: "trouble told", textContent: message }));
  }

  /** End with a message, and with a button to try again, if that helps; after `wait` seconds, if known. */
  fail(message: string, way?: HTMLElement, wait = 0): void {
    this.end();
    this.#trouble = message;
    const sentence = element("p", { className: "trouble" }, message, " ");
    this.#foot.append(sentence);
    if (wait <= 0) {
      if (way) sentence.append(way);
      return;
    }
    const rest = element("span");
    sentence.append(rest);
    const until = Date.now() + wait * SECOND;
    const count = () => {
      const left = Math.ceil((until - Date.now()) / SECOND);
      rest.textContent = this.context.say("askAgain", { when: fromNow(left, this.context.say.lang) });
      if (left > 0 && this.node.isConnected) return;
      clearInterval(timer);
      rest.replaceWith(...(way ? [way] : []));
    };
    const timer = setInterval(count, SECOND);
    count();
    this.#trouble = `${message} ${rest.textContent}`;
  }

  #complete(text: string, whole: Whole, cited: ShownSource[]): void {
    this.#answer = text;
    this.#citations = whole.citations;
    this.#doubted = whole.doubted ?? []; // of a gateway that is a version older
    this.#html = whole.generated_by !== "quotation";
    this.#sources = whole.sources;
    this.#cited = cited;
    this.status("");
    this.#drawNow();
    this.#foot.replaceChildren(...this.#footnotes(whole));
  }

  /** At most once a frame, and a quarter of the time at most, however fast the tokens come and long the answer is. */
  #draw(): void {
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      if (performance.now() < this.#rest) this.#draw();
      else this.#drawNow();
    });
  }

  #drawNow(): void {
    const begun = performance.now();
    this.#drawAnswer();
    const done = performance.now();
    this.#rest = done + RESTS * (done - begun);
  }

  #drawAnswer(): void {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    const position = utf16Positions(this.#answer);
    const sources = new Map(this.#numbered().map((one) => [one.source.n, one]));
    const marks: Mark[] = this.#citations.flatMap((citation) => {
      const cited = sources.get(citation.n);
      return cited ? [{ at: position(citation.end), node: this.#mark(citation, cited) }] : [];
    });
    marks.push(...this.#doubted.flatMap(({ start, end }) => [start, end].map((at) => ({ at: position(at), node: null }))));
    const shown = renderMarkdown(this.#answer, marks.sort((a, b) => a.at - b.at), null, this.#html);
    for (const { n, start, text } of this.#tables) {
      const one = sources.get(n);
      if (one) shown.querySelector(`.table[data-at="${position(start)}"]`)?.after(wholeTable(this.context.say, text, one.source, one.quotes));
    }
    const fresh = [...shown.childNodes];
    // What stays as it was keeps the visitor's selection and focus.
    const changed = fresh.findIndex((node, i) => !this.#text.childNodes[i]?.isEqualNode(node));
    const kept = changed < 0 ? fresh.length : changed;
    for (const old of [...this.#text.childNodes].slice(kept)) old.remove();
    this.#text.append(...fresh.slice(kept));
    const dir = directionOf(this.#text);
    if (this.#text.dir !== dir) this.#text.dir = dir; // else all of it would be laid out anew
  }

  /** Only citations of known sources: a number without a link is worse than none. */
  #numbered(): NumberedSource[] {
    return numbered(this.#sources, this.#citations, this.#cited);
  }

  /** The raised number that leads to the cited sentence. */
  #mark({ quote }: Citation, { number, source }: NumberedSource): HTMLElement {
    const link = sourceLink(source, quote, String(number));
    if (link instanceof HTMLAnchorElement) link.ariaLabel = this.context.say("source", { n: number, title: source.title });
    link.title = source.title;
    return element("sup", {}, link);
  }

  #footnotes({ generated_by: by, certainty }: Partial<Whole> = {}): HTMLElement[] {
    const { say, subheading } = this.context;
    const notes: HTMLElement[] = [];
    if (by === "quotation" || by === "model") {
      notes.push(element("p", { className: "note", textContent: say(by === "model" ? "written" : "quoted") }));
    }
    const cited = this.#numbered();
    if (cited.length) notes.push(citedSources(say, element(subheading, { textContent: say("sources") }), cited));
    const shown = new Set(cited.map(({ source }) => source.url));
    const found = this.#sources.filter(({ kind }) => kind !== "tool"); // a result that is not cited is no page to look at
    const pages = [...new Map(found.map((source) => [source.url, source])).values()].filter(({ url }) => !shown.has(url));
    const more = pages.slice(0, !cited.length ? RELATED : certainty === "place" ? MORE : 0);
    // A canned reply names its pages itself.
    const linked = new Set([...this.#text.querySelectorAll("a")].map(({ href }) => href));
    if (more.length && (cited.length || !more.some(({ url }) => linked.has(safeUrl(url) ?? "")))) {
      notes.push(relatedPages(say, element(subheading, { textContent: say(cited.length ? "more" : "related") }), more));
    }
    return notes;
  }
}

/** "in 12 seconds", "in 5 hours". */
function fromNow(seconds: number, lang: string): string {
  const [unit, size] = UNITS.find(([, size]) => seconds >= 2 * size) ?? UNITS[2];
  return new Intl.RelativeTimeFormat(lang).format(Math.ceil(Math.max(seconds, 0) / size), unit);
}

/** Positions count Unicode characters on the wire, and UTF-16 units in this language. */
function utf16Positions(text: string): (position: number) => number {
  const starts = [0];
  let end = 0;
  for (const character of text) starts.push((end += character.length));
  return (position) => starts[Math.min(position, starts.length - 1)] ?? end;
}
