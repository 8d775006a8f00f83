// Keys of the whole page: / searches, ? shows the keys, j and k move in a list.
import { useEffect, useRef } from "preact/hooks";

const rows = (): HTMLElement[] => [...document.querySelectorAll<HTMLElement>("main [data-row] a")];

// move focuses the link of the next row, or of the one before; without a focused row, the first.
function move(by: number): void {
  const row = document.activeElement?.closest<HTMLElement>("[data-row]");
  if (row) {
    row.dispatchEvent(new KeyboardEvent("keydown", { key: by > 0 ? "ArrowDown" : "ArrowUp", bubbles: true }));
  } else {
    rows()[0]?.focus();
  }
}

const typing = (target: EventTarget | null): boolean => target instanceof HTMLElement && target.closest("input, textarea, select, dialog") !== null;

export function Keys() {
  const help = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      if (typing(event.target) || event.ctrlKey || event.metaKey || event.altKey) {
        return;
      }
      switch (event.key) {
        case "/":
          document.querySelector<HTMLElement>("main input[type=search]")?.focus();
          break;
        case "?":
          help.current?.showModal();
          break;
        case "j":
          move(1);
          break;
        case "k":
          move(-1);
          break;
        default:
          return;
      }
      event.preventDefault();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
  return (
    <dialog ref={help} aria-labelledby="keys-title" class="keys">
      <h2 id="keys-title" class="big">Keys</h2>
      <dl>
        <dt><kbd>/</kbd></dt><dd>search in the view</dd>
        <dt><kbd>j</kbd> <kbd>k</kbd></dt><dd>next and previous row; arrows, Home and End move too</dd>
        <dt><kbd>Enter</kbd></dt><dd>open the row</dd>
        <dt><kbd>?</kbd></dt><dd>these keys</dd>
      </dl>
      <form method="dialog"><button type="submit">Close</button></form>
    </dialog>
  );
}
