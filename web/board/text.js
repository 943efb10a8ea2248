// Words and numbers as they are shown. Everything that agents wrote passes `plain` and then `textContent`.

// Characters that hide themselves, or turn the order of what follows: shown by their number instead.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

/** A text with everything in it visible; line feeds and tabs stay. */
export function plain(text) {
  const number = (char) => `\u27e8U+${char.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}\u27e9`;
  return String(text ?? "").replace(/\r\n/g, "\n").replace(HIDDEN, number);
}

/** The first characters of an id. */
export function short(id, length = 8) {
  return plain(id).slice(0, length);
}

/** A length of time in a few characters; `coarse` leaves the seconds of minutes out. */
export function span(ms, coarse = false) {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return !coarse && minutes < 10 && seconds % 60 ? `${minutes} min ${seconds % 60} s` : `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 && hours < 10 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  return `${Math.floor(hours / 24)} d`;
}

/** Millionths of a US dollar. */
export function usd(micro) {
  if (!micro) return "no cost";
  const dollars = micro / 1e6;
  return `$${dollars < 0.01 ? dollars.toFixed(6).replace(/0+$/, "") : dollars.toFixed(2)}`;
}

/** `1 change`, `2 changes`. */
export function count(number, one, many = `${one}s`) {
  return `${number} ${number === 1 ? one : many}`;
}

/** The middle of a list of numbers, or null. */
export function median(numbers) {
  if (numbers.length === 0) return null;
  const sorted = [...numbers].sort((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) / 2)];
}

/** The lines of a difference, each with what it is: `hunk`, `add`, `del`, `old`, `new`, `same`, `head`. */
export function diffLines(text) {
  const lines = plain(text).split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines.map((line) => ({ kind: KINDS[line[0]] ?? "head", text: line }));
}
const KINDS = { "@": "hunk", "+": "add", "-": "del", "<": "old", ">": "new", " ": "same" };

/** The lines of a comparison of two differences; a line of one alone starts with `<` or `>`. */
export function comparedLines(text) {
  return diffLines(text).map((line) => (line.kind === "add" || line.kind === "del" ? { ...line, kind: "same" } : line));
}

/** An attempt's id as it is said: `train 4, attempt 2`. */
export function attemptName(attempt) {
  return `train ${attempt.train}${attempt.attempt > 1 ? `, attempt ${attempt.attempt}` : ""}`;
}
