/**
 * Questions out, answer events in, over a network that breaks.
 *
 *   ask ─▶ POST chat ─▶ events ··connection lost·· GET answers/{id}/events (Last-Event-ID) ─▶ the rest ─▶ done
 *   stop ─▶ DELETE answers/{id} ─▶ the stream ends with what is there
 *
 * The events are those of the gateway's answer stream; "reconnecting" and "offline" are our own.
 */

import { readEvents } from "./sse";
import { complain, type Labels } from "./setup";
import { store, stored } from "./storage";
import type { ChatRequest, ConversationDetail, ConversationList, Event, FeedbackOrder, HandoverOrder, HandoverTaken, VisitorToken, Welcome } from "./wire";

const PAUSES = [300, 1_000, 2_000, 4_000, 8_000]; // ms before each new try without any progress; then the last again
const TRIES = 20; // some two minutes
const STOP_PATIENCE = 5_000; // ms to wait for the gateway's confirmation of a stop before the next question
const TOKEN_MARGIN = 30_000; // ms before its end at which a visitor token is renewed
const CODES: Record<number, string> = { 403: "forbidden", 404: "no-gateway", 405: "no-gateway", 429: "too-many-requests", 502: "unavailable", 504: "unavailable" };

export type Followed = Event | { type: "reconnecting" | "offline" };

/**
 * The gateway refused, or could not be reached. `code`: that of the problem document, or "network"; if the gateway has
 * never answered, "unreachable" (no server answers) or "no-gateway" (another server answers).
 */
export class AskError extends Error {
  constructor(
    readonly code: string,
    readonly status = 0,
    readonly requestId = "", // of the running answer, with "answer-under-way"
    readonly wait = 0, // seconds to wait, as the gateway asks
    readonly detail = "", // the gateway's message
  ) {
    super(code);
  }
}

export class AnswerClient {
  readonly url: string;
  frequent = Promise.resolve(false); // whether the site shows frequent questions: its welcome says so
  labels: Labels = {}; // of the pages to search; none: all pages
  #storageKey: string;
  #answers = false; // whether the page has read a response of the gateway
  #minting: Promise<string> | null = null;
  #given: VisitorToken | null = null; // from the website's own server; never stored, since it ends with the login

  /**
   * `base`: address of the gateway's API, for example "https://chat.example.org/v1". `tokenUrl`: address at which the
   * website's own server issues visitor tokens, with the access groups of the logged-in user; null: none.
   */
  constructor(
    readonly base: string,
    site: string,
    private readonly tokenUrl: string | null = null,
  ) {
    this.url = `${base}/sites/${encodeURIComponent(site)}`;
    this.#storageKey = `pagewire-token:${this.url}`;
  }

  get #filter(): Pick<ChatRequest, "labels"> {
    return Object.keys(this.labels).length ? { labels: this.labels } : {};
  }

  /** Ask, and yield the answer's events until "done"; `signal` stops it. Throws AskError. */
  async *ask(question: ChatRequest, signal: AbortSignal): AsyncGenerator<Followed> {
    const post = () => this.#fetch("chat", { method: "POST", body: JSON.stringify({ ...question, ...this.#filter }), signal });
    yield* this.#follow(async () => {
      try {
        return await post();
      } catch (error) {
        // The latest question wins over a running answer; and a deleted conversation starts anew.
        if (!(error instanceof AskError)) throw error;
        if (error.code === "answer-under-way") await this.stop(error.requestId, question.conversation_id);
        else if (error.code === "unknown-conversation") question = { ...question, conversation_id: null };
        else throw error;
        return post();
      }
    }, signal);
  }

  /** The gateway's response at a path of the site. Throws AskError. */
  async get<T>(path: string, signal: AbortSignal): Promise<T> {
    return (await this.#fetch(path, { signal })).json();
  }

  /** The labels as arguments of a search. */
  get labelled(): string {
    const pairs = Object.entries(this.labels).flatMap(([key, values]) => values.map((value) => `${key}:${value}`));
    return pairs.map((pair) => `&label=${encodeURIComponent(pair)}`).join("");
  }

  /** Ask a conversation's last question again; events as for `ask`. */
  async *regenerate(conversationId: string, signal: AbortSignal): AsyncGenerator<Followed> {
    const path = `conversations/${conversationId}/regenerate`;
    yield* this.#follow(() => this.#fetch(path, { method: "POST", signal }), signal);
  }

  /** An answer that was asked for before, from its beginning; events as for `ask`. */
  async *resume(requestId: string, conversationId: string | null, signal: AbortSignal): AsyncGenerator<Followed> {
    const path = `answers/${requestId}/events${of(conversationId)}`;
    yield* this.#follow(() => this.#fetch(path, { signal }), signal, requestId);
  }

  /** Stop this answer: its stream ends soon. */
  async stop(requestId: string, conversationId?: string | null): Promise<void> {
    const signal = AbortSignal.timeout(STOP_PATIENCE);
    await this.#fetch(`answers/${requestId}${of(conversationId)}`, { method: "DELETE", signal });
  }

  async rate(requestId: string, conversationId: string | null, order: FeedbackOrder): Promise<void> {
    const path = `answers/${requestId}/feedback${of(conversationId)}`;
    await this.#fetch(path, { method: "POST", body: JSON.stringify(order) });
  }

  /** The visitor's conversations, by day where they are. */
  async conversations(): Promise<ConversationList> {
    return (await this.#fetch(`conversations?utc_offset=${-new Date().getTimezoneOffset()}`)).json();
  }

  async conversation(id: string): Promise<ConversationDetail> {
    return (await this.#fetch(`conversations/${id}`)).json();
  }

  async rename(id: string, title: string): Promise<void> {
    await this.#fetch(`conversations/${id}`, { method: "PATCH", body: JSON.stringify({ title }) });
  }

  async remove(id: string): Promise<void> {
    await this.#fetch(`conversations/${id}`, { method: "DELETE" });
  }

  /** Delete all of the visitor's conversations for good. */
  async forgetMe(): Promise<void> {
    await this.#fetch("visitors/me", { method: "DELETE" });
  }

  /** Leave a message for a person; its reference. */
  async handOver(order: HandoverOrder): Promise<string> {
    const taken: HandoverTaken = await (await this.#fetch("handovers", { method: "POST", body: JSON.stringify(order) })).json();
    return taken.reference;
  }

  /** The texts before the first question. Public, without a token: requests for tokens are counted. */
  welcome(lang: string): Promise<Welcome> {
    const known = this.#welcome(lang);
    this.frequent = known.then(({ frequent }) => frequent).catch(() => false);
    return known;
  }

  async #welcome(lang: string): Promise<Welcome> {
    const response = await fetch(`${this.url}/welcome?lang=${encodeURIComponent(lang)}`);
    if (!response.ok) throw new AskError("unavailable", response.status);
    return response.json();
  }

  /** Take back the last question and its answer. Returns the rest. */
  async undo(id: string): Promise<ConversationDetail> {
    return (await this.#fetch(`conversations/${id}/undo`, { method: "POST" })).json();
  }

  async *#follow(
    open: () => Promise<Response>,
    signal: AbortSignal,
    requestId: string | null = null,
  ): AsyncGenerator<Followed> {
    let failures = 0;
    let resumable = false;
    for (;;) {
      if (!navigator.onLine) {
        yield { type: "offline" };
        await online(signal);
      }
      try {
        for await (const { id, event } of readEvents(await open(), signal)) {
          failures = 0;
          if (event.type === "accepted") requestId = event.request_id;
          if (requestId && id) {
            resumable = true;
            const request = { headers: { "Last-Event-ID": id }, signal };
            open = () => this.#fetch(`answers/${requestId}/events`, request);
          }
          yield event;
          if (event.type === "done") return;
        }
      } catch (error) {
        // A refusal is final, unless the gateway is just starting after a lost connection.
        if (signal.aborted || (error instanceof AskError && !(resumable && error.status >= 502))) throw error;
      }
      // Without a network the question was probably not sent: it is asked once there is a network again.
      if (!navigator.onLine) continue;
      // Before the first event nothing can be resumed, and asking twice would answer twice.
      if (!resumable || failures === TRIES) throw new AskError("network");
      yield { type: "reconnecting" };
      await pause(PAUSES[Math.min(failures++, PAUSES.length - 1)]!, signal);
    }
  }

  /** A response that is fine; the visitor token is renewed once when it is refused. */
  async #fetch(path: string, { headers, ...options }: RequestInit = {}): Promise<Response> {
    for (let renewed = false; ; renewed = true) {
      const token = await this.#token(renewed);
      options.signal?.throwIfAborted();
      const response = await this.#send(path, {
        ...options,
        headers: {
          ...(headers as Record<string, string>),
          Accept: "text/event-stream",
          Authorization: `Bearer ${token}`,
          ...(options.body ? { "Content-Type": "application/json" } : {}),
        },
      });
      if (response.status === 401 && !renewed) continue;
      return checked(response);
    }
  }

  async #send(path: string, options: RequestInit): Promise<Response> {
    try {
      const response = await fetch(`${this.url}/${path}`, options);
      this.#answers = true;
      return response;
    } catch (error) {
      if (this.#answers || options.signal?.aborted || !navigator.onLine) throw error;
      throw await this.#silence();
    }
  }

  /** The reason why the gateway has never answered. Browsers hide it, so a further request finds out. */
  async #silence(): Promise<unknown> {
    try {
      // Without headers, so that the browser sends no preflight request.
      await checked(await fetch(`${this.url}/visitor-tokens`, { method: "POST" }));
      return new AskError("network"); // the gateway answers again
    } catch (error) {
      if (error instanceof AskError) return error;
      const somebody = await fetch(this.url, { mode: "no-cors" }).then(() => true, () => false);
      return new AskError(somebody ? "no-gateway" : "unreachable");
    }
  }

  async #token(renew: boolean): Promise<string> {
    const kept = stored<VisitorToken>(this.#storageKey, "localStorage");
    const good = this.tokenUrl === null ? kept : this.#given;
    if (good && !renew && lasts(good)) return good.token;
    // Concurrent requests share one token: with two, one visitor would become two.
    this.#minting ??= this.#new(kept, renew).finally(() => {
      this.#minting = null;
    });
    return this.#minting;
  }

  async #new(kept: VisitorToken | null, renew: boolean): Promise<string> {
    if (this.tokenUrl === null) return (await this.#mint(kept)).token;
    const own = kept && !renew && lasts(kept) ? kept : await this.#mint(kept);
    this.#given = (await this.#ask(this.tokenUrl, own)) ?? own; // without a login: the public pages
    return this.#given.token;
  }

  /** A token from the website's own server, which knows the logged-in user; null if it issues none. */
  async #ask(url: string, { token }: VisitorToken): Promise<VisitorToken | null> {
    const headers = { "Content-Type": "application/json" };
    try {
      const response = await fetch(url, { method: "POST", headers, body: JSON.stringify({ before: token }) });
      if (response.ok) return (await response.json()) as VisitorToken;
      if (response.status === 404 || response.status >= 500) throw new Error(`HTTP ${response.status}`);
    } catch (error) {
      complain(`token-url="${url}" gives no token (${error}), so nobody counts as logged in; write an address of the page's own server, such as /chat-token`);
    }
    return null;
  }

  async #mint(kept: VisitorToken | null): Promise<VisitorToken> {
    // With the last one, the visitor stays the same and keeps their conversations.
    const headers: Record<string, string> = kept ? { Authorization: `Bearer ${kept.token}` } : {};
    const response = await checked(await this.#send("visitor-tokens", { method: "POST", headers }));
    const fresh = (await response.json().catch(() => {
      throw new AskError("no-gateway");
    })) as VisitorToken;
    store(this.#storageKey, fresh, "localStorage");
    return fresh;
  }
}

/** The conversation of an answer, which spares the gateway a search. */
function of(conversationId?: string | null): string {
  return conversationId ? `?conversation_id=${encodeURIComponent(conversationId)}` : "";
}

function lasts({ expires_at }: VisitorToken): boolean {
  return Date.parse(expires_at) - Date.now() > TOKEN_MARGIN;
}

async function checked(response: Response): Promise<Response> {
  if (response.ok) return response;
  // A proxy in front of the gateway sends other documents.
  const problem = (await response.json().catch(() => ({}))) as { code?: string; request_id?: string; detail?: string };
  const code = problem.code ?? CODES[response.status] ?? "failed";
  const wait = Number(response.headers.get("Retry-After")) || 0; // 0 for a date, which a proxy may send
  throw new AskError(code, response.status, problem.request_id, wait, problem.detail);
}

/** Wait until the browser has a network: without one, a try would be wasted. */
async function online(signal: AbortSignal): Promise<void> {
  if (navigator.onLine) return;
  await new Promise<void>((resolve, reject) => {
    window.addEventListener("online", () => resolve(), { once: true, signal });
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
  });
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason as Error);
    });
  });
}
