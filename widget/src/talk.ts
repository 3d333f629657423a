/**
 * A conversation on the screen: asked, answered, stopped, asked again, taken back; kept over a reload.
 *
 *   ask / regenerate / resume ─▶ follow ─▶ Turn.show(event) ... ─▶ what can be done with the answer
 */

import { AskError, type Followed } from "./client";
import { element, textButton } from "./dom";
import { feedback } from "./feedback";
import type { ChatContext } from "./context";
import { store, stored } from "./storage";
import { Turn } from "./turn";
import type { Word } from "./words";

const STOP_PATIENCE = 5_000; // ms until a stopped answer that does not end is let go
const NEAR_THE_END = 80; // pixels from the end within which the view follows the answer
const REASONS: Record<string, Word> = {
  "network": "network",
  "too-many-requests": "busy",
  "daily-budget": "budget",
  "chat-off": "off",
  "question-too-long": "tooLong",
  "origin-not-allowed": "refused",
  "unknown-site": "refused",
  "forbidden": "refused",
};

export class Talk {
  readonly list = element("ol", { className: "turns" });
  #key: string;
  #running: AbortController | null = null; // of the answer that is arriving
  #last: Turn | null = null;
  #shown = 0; // counts what was shown in place of something else

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

  async ask(question: string): Promise<void> {
    const { client, lang } = this.context;
    this.context.emit("question", { question });
    await this.#follow(this.#begin(question), (signal) =>
      client.ask({ question, lang, conversation_id: this.id }, signal),
    );
  }

  /** Let the answer end with what is there; let go of one that does not. */
  async stop(): Promise<void> {
    const running = this.#running;
    const requestId = this.#last?.requestId;
    if (!running || !requestId) {
      running?.abort();
      return;
    }
    setTimeout(() => running.abort(), STOP_PATIENCE);
    await this.context.client.stop(requestId).catch(() => running.abort());
  }

  /** Show a conversation that was begun before, and go on reading where an answer is under way. */
  async open(id: string): Promise<void> {
    this.#clear();
    store(this.#key, id); // what is asked before it is there belongs to it as well
    const shown = this.#shown;
    let turns;
    try {
      ({ turns } = await this.context.client.conversation(id));
    } catch (error) {
      if (this.id === id && error instanceof AskError && error.code === "unknown-conversation") store(this.#key, null);
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
        this.#offer();
      }
    }
  }

  /** Begin a new one. */
  forget(): void {
    this.#clear();
    store(this.#key, null);
    this.changed();
  }

  /** Stop reading; the answer goes on and is there when it is wanted. */
  leave(): void {
    this.#running?.abort();
  }

  #clear(): void {
    this.leave();
    this.#running = null;
    this.list.replaceChildren();
    this.#last = null;
    this.#shown += 1;
    this.changed();
  }

  #begin(question: string): Turn {
    const turn = new Turn(question, this.context.say, this.context.subheading);
    if (this.#last) this.#last.offer(...(this.#last.answered ? [this.#copying(this.#last)] : []));
    this.#last = turn;
    this.list.append(turn.node);
    this.changed();
    this.scroller.scrollTop = this.scroller.scrollHeight;
    return turn;
  }

  #resume(turn: Turn): Promise<void> {
    return this.#follow(turn, (signal) => this.context.client.resume(turn.requestId, signal));
  }

  /** Show an answer as it comes. `open`: its events, given a signal that ends them. */
  async #follow(turn: Turn, open: (signal: AbortSignal) => AsyncIterable<Followed>): Promise<void> {
    const { say, announce, emit } = this.context;
    const running = new AbortController();
    this.#running = running;
    this.changed();
    announce(say("searching"));
    let trouble: { code: string; message: string } | null = null;
    let stopped = false;
    try {
      for await (const event of open(running.signal)) {
        if (event.type === "answer") stopped = event.stopped;
        if (event.type === "accepted") store(this.#key, event.conversation_id);
        if (event.type === "error") trouble = event;
        if (event.type === "reconnecting") announce(say("reconnecting"));
        this.#keepInView(() => turn.show(event));
      }
    } catch (error) {
      trouble = this.#explained(error);
    }
    if (this.#last !== turn) return; // the visitor has gone on to something else
    stopped ||= running.signal.aborted;
    this.#keepInView(() => {
      if (stopped) turn.fail(say("stopped"));
      else if (trouble) turn.fail(trouble.message, textButton(say("retry"), () => this.#retry(turn, trouble?.code)));
      else turn.end();
    });
    this.#running = null;
    this.changed();
    this.#offer();
    announce(turn.spoken);
    if (trouble && !stopped) emit("error", { code: trouble.code, message: trouble.message });
    else if (turn.requestId) {
      emit("answer", { request_id: turn.requestId, conversation_id: this.id ?? "", question: turn.question, stopped });
    }
  }

  #retry(turn: Turn, code?: string): void {
    turn.node.remove();
    this.context.toQuestion();
    if (code !== "network" || !turn.requestId) {
      void this.ask(turn.question);
      return;
    }
    // It was accepted, and its answer may be there by now: to ask anew would be to ask twice.
    const again = this.#begin(turn.question);
    again.requestId = turn.requestId;
    void this.#resume(again);
  }

  /** Below the last answer: copy, ask again, take back, say whether it helped. */
  #offer(): void {
    const turn = this.#last;
    const id = this.id;
    if (!turn?.requestId || !id) return;
    const { client, say, toQuestion } = this.context;
    turn.offer(
      ...(turn.answered ? [this.#copying(turn)] : []),
      textButton(say("regenerate"), () => {
        turn.node.remove();
        toQuestion();
        void this.#follow(this.#begin(turn.question), (signal) => client.regenerate(id, signal));
      }),
      textButton(say("undo"), async () => {
        turn.offer(); // once is enough
        toQuestion();
        await client.undo(id).catch(() => {}); // what is there is shown next
        if (this.id === id) await this.open(id);
      }),
      ...(turn.answered ? feedback(this.context, turn) : []),
    );
  }

  #copying(turn: Turn): HTMLButtonElement {
    const { say, announce } = this.context;
    return textButton(say("copy"), async (button) => {
      try {
        await navigator.clipboard.writeText(turn.copied);
      } catch {
        return; // not on a page without https, or not allowed: selecting still works
      }
      button.textContent = say("copied");
      announce(say("copied"));
    });
  }

  #explained(error: unknown): { code: string; message: string } {
    const code = error instanceof AskError ? error.code : "network"; // fetch itself failed
    const status = error instanceof AskError ? error.status : 0;
    const word = REASONS[code] ?? (status >= 502 ? "unavailable" : "failed");
    return { code, message: this.context.say(word) };
  }

  /** Follows the growing answer, unless the visitor has scrolled up to read. */
  #keepInView(change: () => void): void {
    const { scrollHeight, scrollTop, clientHeight } = this.scroller;
    const following = scrollHeight - scrollTop - clientHeight < NEAR_THE_END;
    change();
    if (!following) return;
    requestAnimationFrame(() => {
      this.scroller.scrollTop = this.scroller.scrollHeight;
    });
  }
}
