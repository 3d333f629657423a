/**
 * The search field's element: suggestions while one types, results below it.
 *
 *   <pagewire-search site="town"><form action="https://chat.example.org/v1/sites/town/results">…</form></pagewire-search>
 *
 * The form inside is what browsers without scripts use. The element works as <pagewire-chat> does: in a shadow root,
 * nothing inline, no HTML parsed. docs/howto/embed.md has its attributes.
 */

import { brand } from "./brand";
import type { PagewireChat } from "./chat";
import { AnswerClient, AskError } from "./client";
import { Combobox, type Suggestion } from "./combobox";
import { element, textButton } from "./dom";
import { byPage, type FoundPage, labelsOf, opened, pageItem, sectionName } from "./results";
import css from "./search.css";
import { type SaySearch, type SearchWord, searchWordsFor } from "./search-words";
import { barrier, complain, remedy } from "./setup";
import type { SearchHit, SearchResult, SuggestResult } from "./wire";
import { languageOf } from "./words";

const NAME = "pagewire-search";
const MAX_QUERY = 4_000; // characters; the gateway's limit
const MAX_TYPED = 200; // that are completed
const FEWEST = 2; // that are
const PAUSE = 120; // ms without a key until suggestions are asked for
const HITS = 30;
const CHOICES = 10; // values of a label; more are no choice
const OF_MACHINES = new Set(["type", "author", "breadcrumb"]); // labels that a page tells machines of itself

let sheet: CSSStyleSheet | null = null;

export class PagewireSearch extends HTMLElement {
  /** Where the gateway is, unless the attribute `gateway` says so: where this script came from. */
  static home = document.baseURI;

  #say!: SaySearch;
  #client!: AnswerClient;
  #box!: Combobox;
  #input = element("input", { type: "search", id: "q", maxLength: MAX_QUERY, autocomplete: "off", enterKeyHint: "search" });
  #out = element("div", { className: "out" });
  #live = element("p", { className: "hidden", role: "status" });
  #timer = 0;
  #suggesting = new AbortController();
  #searching = new AbortController();

  connectedCallback(): void {
    if (this.shadowRoot) return; // moved, not new
    const site = this.getAttribute("site") ?? "";
    const gateway = this.getAttribute("gateway") || PagewireSearch.home;
    const tokens = this.getAttribute("token-url");
    this.lang = languageOf(this.getAttribute("lang"), document.documentElement.lang);
    this.#say = searchWordsFor(this.lang);
    const obstacle = barrier(this, site, gateway);
    if (obstacle) {
      complain(obstacle, NAME);
      return; // the form inside is still there
    }
    const base = new URL("v1", new URL(gateway, document.baseURI)).href;
    this.#client = new AnswerClient(base, site, tokens && new URL(tokens, document.baseURI).href);
    const root = this.attachShadow({ mode: "open" });
    if (!sheet) {
      sheet = new CSSStyleSheet();
      sheet.replaceSync(css);
    }
    root.adoptedStyleSheets = [sheet];
    root.append(this.#frame());
    this.#input.value = this.querySelector<HTMLInputElement>('input[name="q"]')?.value ?? "";
  }

  // For the host page

  /** Search as the visitor would. */
  search(text: string): void {
    const query = text.trim().slice(0, MAX_QUERY);
    if (!query || !this.shadowRoot) return;
    this.#input.value = query;
    this.#quiet();
    void this.#search(query, []);
  }

  // Its parts

  #frame(): HTMLElement {
    const say = this.#say;
    const frame = element("div", { className: "frame", lang: say.lang, dir: say.dir });
    for (const [name, value] of Object.entries(brand(this.getAttribute("accent") ?? "") ?? {})) {
      frame.style.setProperty(name, value);
    }
    const go = () => this.search(this.#input.value);
    this.#box = new Combobox(this.#input, say("label"), (text) => this.#typed(text), go);
    this.#input.placeholder = say("label");
    this.#input.dir = "auto";
    const label = element("label", { htmlFor: "q", className: "hidden", textContent: say("label") });
    const button = element("button", { type: "submit", textContent: say("search") });
    const form = element("form", { role: "search" }, label, this.#input, button, this.#box.list);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      go();
    });
    frame.append(form, this.#live, this.#out);
    return frame;
  }

  /** The chat of this page; null: there is none. */
  get #chat(): PagewireChat | null {
    return document.querySelector<PagewireChat>("pagewire-chat:defined");
  }

  // While one types

  #quiet(): void {
    clearTimeout(this.#timer);
    this.#suggesting.abort();
    this.#box.show([]);
  }

  #typed(text: string): void {
    clearTimeout(this.#timer);
    this.#suggesting.abort();
    const typed = text.trim();
    if (typed.length < FEWEST || typed.length > MAX_TYPED) {
      this.#box.show([]);
      return;
    }
    this.#timer = setTimeout(() => void this.#suggest(typed), PAUSE);
  }

  async #suggest(typed: string): Promise<void> {
    this.#suggesting = new AbortController();
    const { signal } = this.#suggesting;
    const query = new URLSearchParams({ q: typed, lang: this.lang });
    const found = await this.#client.get<SuggestResult>(`suggest?${query}`, signal).catch(() => null);
    if (signal.aborted) return;
    const say = this.#say;
    const open = (url: string, fragment = "") => {
      const href = opened(url, fragment);
      if (href) location.assign(href);
    };
    const titles = found?.titles.map(({ title, url, lang }): Suggestion => ({ text: title, note: "", lang, pick: () => open(url) }));
    const headings = found?.headings.map(
      ({ heading, title, url, lang, fragment }): Suggestion => ({ text: heading, note: title, lang, pick: () => open(url, fragment) }),
    );
    const questions = found?.questions.map((text): Suggestion => ({ text, note: "", lang: this.lang, pick: () => this.#ask(text) }));
    const count = this.#box.show([
      { label: say("pages"), options: titles ?? [] },
      { label: say("sections"), options: headings ?? [] },
      { label: say("questions"), options: questions ?? [] },
    ]);
    this.#live.textContent = count ? say("suggestions", { count }) : "";
  }

  #ask(question: string): void {
    this.#input.value = question;
    if (this.#chat) this.#chat.ask(question);
    else this.search(question);
  }

  // Results

  /** `labels`: KEY:VALUE, that the pages must have. `known`: the first hits, which say what there is to choose from. */
  async #search(query: string, labels: readonly string[], known: readonly SearchHit[] | null = null): Promise<void> {
    this.#searching.abort();
    this.#searching = new AbortController();
    const { signal } = this.#searching;
    this.#tell("searching");
    const asked = new URLSearchParams({ q: query, lang: this.lang, size: String(HITS) });
    for (const label of labels) asked.append("label", label);
    try {
      const { hits } = await this.#client.get<SearchResult>(`search?${asked}`, signal);
      if (!signal.aborted) this.#show(query, hits, labels, known ?? hits);
    } catch (error) {
      if (signal.aborted) return;
      const { code, status } = error instanceof AskError ? error : new AskError("network");
      const what = remedy(this, code, this.getAttribute("site") ?? "", this.#client.base);
      if (what) complain(what, NAME);
      this.#out.replaceChildren(element("p", { className: "trouble", textContent: this.#tell(status === 429 ? "busy" : "failed") }));
    }
  }

  #show(query: string, hits: readonly SearchHit[], labels: readonly string[], known: readonly SearchHit[]): void {
    const pages = byPage(hits);
    const said = pages.length ? this.#tell("results", { query, count: pages.length }) : this.#tell("nothing", { query });
    const list = element("ol");
    const draw = (section: string) => list.replaceChildren(...pages.filter((page) => !section || page.section === section).map((page) => pageItem(this.#say, page)));
    draw("");
    const head = element("div", { className: "head" }, element("p", { className: "said", textContent: said }));
    if (this.#chat) head.append(textButton(this.#say("ask"), () => this.#chat?.ask(query)));
    this.#out.replaceChildren(head, ...this.#labels(query, labels, known), ...this.#sections(pages, draw), ...(pages.length ? [list] : []));
  }

  #sections(pages: readonly FoundPage[], draw: (section: string) => void): HTMLElement[] {
    const sections = [...new Set(pages.map(({ section }) => section).filter(Boolean))];
    if (sections.length < 2) return [];
    return [this.#choice(this.#say("filter"), ["", ...sections], "", (one) => (one ? sectionName(one) : this.#say("all")), draw)];
  }

  /** One group of buttons for each key that visitors can choose by. */
  #labels(query: string, chosen: readonly string[], known: readonly SearchHit[]): HTMLElement[] {
    const useful = [...labelsOf(known)].filter(([key, { size }]) => !OF_MACHINES.has(key) && size > 1 && size <= CHOICES);
    return useful.map(([key, values]) => {
      const written = [...values].map((value) => `${key}:${value}`);
      const now = written.find((each) => chosen.includes(each)) ?? "";
      const name = (one: string) => (one ? one.slice(key.length + 1) : this.#say("all"));
      return this.#choice(key, ["", ...written], now, name, (one) => {
        const others = chosen.filter((each) => !written.includes(each));
        void this.#search(query, one ? [...others, one] : others, known);
      });
    });
  }

  /** Buttons, one of which is pressed. */
  #choice(label: string, values: readonly string[], now: string, name: (value: string) => string, choose: (value: string) => void): HTMLElement {
    const group = element("div", { className: "choice", role: "group", ariaLabel: label }, element("span", { textContent: label, ariaHidden: "true" }));
    const buttons = values.map((value) =>
      textButton(name(value), (pressed) => {
        for (const each of buttons) each.ariaPressed = String(each === pressed);
        choose(value);
      }),
    );
    buttons.forEach((button, at) => (button.ariaPressed = String(values[at] === now)));
    group.append(...buttons);
    return group;
  }

  /** Says it to screen readers, and returns it. */
  #tell(word: SearchWord, values: Record<string, string | number> = {}): string {
    const said = this.#say(word, values);
    this.#live.textContent = said;
    if (word === "searching") this.#out.replaceChildren(element("p", { className: "said", textContent: said }));
    return said;
  }
}
