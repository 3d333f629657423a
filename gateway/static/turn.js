/** One question and its answer on the screen: what each event of the answer stream does to it. */

import { element, renderMarkdown, safeUrl } from "./markdown.js";

const EDGE_WORDS = 5; // words at each end of a long quote: enough for a browser to find it
const LONG_QUOTE = 90; // characters from which a text fragment is given by its two ends
const RELATED = 3; // pages offered when the answer cites none

export class Turn {
  #say;
  #heading;
  #status = element("p", { className: "status" });
  #text = element("div", { className: "text", dir: "auto" });
  #foot = element("div", { className: "foot" });
  #actions = element("div", { className: "actions", hidden: true });
  #trouble = "";
  #answer = "";
  #citations = [];
  #sources = [];
  #frame = 0;

  /**
   * @param {string} question
   * @param {(name: string, values?: object) => string} say words in the visitor's language
   * @param {string} heading the element of its headings, for example "h3"
   */
  constructor(question, say, heading) {
    this.question = question;
    this.#say = say;
    this.#heading = heading;
    this.node = element(
      "li",
      { className: "turn busy" },
      element("p", { className: "question", dir: "auto", textContent: question }),
      element("div", { className: "answer" }, this.#status, this.#text, this.#foot, this.#actions),
    );
    this.status(say("searching"));
  }

  /** The answer as plain text, for a screen reader. */
  get spoken() {
    return `${this.#text.innerText} ${this.#trouble}`.trim();
  }

  /** What is going on; empty when text is arriving. */
  status(text) {
    this.#status.textContent = text;
    this.#status.hidden = !text;
  }

  /** Show what was asked and answered before. */
  restore(kept) {
    this.requestId = kept.request_id;
    const sources = kept.sources.map((source) => ({ ...source, cited: true }));
    if (kept.answer) this.show({ event: "answer", data: { ...kept, text: kept.answer, sources } });
    if (kept.state === "failed" || (kept.state === "answered" && !kept.answer)) this.fail(this.#say("failed"));
    else if (kept.state === "stopped") this.fail(this.#say("stopped"));
    else this.end();
  }

  /** What a visitor can do with the answer: buttons, in place of those that were there. */
  offer(...buttons) {
    this.#actions.replaceChildren(...buttons);
    this.#actions.hidden = !buttons.length;
  }

  /** Show one event of the stream. */
  show({ event, data }) {
    const say = this.#say;
    if (event === "accepted") {
      this.requestId = data.request_id;
    } else if (event === "rephrased") {
      this.status(say("searchingFor", { question: data.question }));
    } else if (event === "sources") {
      this.#sources = data.sources;
      if (data.sources.length) this.status(say("reading", { count: data.sources.length }));
    } else if (event === "token") {
      this.#answer += data.text;
      this.status("");
      this.#draw();
    } else if (event === "citation") {
      this.#citations.push(data);
      this.#draw();
    } else if (event === "restart") {
      this.#answer = "";
      this.#citations = [];
      this.status(say("again"));
      this.#draw();
    } else if (event === "reconnecting") {
      this.status(say("reconnecting"));
    } else if (event === "answer") {
      this.#answer = data.text;
      this.#citations = data.citations;
      this.#sources = data.sources;
      this.status("");
      this.#draw();
      this.#foot.replaceChildren(...this.#footnotes(data.extractive));
    }
  }

  /** Nothing more comes. */
  end() {
    this.node.classList.remove("busy");
    if (this.#frame) this.#drawNow();
    this.status("");
  }

  /** End with a plain sentence, and a way to try again where that makes sense. */
  fail(message, retry) {
    this.end();
    this.#trouble = message;
    const box = element("p", { className: "trouble" }, message);
    if (retry) {
      const button = element("button", { type: "button", textContent: this.#say("retry") });
      button.addEventListener("click", retry);
      box.append(" ", button);
    }
    this.#foot.append(box);
  }

  /** At most once a frame, however fast the tokens come. */
  #draw() {
    this.#frame ||= requestAnimationFrame(() => this.#drawNow());
  }

  #drawNow() {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    const position = utf16Positions(this.#answer);
    const marks = this.#citations
      .map((citation) => ({ at: position(citation.end), node: this.#mark(citation) }))
      .filter(({ node }) => node)
      .sort((a, b) => a.at - b.at);
    this.#text.replaceChildren(renderMarkdown(this.#answer, marks));
  }

  /** The raised number that leads to the cited sentence. */
  #mark({ n, quote }) {
    const source = this.#sources.find((candidate) => candidate.n === n);
    if (!source) return null; // a number nobody can follow is worse than none
    const label = this.#say("source", { n, title: source.title });
    const link = sourceLink(source, quote, String(n));
    link.setAttribute("aria-label", label);
    link.title = source.title;
    return element("sup", {}, link);
  }

  #footnotes(extractive) {
    const notes = [];
    if (extractive && this.#citations.length) {
      notes.push(element("p", { className: "note", textContent: this.#say("quoted") }));
    }
    const cited = this.#sources.filter((source) => source.cited);
    if (cited.length) {
      notes.push(this.#sourceList(this.#say("sources"), cited, "cited"));
    } else if (this.#sources.length) {
      const pages = new Map(this.#sources.map((source) => [source.url, source]));
      notes.push(this.#sourceList(this.#say("related"), [...pages.values()].slice(0, RELATED), "related"));
    }
    return notes;
  }

  #sourceList(heading, sources, kind) {
    const items = sources.map((source) => {
      const quote = this.#citations.find((citation) => citation.n === source.n && citation.quote)?.quote;
      const item = element("li", {}, sourceLink(source, quote, source.title || source.page_id, source.lang));
      if (kind === "cited") item.value = source.n;
      if (quote) item.append(element("q", { textContent: plain(quote), lang: source.lang, dir: "auto" }));
      return item;
    });
    return element(
      "section",
      { className: `sources ${kind}` },
      element(this.#heading, { textContent: heading }),
      element("ol", {}, ...items),
    );
  }
}

function sourceLink(source, quote, text, lang) {
  const url = safeUrl(source.url);
  if (url === null || !source.url) return element("span", {}, text);
  const href = quote ? withTextFragment(url, plain(quote)) : url;
  const link = element("a", { href, target: "_blank", rel: "noopener", dir: "auto" }, text);
  if (lang) link.lang = lang;
  return link;
}

/** The URL that opens at the quote (https://wicg.github.io/scroll-to-text-fragment/). */
function withTextFragment(url, quote) {
  const words = quote.split(" ");
  const ends =
    quote.length > LONG_QUOTE && words.length > 2 * EDGE_WORDS
      ? [words.slice(0, EDGE_WORDS), words.slice(-EDGE_WORDS)].map((part) => part.join(" "))
      : [quote];
  const text = ends.map((part) => encodeURIComponent(part).replaceAll("-", "%2D")).join(",");
  return `${url}${url.includes("#") ? "" : "#"}:~:text=${text}`;
}

/** A quote as the page shows it: without Markdown. */
function plain(quote) {
  return quote
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(/^[#>\s|-]+|[*_`|]+/g, " ")
    .replace(/\s+/g, " ")
    .trim();
}

/** Positions count Unicode characters on the wire, and UTF-16 units in this language. */
function utf16Positions(text) {
  const starts = [0];
  for (const character of text) starts.push(starts.at(-1) + character.length);
  return (position) => starts[Math.min(position, starts.length - 1)];
}
