/**
 * A text field with a list of suggestions (ARIA 1.2's combobox with a listbox): the field keeps the focus, and the arrow
 * keys move through the list.
 */

import { element } from "./dom";

export interface Suggestion {
  text: string;
  note: string; // beside it, such as the page's title; empty: none
  lang: string;
  pick: () => void;
}

export interface SuggestionGroup {
  label: string;
  options: readonly Suggestion[];
}

export class Combobox {
  readonly list = element("div", { id: "list", role: "listbox", hidden: true });
  #options: { node: HTMLElement; pick: () => void }[] = [];
  #active = -1;

  /** `typed`: the text has changed. `submit`: Enter was pressed, and no suggestion is chosen. */
  constructor(
    readonly input: HTMLInputElement,
    label: string,
    typed: (text: string) => void,
    private readonly submit: () => void,
  ) {
    this.list.ariaLabel = label;
    input.role = "combobox";
    input.setAttribute("aria-controls", "list");
    input.setAttribute("aria-autocomplete", "list");
    input.ariaExpanded = "false";
    input.addEventListener("input", () => typed(input.value));
    input.addEventListener("keydown", (event) => this.#key(event));
    input.addEventListener("blur", () => this.close());
    input.addEventListener("focus", () => this.#options.length && this.#open(true));
    // The field keeps the focus, so that the list stays until the click is over.
    this.list.addEventListener("mousedown", (event) => event.preventDefault());
  }

  get open(): boolean {
    return !this.list.hidden;
  }

  /** Shows these in place of those before; how many there are. */
  show(groups: readonly SuggestionGroup[]): number {
    this.#options = [];
    this.#activate(-1);
    const shown = groups.filter(({ options }) => options.length);
    this.list.replaceChildren(...shown.map((group) => this.#group(group)));
    // A visitor who has left the field sees them when it has the focus again.
    this.#open(this.#options.length > 0 && this.input.matches(":focus"));
    return this.#options.length;
  }

  close(): void {
    this.#activate(-1);
    this.#open(false);
  }

  #group({ label, options }: SuggestionGroup): HTMLElement {
    const title = element("div", { role: "presentation", className: "kind", textContent: label });
    const group = element("div", { role: "group", ariaLabel: label }, title);
    for (const { text, note, lang, pick } of options) {
      const node = element(
        "div",
        { role: "option", id: `option-${this.#options.length}`, ariaSelected: "false", lang },
        element("span", { dir: "auto", textContent: text }),
        ...(note ? [" ", element("small", { dir: "auto", textContent: note })] : []),
      );
      node.addEventListener("click", () => this.#pick(pick));
      this.#options.push({ node, pick });
      group.append(node);
    }
    return group;
  }

  #open(open: boolean): void {
    this.list.hidden = !open;
    this.input.ariaExpanded = String(open);
  }

  #activate(at: number): void {
    this.#options[this.#active]?.node.setAttribute("aria-selected", "false");
    this.#active = at;
    const node = this.#options[at]?.node;
    node?.setAttribute("aria-selected", "true");
    node?.scrollIntoView({ block: "nearest" });
    if (node) this.input.setAttribute("aria-activedescendant", node.id);
    else this.input.removeAttribute("aria-activedescendant");
  }

  #pick(pick: () => void): void {
    this.close();
    pick();
  }

  #key(event: KeyboardEvent): void {
    if (event.isComposing) return; // Enter picks a word of the input method
    const count = this.#options.length;
    const chosen = this.#options[this.#active];
    switch (event.key) {
      case "ArrowDown":
      case "ArrowUp": {
        if (!count) return;
        const step = event.key === "ArrowDown" ? 1 : -1;
        this.#open(true);
        // One more place than options: the field itself.
        this.#activate(((this.#active + 1 + step + count + 1) % (count + 1)) - 1);
        break;
      }
      case "Enter":
        if (this.open && chosen) this.#pick(chosen.pick);
        else this.submit();
        break;
      case "Escape":
        if (this.open) this.close();
        else this.input.value = "";
        break;
      default:
        return;
    }
    event.preventDefault();
  }
}
