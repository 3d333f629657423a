/**
 * The chat's element: a button with a panel in the corner of a page, or a part of a page (`mode="page"`).
 *
 *   ┌ panel ───────────────────────┐
 *   │ head: title, past, new, sizes│      ConversationsPanel   in place of the conversation
 *   │ scroller: welcome, Talk      │      Talk                 questions and answers
 *   │ form: question               │
 *   │ disclaimer                   │
 *   └──────────────────────────────┘ ● launcher
 *
 * It lives in a shadow root, needs nothing inline and parses no HTML, so it works under the strictest
 * Content-Security-Policy, Trusted Types included. docs/howto/embed.md has its attributes, events and colours.
 */

import { brand } from "./brand";
import css from "./chat.css";
import { AnswerClient } from "./client";
import { element, icon, iconButton } from "./dom";
import { safeUrl } from "./markdown";
import { ConversationsPanel } from "./conversations-panel";
import type { ChatEvents, ChatContext } from "./context";
import { barrier, checkNames, complain, labelsIn, remedy } from "./setup";
import { store, stored } from "./storage";
import { Talk } from "./talk";
import { type Trouble, troubleOf } from "./trouble";
import { offerTools } from "./webmcp";
import { languageOf, type Say, type Word, wordsFor } from "./words";

const MAX_QUESTION = 4_000; // characters; the gateway's limit
const SUGGESTED = 3; // the site's questions to begin with
const SPOKEN_FOR = 15_000; // ms until an announcement is removed, so that screen readers do not read the answer twice
const SIZES = ["wide", "full"] as const; // of the panel, besides the normal size
const NARROW = "(max-width: 32em), (max-height: 28em)"; // as in chat.css: there the panel covers the page

type Size = (typeof SIZES)[number];

let sheet: CSSStyleSheet | null = null;

export class PagewireChat extends HTMLElement implements ChatContext {
  /** The gateway's address without the attribute `gateway`: the origin of this script. */
  static home = document.baseURI;

  /** The element with the developer's attributes: the script tag that made this element, or the element itself. */
  tag: HTMLElement = this;
  say!: Say;
  client!: AnswerClient;
  #barred = false; // whether a fault of the setup keeps it from working
  #tools = new AbortController(); // of an assistant in the browser
  #complaints = new Set<string>(); // codes already reported to the page's developer
  #talk!: Talk;
  #past!: ConversationsPanel;
  #openKey = "";
  #sizeKey = "";
  #sizers = new Map<Size, HTMLButtonElement>();
  #shownBefore = false;
  #before: HTMLElement | null = null; // the element with the focus before the panel opened
  #heading = element("h1", { id: "heading" });
  #notice = element("p", { className: "notice" });
  #welcome = element("div", { className: "welcome" });
  #scroller = element("div", { className: "scroller" });
  #live = element("p", { className: "hidden", role: "status" });
  #input = element("textarea", { rows: 1, maxLength: MAX_QUESTION, id: "question", enterKeyHint: "send" });
  #submit = element("button", { type: "submit", className: "icon" });
  #restart!: HTMLButtonElement;
  #opener!: HTMLButtonElement;
  #panel!: HTMLElement;
  #launcher: HTMLButtonElement | null = null;

  connectedCallback(): void {
    if (this.shadowRoot) return; // moved, not new
    const site = this.getAttribute("site") ?? "";
    this.lang = languageOf(this.getAttribute("lang"), document.documentElement.lang);
    this.say = wordsFor(this.lang);
    const gateway = this.getAttribute("gateway") || PagewireChat.home;
    const tokens = this.getAttribute("token-url");
    checkNames(this.tag);
    const labels = this.getAttribute("labels") ?? "";
    const obstacle = barrier(this.tag, site, gateway, labels);
    if (obstacle) complain(obstacle);
    this.#barred = obstacle !== null;
    this.client = new AnswerClient(
      this.#barred ? "" : new URL("v1", new URL(gateway, document.baseURI)).href,
      site,
      tokens && new URL(tokens, document.baseURI).href,
    );
    this.client.labels = labelsIn(labels) ?? {};
    this.#openKey = `pagewire-open:${this.client.url}`;
    this.#sizeKey = `pagewire-size:${this.client.url}`;
    this.#talk = new Talk(this, this.#scroller, () => this.#changed());
    this.#past = new ConversationsPanel(this, (id) => this.#choose(id), (id) => id === this.#talk.id && this.#talk.forget());
    const root = this.attachShadow({ mode: "open" });
    if (!sheet) {
      sheet = new CSSStyleSheet();
      sheet.replaceSync(css);
    }
    root.adoptedStyleSheets = [sheet];
    root.append(this.#frame());
    this.#greet();
    this.#changed();
    if (!this.#floats) this.#resume();
    else if (stored(this.#openKey)) this.open(false);
    if (this.getAttribute("webmcp") !== null && !this.#barred) void offerTools(this.client, this.lang, this.#tools.signal);
    this.emit("ready", { site, lang: this.lang });
  }

  disconnectedCallback(): void {
    // Moving an element disconnects it for a moment.
    queueMicrotask(() => {
      if (this.isConnected) return;
      this.#talk?.leave();
      this.#tools.abort();
    });
  }

  // For the host page

  /** Open the panel; `focus`: and put the cursor into the question. */
  open(focus = true): void {
    if (!(this.#panel instanceof HTMLDialogElement) || this.#panel.open) return;
    this.#before = document.activeElement instanceof HTMLElement ? document.activeElement : null;
    this.#show(this.#panel);
    this.#launch(true);
    if (focus) this.#input.focus();
    store(this.#openKey, true);
    this.#resume();
    this.emit("open", {});
  }

  close(): void {
    if (!(this.#panel instanceof HTMLDialogElement) || !this.#panel.open) return;
    this.#panel.close();
    this.#launch(false);
    store(this.#openKey, null);
    const back = this.#launcher?.checkVisibility() ? this.#launcher : this.#before;
    back?.focus();
    this.emit("close", {});
  }

  /** Ask a question for the visitor. A running answer is stopped. */
  ask(text: string): void {
    const question = text.trim().slice(0, MAX_QUESTION);
    if (!question) return;
    this.open();
    if (this.#barred) return;
    this.#browse(false);
    void this.#talk.ask(question);
  }

  // For its parts

  toQuestion = (): void => this.#input.focus();

  get subheading(): "h2" | "h3" {
    return this.#floats ? "h3" : "h2";
  }

  explain = (error: unknown, away?: Word): Trouble => {
    const trouble = troubleOf(error, this.say, away);
    const what = remedy(this.tag, trouble.code, this.getAttribute("site") ?? "", this.client.base);
    if (what && !this.#complaints.has(trouble.code)) complain(what);
    this.#complaints.add(trouble.code);
    return trouble;
  };

  announce = (text: string): void => {
    this.#live.textContent = text;
    setTimeout(() => this.#live.textContent === text && (this.#live.textContent = ""), SPOKEN_FOR);
  };

  emit = <K extends keyof ChatEvents>(name: K, detail: ChatEvents[K]): void => {
    this.dispatchEvent(new CustomEvent(`pagewire:${name}`, { detail, bubbles: true, composed: true }));
  };

  // Its parts

  get #floats(): boolean {
    return this.getAttribute("mode") !== "page";
  }

  #frame(): HTMLElement {
    const { say } = this;
    const title = this.getAttribute("heading");
    const heading = title ? say("heading", { title }) : say("open");
    const frame = element("div", { className: "frame", lang: say.lang, dir: say.dir });
    for (const [name, value] of Object.entries(brand(this.getAttribute("accent") ?? "") ?? {})) {
      frame.style.setProperty(name, value);
    }
    if (this.#floats) this.#heading = element("h2", { id: "heading" });
    this.#heading.textContent = heading;
    this.#panel = this.#floats ? this.#dialog() : element("section");
    this.#panel.classList.add("panel");
    this.#panel.setAttribute("aria-labelledby", "heading");
    this.#panel.append(this.#head(), this.#body(), this.#form(), this.#disclaimer(), this.#live);
    frame.append(this.#panel);
    if (this.#floats) {
      this.#resize(stored<Size>(this.#sizeKey));
      this.#launcher = iconButton("chat", say("open"), () =>
        this.#panel.hasAttribute("open") ? this.close() : this.open(),
      );
      this.#launcher.classList.add("launcher");
      this.#launcher.setAttribute("aria-expanded", "false");
      this.#launcher.setAttribute("aria-haspopup", "dialog");
      frame.role = "region";
      frame.ariaLabel = heading;
      frame.append(this.#launcher);
    }
    return frame;
  }

  /** The round button: opens the panel, and closes it if the panel does not cover the page. */
  #launch(open: boolean): void {
    const button = this.#launcher;
    if (!button) return;
    button.setAttribute("aria-expanded", String(open));
    button.title = button.ariaLabel = this.say(open ? "close" : "open");
    button.replaceChildren(icon(open ? "close" : "chat"));
  }

  #dialog(): HTMLDialogElement {
    const dialog = element("dialog");
    dialog.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || event.isComposing) return;
      event.preventDefault();
      this.#leave();
    });
    dialog.addEventListener("cancel", (event) => {
      event.preventDefault(); // the "back" of a phone
      this.#leave();
    });
    matchMedia(NARROW).addEventListener("change", () => this.#showAgain(dialog));
    return dialog;
  }

  /** Leave the full screen if the visitor has chosen it, else close the panel. */
  #leave(): void {
    if (this.#size === "full" && !matchMedia(NARROW).matches) this.#resize(null);
    else this.close();
  }

  /** A panel that covers the page keeps the focus; one beside the page neither keeps nor takes it. */
  #show(dialog: HTMLDialogElement): void {
    if (matchMedia(NARROW).matches || this.#size === "full") dialog.showModal();
    else dialog.open = true;
  }

  /** Adapt to a panel that now covers the page, or no longer does. Focus and scroll position stay. */
  #showAgain(dialog: HTMLDialogElement): void {
    if (!dialog.open) return;
    const focused = this.shadowRoot?.activeElement;
    const { scrollTop } = this.#scroller;
    dialog.close();
    this.#show(dialog);
    this.#scroller.scrollTop = scrollTop;
    if (focused instanceof HTMLElement) focused.focus({ preventScroll: true });
  }

  get #size(): Size | null {
    return SIZES.find((size) => this.#panel.classList.contains(size)) ?? null;
  }

  #resize(wanted: Size | null): void {
    for (const size of SIZES) {
      this.#panel.classList.toggle(size, size === wanted);
      this.#sizers.get(size)!.ariaPressed = String(size === wanted);
    }
    store(this.#sizeKey, wanted);
    if (this.#panel instanceof HTMLDialogElement) this.#showAgain(this.#panel);
    this.#talk.show();
  }

  #head(): HTMLElement {
    const { say } = this;
    this.#restart = iconButton("restart", say("restart"), () => {
      this.#browse(false);
      this.#talk.forget();
      this.#input.focus();
    });
    this.#opener = iconButton("past", say("past"), () => this.#browse(this.#past.node.hidden !== false));
    this.#opener.setAttribute("aria-expanded", "false");
    this.#opener.hidden = this.#barred;
    const head = element(
      "div",
      { className: "head" },
      element("slot", { name: "start" }),
      this.#heading,
      this.#opener,
      this.#restart,
      element("slot", { name: "end" }),
    );
    if (!this.#floats) return head;
    for (const [size, icon] of [["wide", "wider"], ["full", "full"]] as const) {
      const sizer = iconButton(icon, say(icon), () => this.#resize(this.#size === size ? null : size));
      sizer.classList.add("size");
      this.#sizers.set(size, sizer);
      head.append(sizer);
    }
    const closer = iconButton("close", say("close"), () => this.close());
    closer.classList.add("closer");
    head.append(closer);
    return head;
  }

  #body(): HTMLElement {
    this.#past.node.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || event.isComposing) return;
      event.preventDefault();
      event.stopPropagation(); // the panel stays open
      this.#browse(false);
      this.#opener.focus();
    });
    this.#notice.textContent = this.say("automatic");
    this.#notice.hidden = this.#barred;
    this.#scroller.append(this.#past.node, this.#notice, this.#welcome, this.#talk.list);
    return this.#scroller;
  }

  #form(): HTMLElement {
    const { say } = this;
    const label = element("label", { htmlFor: "question", className: "hidden", textContent: say("label") });
    const form = element("form", { className: "ask", hidden: this.#barred }, label, this.#input, this.#submit);
    this.#input.placeholder = say("placeholder");
    this.#input.dir = say.dir;
    this.#input.addEventListener("input", () => this.#grow());
    this.#input.addEventListener("keydown", (event) => {
      // While an input method is composing, Enter picks a word.
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.#send(); // also while an answer is arriving
    });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (this.#talk.busy) this.#talk.stop();
      else this.#send();
    });
    return form;
  }

  #disclaimer(): HTMLElement {
    const line = element("p", { className: "disclaimer" }, this.getAttribute("disclaimer") || this.say("disclaimer"));
    const privacy = this.getAttribute("privacy");
    const href = privacy ? safeUrl(privacy) : null;
    if (href) line.append(" ", element("a", { href, target: "_blank", rel: "noopener", textContent: this.say("privacy") }));
    return line;
  }

  #greet(): void {
    if (this.#barred) {
      this.#welcome.append(element("p", { className: "trouble", textContent: this.say("refused") }));
      return;
    }
    const examples = (this.getAttribute("examples") ?? "").split("\n").filter((line) => line.trim());
    this.#welcome.append(element("p", { textContent: this.getAttribute("intro") || this.say("intro"), dir: "auto" }));
    this.#suggest(examples);
  }

  /** Questions to begin with. */
  #suggest(examples: readonly string[]): void {
    if (!examples.length) return;
    const choices = examples.map((text) => {
      const choice = element("button", { type: "button", textContent: text, dir: "auto" });
      choice.addEventListener("click", () => {
        this.#input.focus(); // the button goes away
        this.ask(text);
      });
      return element("li", {}, choice);
    });
    const list = element("ul", {}, ...choices);
    list.setAttribute("aria-labelledby", "examples");
    this.#welcome.append(element(this.subheading, { id: "examples", textContent: this.say("examples") }), list);
  }

  // What happens

  /** Resume this tab's conversation when the chat is first visible: until then it sends no request to the gateway. */
  #resume(): void {
    const id = this.#talk.id;
    if (!this.#shownBefore && id) void this.#talk.open(id);
    if (!this.#shownBefore && !this.#barred) void this.#introduce();
    this.#shownBefore = true;
  }

  /** Fill in the site's own texts where the page sets none. Without the gateway nothing changes. */
  async #introduce(): Promise<void> {
    const known = await this.client.welcome(this.lang).catch(() => null);
    if (!known) return;
    if (known.model) this.#notice.textContent = this.say("automaticModel");
    if (!this.getAttribute("heading")) this.#heading.textContent = this.say("heading", { title: known.title });
    if (!this.getAttribute("examples")) this.#suggest(known.examples.slice(0, SUGGESTED));
  }

  #send(): void {
    const text = this.#input.value;
    if (!text.trim()) return;
    this.#input.value = "";
    this.#grow();
    this.#input.focus();
    this.ask(text);
  }

  #choose(id: string): void {
    this.#browse(false);
    this.#input.focus();
    void this.#talk.open(id);
  }

  /** Show the list of the visitor's conversations instead of the current one. */
  #browse(open: boolean): void {
    this.#past.node.hidden = !open;
    this.#opener.setAttribute("aria-expanded", String(open));
    if (!open) {
      this.#talk.show();
      return;
    }
    this.#past.fill().catch((error: unknown) => {
      this.#past.fail(this.explain(error).message);
      const again = () => this.#past.node.hidden || this.#browse(true);
      window.addEventListener("online", again, { once: true });
    });
  }

  #changed(): void {
    this.#welcome.hidden = !this.#talk.empty;
    // Hidden elements keep their space, so that their neighbours do not move.
    this.#restart.classList.toggle("away", this.#talk.empty);
    const label = this.say(this.#talk.busy ? "stop" : "send");
    this.#submit.ariaLabel = label;
    this.#submit.title = label;
    this.#submit.classList.toggle("stop", this.#talk.busy);
    this.#submit.replaceChildren(icon(this.#talk.busy ? "stop" : "send"));
  }

  #grow(): void {
    this.#input.dir = this.#input.value ? "auto" : this.say.dir; // "auto" takes an empty field for left to right
    this.#input.style.height = "auto";
    this.#input.style.height = `${this.#input.scrollHeight}px`;
  }
}
