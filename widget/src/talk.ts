/**
 * A conversation on the screen: asked, answered, stopped, asked again, taken back; kept over a reload.
 *
 *   ask / regenerate / resume ─▶ follow ─▶ Turn.show(event) ... ─▶ what can be done with the answer
 */

import { AskError, type Followed } from "./client";
import { element, icon, iconButton, textButton } from "./dom";
import { feedback } from "./feedback";
import type { ChatContext } from "./context";
import { store, stored } from "./storage";
import type { Trouble } from "./trouble";
import { Turn } from "./turn";
import type { NextQuestions, QuestionMeaning } from "./wire";

const CITED = 20; // cited pages for which frequent questions are requested; the gateway's limit
const PATIENCE = 5_000; // ms to wait for frequent questions
const LONGEST_QUESTION = 0.4; // share of the view; of a longer question only the end is shown, to leave room for the answer
export class Talk {
  readonly list = element("ol", { className: "turns" });
  #key: string;
  #running: AbortController | null = null; // of the answer that is arriving
  #last: Turn | null = null;
  #shown = 0; // counts the conversations shown so far
  #stopping: Promise<void> = Promise.resolve(); // settles when the gateway has confirmed the stop

  /** `changed` is called when an answer begins or ends, and when the conversation does. */
  constructor(
    private readonly context: ChatContext,
    private readonly scroller: HTMLElement,
    private readonly changed: () => void,
  ) {
    this.#key = `pagewire-conversation:${context.client.url}`;
    this.list.ariaLabel = context.say("conversation");
  }

  get busy(): boolean {
    return this.#running !== null;
  }

  get empty(): boolean {
    return this.#last === null;
  }

  /** The conversation that is shown, in this tab. */
  get id(): string | null {
    return stored<string>(this.#key);
  }

  /** Ask a question. A running answer is stopped. */
  async ask(question: string): Promise<void> {
    const { client, lang } = this.context;
    if (this.busy) this.stop();
    this.context.emit("question", { question });
    const turn = this.#begin(question);
    await this.#follow(turn, async (signal) => {
      await this.#stopping;
      return client.ask({ question, lang, conversation_id: this.id }, signal);
    });
  }

  /** Stop the answer at once, and send the stop to the gateway. */
  stop(): void {
    const running = this.#running;
    const turn = this.#last;
    if (!running || !turn) return;
    running.abort();
    const { client, say } = this.context;
    if (turn.requestId) this.#stopping = client.stop(turn.requestId, this.id).catch(() => this.#tell(turn, say("goesOn")));
    this.#end(turn, null, true);
  }

  /** Show an earlier conversation, and continue a running answer. */
  async open(id: string): Promise<void> {
    this.#clear();
    store(this.#key, id); // what is asked before it is there belongs to it as well
    const shown = this.#shown;
    let turns;
    try {
      ({ turns } = await this.context.client.conversation(id));
    } catch (error) {
      if (this.id !== id || shown !== this.#shown) return;
      if (error instanceof AskError && error.code === "unknown-conversation") store(this.#key, null);
      else if (this.empty) this.#missed(id, error);
      return; // asking still works; the gateway knows what was said
    }
    if (!this.empty) return; // the visitor has asked already
    for (const kept of turns) {
      if (shown !== this.#shown) return; // the visitor has opened another one, or begun one
      const turn = this.#begin(kept.question);
      if (kept.state === "pending") {
        turn.requestId = kept.request_id;
        await this.#resume(turn);
      } else {
        turn.restore(kept);
        this.#narrow(turn, kept.narrower ?? []);
        this.#offer(turn);
      }
    }
  }

  /** The conversation cannot be shown. */
  #missed(id: string, error: unknown): void {
    const { say, announce, explain, toQuestion } = this.context;
    const again = (): void => void (this.id === id && this.empty && this.open(id));
    const { message, again: way } = navigator.onLine ? explain(error) : { message: say("offline"), again: false };
    const retry = textButton(say("retry"), () => {
      toQuestion(); // the button goes away
      again();
    });
    this.list.replaceChildren(element("li", { className: "trouble" }, message, " ", ...(way ? [retry] : [])));
    announce(message);
    if (!navigator.onLine) window.addEventListener("online", again, { once: true });
  }

  /** The last question to the top of the view, where it stays while its answer grows. */
  show(): void {
    const turn = this.#last;
    if (!turn) return;
    const { scroller } = this;
    const height = scroller.clientHeight;
    const { paddingTop, paddingBottom } = getComputedStyle(scroller);
    const [above, below] = [Number.parseFloat(paddingTop), Number.parseFloat(paddingBottom)];
    const hidden = Math.max(0, turn.asked.offsetHeight - height * LONGEST_QUESTION);
    // Room for the answer below the question, so that it can be at the top at all.
    for (const { style } of this.list.children as Iterable<HTMLElement>) style.minBlockSize = "";
    turn.node.style.minBlockSize = `${height - above - below + hidden}px`;
    if (scroller.clientHeight > height) {
      // A part of a page that grows with what is in it: the page itself scrolls.
      turn.node.style.minBlockSize = "";
      turn.node.scrollIntoView({ block: "nearest" });
      return;
    }
    const question = turn.node.getBoundingClientRect().top - scroller.getBoundingClientRect().top;
    scroller.scrollTop += question - above + hidden;
  }

  /** Begin a new one. */
  forget(): void {
    this.#clear();
    store(this.#key, null);
    this.changed();
  }

  /** Stop reading. The gateway finishes the answer, which can be opened later. */
  leave(): void {
    if (this.busy) this.#last?.end();
    this.#running?.abort();
    this.#running = null;
  }

  #clear(): void {
    this.leave();
    this.list.replaceChildren();
    this.#last = null;
    this.#shown += 1;
    this.changed();
  }

  #begin(question: string): Turn {
    const turn = new Turn(question, this.context);
    const before = this.#last;
    this.#last = turn;
    if (before) this.#offer(before);
    else this.list.replaceChildren();
    this.list.append(turn.node);
    this.changed();
    this.show();
    return turn;
  }

  #resume(turn: Turn): Promise<void> {
    return this.#follow(turn, async (signal) => this.context.client.resume(turn.requestId, this.id, signal));
  }

  #narrow(turn: Turn, topics: readonly QuestionMeaning[]): void {
    turn.narrow(topics, (question) => {
      this.context.toQuestion(); // the next answer leaves the button behind
      void this.ask(question);
    });
  }

  /** Frequent questions about the cited pages, if the site shows them. Errors are ignored. */
  async #lead(turn: Turn): Promise<void> {
    const { client, lang } = this.context;
    const pages = turn.cited.slice(0, CITED);
    // Frequent questions cover all pages, not only those with these labels.
    if (!pages.length || Object.keys(client.labels).length || !(await client.frequent)) return;
    const asked = new URLSearchParams([["q", turn.question], ["lang", lang], ...pages.map((page) => ["page", page])]);
    const signal = AbortSignal.timeout(PATIENCE);
    const { questions } = await client.get<NextQuestions>(`next-questions?${asked}`, signal).catch(() => ({ questions: [] }));
    if (turn !== this.#last || this.busy) return; // the visitor has gone on
    turn.lead(questions, (question) => {
      this.context.toQuestion(); // the button goes away
      turn.lead([], () => {});
      void this.ask(question);
    });
  }

  /** Show an answer as it comes. `open`: its events, given a signal that ends them. */
  async #follow(turn: Turn, open: (signal: AbortSignal) => Promise<AsyncIterable<Followed>>): Promise<void> {
    const { say, announce } = this.context;
    const running = new AbortController();
    this.#running = running;
    this.changed();
    announce(say("searching"));
    let trouble: Trouble | null = null;
    let stopped = false;
    try {
      for await (const event of await open(running.signal)) {
        if (running.signal.aborted) return;
        if (event.type === "answer") {
          stopped = event.stopped;
          this.#narrow(turn, event.narrower);
        }
        if (event.type === "accepted") store(this.#key, event.conversation_id);
        if (event.type === "error") trouble = { code: event.code, message: event.message, wait: 0, again: true };
        if (event.type === "reconnecting" || event.type === "offline") announce(say(event.type));
        turn.show(event);
      }
    } catch (error) {
      if (!running.signal.aborted) trouble = this.context.explain(error);
    }
    if (running.signal.aborted) return; // stopped, or the visitor has gone on to something else
    this.#end(turn, trouble, stopped);
  }

  /** The answer is there, or nothing more of it comes. */
  #end(turn: Turn, trouble: Trouble | null, stopped: boolean): void {
    const { announce, emit } = this.context;
    this.#running = null;
    if (stopped) turn.stop();
    else if (trouble) this.#fail(turn, trouble);
    else turn.end();
    this.changed();
    this.#offer(turn);
    announce(turn.spoken);
    if (!trouble && !stopped) void this.#lead(turn);
    if (trouble && !stopped) emit("error", { code: trouble.code, message: trouble.message });
    else if (turn.requestId) {
      emit("answer", { request_id: turn.requestId, conversation_id: this.id ?? "", question: turn.question, stopped });
    }
  }

  #fail(turn: Turn, { code, message, wait, again: way }: Trouble): void {
    const again = textButton(this.context.say("retry"), () => {
      this.context.toQuestion(); // the button goes away
      this.#retry(turn, code);
    });
    turn.fail(message, way ? again : undefined, wait);
    // By itself it leaves the focus where it is: the visitor may be reading the page.
    const byItself = () => this.#last === turn && !this.busy && this.#retry(turn, code);
    if (code === "network" || code === "unreachable") window.addEventListener("online", byItself, { once: true });
  }

  #retry(turn: Turn, code: string): void {
    turn.node.remove();
    if (code !== "network" || !turn.requestId) {
      void this.ask(turn.question);
      return;
    }
    // The question was accepted and may be answered by now: asking again would ask twice.
    const again = this.#begin(turn.question);
    again.requestId = turn.requestId;
    void this.#resume(again);
  }

  /** Below an answer: copy, say whether it helped; below the last one also ask again, take back. */
  #offer(turn: Turn): void {
    const id = this.id;
    if (!turn.requestId || !id) return;
    const { client, say, toQuestion } = this.context;
    const again = iconButton("again", say("regenerate"), () => {
      const anew = this.#begin(turn.question);
      turn.node.hidden = true;
      toQuestion();
      void this.#follow(anew, async (signal) => {
        await this.#stopping;
        return client.regenerate(id, signal);
      }).then(() => {
        // Where the question could not be asked again, its answer is back.
        if (anew.requestId) turn.node.remove();
        else turn.node.hidden = false;
      });
    });
    const undo = iconButton("takeBack", say("undo"), async () => {
      turn.offer(); // once is enough
      toQuestion();
      await this.#takeBack(turn, id);
    });
    turn.handOver(id);
    if (turn.courtesy) return;
    const own = [
      ...(turn.answered && window.isSecureContext ? [this.#copying(turn)] : []), // elsewhere nothing can be copied
      ...(turn === this.#last ? [again, undo] : []),
    ];
    turn.offer(
      element("span", { className: "group" }, ...own),
      ...(turn.answered ? (turn.rating ??= feedback(this.context, turn, id)) : []), // once: a comment may be half written
    );
  }

  /** Take back the last turn; a conversation without turns is deleted. */
  async #takeBack(turn: Turn, id: string): Promise<void> {
    const { client, explain } = this.context;
    await this.#stopping;
    try {
      const left = await client.undo(id).catch(async (error: unknown) => {
        // The request may have succeeded with a lost response: a retry would take back one more question.
        const there = await client.conversation(id).catch(() => null);
        if (!there || there.turns.at(-1)?.request_id === turn.requestId) throw error;
        return there;
      });
      if (left.turns.length) {
        if (this.id === id) await this.open(id); // what is there is shown
        return;
      }
    } catch (error) {
      this.#offer(turn);
      this.#tell(turn, explain(error, "failed").message);
      return;
    }
    if (this.id === id) this.forget();
    await client.remove(id).catch(() => {}); // the list leaves out what is empty
  }

  #tell(turn: Turn, message: string): void {
    turn.tell(message);
    this.context.announce(message);
  }

  #copying(turn: Turn): HTMLButtonElement {
    const { say, announce } = this.context;
    const button = iconButton("copy", say("copy"), () => {
      navigator.clipboard.writeText(turn.copied).then(
        () => {
          button.replaceChildren(icon("done"));
          button.title = button.ariaLabel = say("copied");
          announce(say("copied"));
        },
        () => {}, // not on a page without https, or not allowed: selecting still works
      );
    });
    return button;
  }
}
