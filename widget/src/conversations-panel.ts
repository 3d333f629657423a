/** The visitor's conversations, by day, in place of the one that is shown: open, rename, delete. */

import { element, iconButton, textButton } from "./dom";
import type { ChatContext } from "./context";
import { trouble } from "./trouble";
import type { ConversationSummary } from "./wire";

const DAYS = ["today", "yesterday", "last_week", "older"] as const;
const MAX_TITLE = 200; // characters; the gateway's limit

export class ConversationsPanel {
  readonly node = element("div", { className: "past", hidden: true });
  #listed: string[] = []; // conversations, those too that show nothing any more

  /** `chosen`: a conversation to show. `gone`: one that was deleted. */
  constructor(
    private readonly context: ChatContext,
    private readonly chosen: (id: string) => void,
    private readonly gone: (id: string) => void,
  ) {}

  /** Read the list anew. Throws AskError and what fetch throws. */
  async fill(): Promise<void> {
    const { say, client, subheading } = this.context;
    const list = await client.conversations();
    const parts = DAYS.flatMap((day) => {
      const lines = list[day].filter(({ turns }) => turns > 0); // the others were taken back
      if (!lines.length) return [];
      return [element(subheading, { textContent: say(day), tabIndex: -1 }), element("ul", {}, ...lines.map((one) => this.#line(one)))];
    });
    this.#listed = DAYS.flatMap((day) => list[day].map((one) => one.conversation_id));
    this.node.replaceChildren(...(parts.length ? [...parts, this.#all()] : [this.#sentence(say("nothingPast"), "")]));
  }

  /** Below the list: delete everything, after a question. */
  #all(): HTMLElement {
    const { say, client } = this.context;
    const box = element("div", { className: "all" });
    const offer = textButton(say("removeAll"), () => {
      const back = () => {
        box.replaceChildren(offer);
        offer.focus();
      };
      const sure = textButton(say("removeYes"), async () => {
        sure.disabled = true; // it takes a second or two
        try {
          await client.forgetMe();
        } catch (error) {
          back();
          box.append(trouble(this.context, error));
          return;
        }
        for (const id of this.#listed) this.gone(id);
        await this.fill().catch(() => this.fail(say("nothingPast")));
        this.node.querySelector<HTMLElement>("[tabindex]")?.focus();
      });
      const keep = textButton(say("cancel"), back);
      const question = element("div", { className: "edit", role: "group" }, element("p", { textContent: say("removeAllSure") }), sure, keep);
      question.ariaLabel = say("removeAllSure");
      this.#ask(box, question, back);
      keep.focus();
    });
    box.append(offer);
    return box;
  }

  fail(message: string): void {
    this.node.replaceChildren(this.#sentence(message, "trouble"));
  }

  #sentence(textContent: string, className: string): HTMLElement {
    return element("p", { textContent, className, tabIndex: -1 });
  }

  #line(one: ConversationSummary): HTMLLIElement {
    const { say } = this.context;
    const { conversation_id: id, title } = one;
    const open = textButton(title, () => this.chosen(id));
    open.dir = "auto";
    const line = element("li");
    const rename = iconButton("rename", say("rename", { title }), () => this.#rename(line, one));
    const remove = iconButton("remove", say("remove", { title }), () => this.#remove(line, one));
    line.append(open, rename, remove);
    return line;
  }

  /** A field in place of the line. Escape or "cancel" brings the line back. */
  #rename(line: HTMLLIElement, one: ConversationSummary): void {
    const { say, client } = this.context;
    const field = element("input", { value: one.title, maxLength: MAX_TITLE, required: true, dir: "auto" });
    field.ariaLabel = say("newTitle");
    const form = element(
      "form",
      { className: "edit" },
      field,
      element("button", { type: "submit", textContent: say("save") }),
      textButton(say("cancel"), () => this.#back(line, one, 1)),
    );
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const title = field.value.trim();
      if (!title) return;
      try {
        await client.rename(one.conversation_id, title);
        this.#back(line, { ...one, title }, 1);
      } catch (error) {
        form.querySelector(".trouble")?.remove();
        form.append(trouble(this.context, error)); // what they wrote stays
      }
    });
    this.#ask(line, form, () => this.#back(line, one, 1));
    field.focus();
    field.select();
  }

  #remove(line: HTMLLIElement, one: ConversationSummary): void {
    const { say, client } = this.context;
    const keep = textButton(say("cancel"), () => this.#back(line, one, 2));
    const sure = textButton(say("removeYes"), async () => {
      try {
        await client.remove(one.conversation_id);
      } catch (error) {
        this.#back(line, one, 2).append(trouble(this.context, error));
        return;
      }
      this.gone(one.conversation_id);
      await this.fill().catch(() => line.remove());
      this.node.querySelector<HTMLElement>("[tabindex]")?.focus(); // where the line was there is nothing any more
    });
    const question = element("div", { className: "edit", role: "group" }, element("p", { textContent: say("removeSure") }), sure, keep);
    question.ariaLabel = say("removeSure");
    this.#ask(line, question, () => this.#back(line, one, 2));
    keep.focus();
  }

  #ask(line: HTMLElement, box: HTMLElement, cancel: () => void): void {
    box.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || event.isComposing) return;
      event.preventDefault();
      event.stopPropagation(); // the panel stays open
      cancel();
    });
    line.replaceChildren(box);
  }

  /** The line again, with the focus on the button it was on. */
  #back(line: HTMLLIElement, one: ConversationSummary, button: number): HTMLElement {
    const fresh = this.#line(one);
    line.replaceWith(fresh);
    (fresh.children[button] as HTMLElement).focus();
    return fresh;
  }
}
