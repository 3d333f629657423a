/**
 * The chat, on our own page and on anybody's.
 *
 *   <script type="module" src="https://chat.example.org/chat.js" data-site="town" data-lang="en"></script>
 *       puts a button with a panel into the corner of the page;
 *   <pagewire-chat mode="page" site="town" lang="en"></pagewire-chat>
 *       is the same chat as a part of a page; what it contains for the slots "start" and "end" goes into its header.
 *
 * Attributes (data-* on the script): site, lang, heading, examples (one a line), theme (light or dark; default: the
 * visitor's). Colours: CSS variables --pagewire-accent and --pagewire-on-accent.
 * It lives in a shadow root, needs nothing inline and parses no HTML, so it works under the strictest
 * Content-Security-Policy, Trusted Types included.
 */

import { AnswerClient, AskError, store, stored } from "./answer-stream.js";
import { element } from "./markdown.js";
import { Turn } from "./turn.js";
import { wordsFor } from "./words.js";

const API = new URL("v1", import.meta.url).href;
const MAX_QUESTION = 4_000; // characters; the gateway's limit
const STOP_PATIENCE = 5_000; // ms until a stopped answer that does not end is let go
const NEAR_THE_END = 80; // pixels from the end within which the view follows the answer

const ICONS = {
  chat: "M4 5.5A2.5 2.5 0 0 1 6.5 3h11A2.5 2.5 0 0 1 20 5.5v8a2.5 2.5 0 0 1-2.5 2.5H11l-4.6 4.1A.85.85 0 0 1 5 19.5V16A2.5 2.5 0 0 1 4 13.5z",
  close: "m6 6 12 12M18 6 6 18",
  send: "M12 19V5m-6 6 6-6 6 6",
  stop: "M7.5 7.5h9v9h-9z",
  past: "M4 6h16M4 12h16M4 18h10",
  remove: "m8 8 8 8m0-8-8 8",
  restart: "M4 12a8 8 0 1 0 2.6-5.9M4 4v4h4",
};

const sheet = new CSSStyleSheet();
// A chat without looks is still a chat.
await fetch(new URL("chat.css", import.meta.url))
  .then((response) => response.text())
  .then((css) => sheet.replaceSync(css))
  .catch(() => {});

class PagewireChat extends HTMLElement {
  #say;
  #client;
  #conversationKey;
  #running = null; // AbortController of the answer that is arriving
  #turns = element("ol", { className: "turns", tabIndex: -1 });
  #last = null; // Turn
  #past = element("div", { className: "past", hidden: true });
  #welcome = element("div", { className: "welcome" });
  #scroller = element("div", { className: "scroller" }, this.#past, this.#welcome, this.#turns);
  #live = element("p", { className: "hidden", role: "status" });
  #input = element("textarea", { rows: 1, maxLength: MAX_QUESTION, id: "question", dir: "auto", enterKeyHint: "send" });
  #submit = button("send", "submit");
  #restart;
  #opener;
  #panel;
  #launcher;

  connectedCallback() {
    if (this.shadowRoot) return; // moved, not new
    const site = this.getAttribute("site");
    const lang = this.getAttribute("lang") || document.documentElement.lang || "en";
    this.lang = lang;
    this.#say = wordsFor(lang);
    this.#client = new AnswerClient(API, site);
    this.#conversationKey = `pagewire-conversation:${this.#client.url}`;
    const root = this.attachShadow({ mode: "open" });
    root.adoptedStyleSheets = [sheet];
    root.append(...(this.#floats ? this.#floating() : [this.#content()]));
    this.#greet();
    const before = stored(this.#conversationKey);
    if (before) this.#open(before);
  }

  disconnectedCallback() {
    this.#running?.abort();
  }

  get #floats() {
    return this.getAttribute("mode") !== "page";
  }

  get #heading() {
    const title = this.getAttribute("heading");
    return title ? this.#say("heading", { title }) : this.#say("open");
  }

  /** Below the panel's own heading, which is the page's when the chat is the page. */
  get #subheading() {
    return this.#floats ? "h3" : "h2";
  }

  // The parts

  #floating() {
    this.#launcher = button("chat", "button", this.#say("open"), () => this.#toggle(this.#panel.hidden));
    this.#launcher.classList.add("launcher");
    this.#launcher.setAttribute("aria-controls", "panel");
    this.#launcher.setAttribute("aria-expanded", "false");
    this.#panel = this.#content();
    this.#panel.id = "panel";
    this.#panel.hidden = true;
    this.#panel.role = "dialog";
    this.#panel.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.#toggle(false);
    });
    return [this.#panel, this.#launcher];
  }

  #content() {
    const say = this.#say;
    this.#restart = button("restart", "button", say("restart"), () => this.#forget());
    this.#restart.hidden = true;
    this.#opener = button("past", "button", say("past"), () => this.#browse(this.#past.hidden));
    this.#opener.setAttribute("aria-expanded", "false");
    const head = element(
      "div",
      { className: "head" },
      element("slot", { name: "start" }),
      element(this.#floats ? "h2" : "h1", { textContent: this.#heading }),
      this.#opener,
      this.#restart,
      element("slot", { name: "end" }),
    );
    if (this.#floats) head.append(button("close", "button", say("close"), () => this.#toggle(false)));

    const form = element(
      "form",
      {},
      element("label", { htmlFor: "question", className: "hidden", textContent: say("label") }),
      this.#input,
      this.#submit,
    );
    this.#input.placeholder = say("placeholder");
    this.#input.addEventListener("input", () => this.#grow());
    this.#input.addEventListener("keydown", (event) => {
      // While an input method is composing, Enter picks a word.
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      if (!this.#running) form.requestSubmit();
    });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (this.#running) this.#stop();
      else this.#send(this.#input.value);
    });
    this.#turns.ariaLabel = say("conversation");
    this.#idle(true);
    const disclaimer = element("p", { className: "disclaimer", textContent: say("disclaimer") });
    const panel = element("section", { className: "panel" }, head, this.#scroller, form, disclaimer, this.#live);
    panel.ariaLabel = this.#heading;
    return panel;
  }

  #greet() {
    const examples = (this.getAttribute("examples") ?? "").split("\n").filter((line) => line.trim());
    this.#welcome.replaceChildren(element("p", { textContent: this.#say("intro") }));
    if (!examples.length) return;
    const choices = examples.map((text) => {
      const choice = element("button", { type: "button", textContent: text });
      choice.addEventListener("click", () => this.#send(text));
      return element("li", {}, choice);
    });
    const title = element(this.#subheading, { id: "examples", textContent: this.#say("examples") });
    const list = element("ul", {}, ...choices);
    list.setAttribute("aria-labelledby", "examples");
    this.#welcome.append(title, list);
  }

  // What happens

  #toggle(open) {
    this.#panel.hidden = !open;
    this.#launcher.setAttribute("aria-expanded", String(open));
    (open ? this.#input : this.#launcher).focus();
  }

  #forget() {
    this.#clear();
    store(this.#conversationKey, null);
    this.#input.focus();
  }

  #clear() {
    this.#running?.abort();
    this.#browse(false);
    this.#turns.replaceChildren();
    this.#last = null;
    this.#welcome.hidden = false;
    this.#restart.hidden = true;
  }

  /** Show a conversation that was begun before, and go on reading where an answer is under way. */
  async #open(id) {
    this.#clear();
    let kept;
    try {
      kept = await this.#client.conversation(id);
    } catch (error) {
      if (error.code === "unknown-conversation") store(this.#conversationKey, null);
      return; // asking still works; the gateway knows what was said
    }
    if (this.#running) return; // the visitor was faster
    store(this.#conversationKey, id);
    for (const one of kept.turns) {
      const turn = this.#begin(one.question);
      if (one.state === "pending") {
        turn.requestId = one.request_id;
        await this.#follow(turn, (signal) => this.#client.resume(one.request_id, signal));
      } else {
        turn.restore(one);
        this.#offer();
      }
    }
  }

  /** The list of the visitor's conversations, in place of the one that is shown. */
  async #browse(open) {
    this.#past.hidden = !open;
    this.#opener.setAttribute("aria-expanded", String(open));
    if (!open) return;
    const say = this.#say;
    let groups = {};
    try {
      groups = await this.#client.conversations();
    } catch (error) {
      this.#past.replaceChildren(element("p", { className: "trouble", textContent: this.#explain(error) }));
      return;
    }
    const parts = Object.entries(groups)
      .filter(([, members]) => members.length)
      .flatMap(([name, members]) => [
        element(this.#subheading, { textContent: say(name) }),
        element("ul", {}, ...members.map((one) => this.#pastLine(one))),
      ]);
    this.#past.replaceChildren(...(parts.length ? parts : [element("p", { textContent: say("nothingPast") })]));
  }

  #pastLine({ conversation_id: id, title }) {
    const open = element("button", { type: "button", textContent: title, dir: "auto" });
    open.addEventListener("click", () => {
      this.#open(id);
      this.#input.focus();
    });
    const remove = button("remove", "button", this.#say("remove", { title }), async () => {
      await this.#client.remove(id).catch(() => {}); // the list says what is still there
      if (stored(this.#conversationKey) === id) this.#forget();
      this.#browse(true);
    });
    return element("li", {}, open, remove);
  }

  /** Let the answer end with what is there; let go of one that does not. */
  async #stop() {
    const running = this.#running;
    const requestId = this.#last?.requestId;
    if (!requestId) {
      running.abort();
      return;
    }
    setTimeout(() => running.abort(), STOP_PATIENCE);
    await this.#client.stop(requestId).catch(() => running.abort());
  }

  /** Below the last answer: ask again, take back, say whether it helped. */
  #offer() {
    const turn = this.#last;
    const id = stored(this.#conversationKey);
    if (!turn?.requestId || !id) return;
    const action = (name, work) => {
      const made = element("button", { type: "button", textContent: this.#say(name) });
      made.addEventListener("click", () => this.#running || work(made));
      return made;
    };
    const rate = (name, rating) =>
      action(name, async (made) => {
        await this.#client.rate(turn.requestId, rating).catch(() => {}); // nothing a visitor should be bothered with
        for (const other of made.parentNode.children) other.ariaPressed = other === made ? "true" : null;
      });
    turn.offer(
      action("regenerate", () => {
        turn.node.remove();
        this.#follow(this.#begin(turn.question), (signal) => this.#client.regenerate(id, signal));
      }),
      action("undo", async () => {
        await this.#client.undo(id).catch(() => {}); // what is there is shown next
        this.#open(id);
      }),
      rate("helpful", "up"),
      rate("unhelpful", "down"),
    );
  }

  #begin(question) {
    const turn = new Turn(question, this.#say, this.#subheading);
    this.#last?.offer();
    this.#last = turn;
    this.#browse(false);
    this.#welcome.hidden = true;
    this.#restart.hidden = false;
    this.#turns.append(turn.node);
    this.#scroller.scrollTop = this.#scroller.scrollHeight;
    return turn;
  }

  async #send(text) {
    const question = text.trim();
    if (!question || this.#running) return;
    this.#input.value = "";
    this.#grow();
    this.#input.focus();
    const turn = this.#begin(question);
    await this.#follow(turn, (signal) => {
      const conversation_id = stored(this.#conversationKey) ?? undefined;
      return this.#client.ask({ question, conversation_id, lang: this.lang }, signal);
    });
  }

  /** Show an answer as it comes. `open`: its events, given a signal that ends them. */
  async #follow(turn, open) {
    const say = this.#say;
    const running = new AbortController();
    this.#running = running;
    this.#idle(false);
    this.#live.textContent = say("searching");
    let trouble = null;
    let stopped = false;
    try {
      for await (const event of open(running.signal)) {
        if (event.event === "answer") stopped = event.data.stopped;
        if (event.event === "accepted") store(this.#conversationKey, event.data.conversation_id);
        if (event.event === "error") trouble = event.data.message;
        this.#keepInView(() => turn.show(event));
      }
    } catch (error) {
      trouble = this.#explain(error);
    }
    this.#keepInView(() => {
      if (running.signal.aborted || stopped) turn.fail(say("stopped"));
      else if (trouble !== null) turn.fail(trouble, () => this.#retry(turn));
      else turn.end();
    });
    if (this.#running === running) {
      this.#running = null;
      this.#idle(true);
      this.#offer();
    }
    // Screen readers hear the answer once, whole, instead of every token.
    this.#live.textContent = turn.spoken;
  }

  #retry(turn) {
    turn.node.remove();
    this.#send(turn.question);
  }

  #explain(error) {
    if (!(error instanceof AskError)) return this.#say("network"); // fetch itself failed
    const words = {
      "network": "network",
      "too-many-requests": "busy",
      "question-too-long": "tooLong",
      "origin-not-allowed": "refused",
      "unknown-site": "refused",
    };
    return this.#say(words[error.code] ?? "failed");
  }

  /** Follows the growing answer, unless the visitor has scrolled up to read. */
  #keepInView(change) {
    const { scrollHeight, scrollTop, clientHeight } = this.#scroller;
    const following = scrollHeight - scrollTop - clientHeight < NEAR_THE_END;
    change();
    if (!following) return;
    requestAnimationFrame(() => {
      this.#scroller.scrollTop = this.#scroller.scrollHeight;
    });
  }

  #idle(idle) {
    const label = this.#say(idle ? "send" : "stop");
    this.#submit.ariaLabel = label;
    this.#submit.title = label;
    this.#submit.classList.toggle("stop", !idle);
    this.#submit.replaceChildren(icon(idle ? "send" : "stop"));
  }

  #grow() {
    this.#input.style.height = "auto";
    this.#input.style.height = `${this.#input.scrollHeight}px`;
  }
}

function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
}

function button(name, type, label = "", onClick = null) {
  const node = element("button", { type, className: "icon", title: label, ariaLabel: label }, icon(name));
  if (onClick) node.addEventListener("click", onClick);
  return node;
}

customElements.define("pagewire-chat", PagewireChat);

// The script tag that loaded this module stands for a floating chat when it names a site.
for (const script of document.querySelectorAll("script[data-site]")) {
  if (new URL(script.src, document.baseURI).href !== import.meta.url) continue;
  const chat = document.createElement("pagewire-chat");
  for (const name of ["site", "lang", "heading", "examples", "theme"]) {
    if (script.dataset[name]) chat.setAttribute(name, script.dataset[name]);
  }
  document.body.append(chat);
}
