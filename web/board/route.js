// What the address says: `#/REPOSITORY/VIEW` or `#/REPOSITORY/change/ID`; a token in it is taken out at once.

export const VIEWS = ["lane", "queue", "replays", "timeline"];

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return "";
  }
}

/** Splits a fragment into its address and the token that it may carry (`token=...`, anywhere between `&` or `?`). */
export function takeToken(fragment) {
  const parts = fragment.replace(/^#/, "").split(/[&?]/);
  const token = parts.find((part) => part.startsWith("token="));
  const repo = parts.find((part) => part.startsWith("repo="));
  const path = parts.find((part) => part.startsWith("/")) ?? (repo ? `/${repo.slice("repo=".length)}` : "/");
  return { path: `#${path}`, token: token ? decoded(token.slice("token=".length)).trim() : null };
}

/** The repository, the view and the change of an address; the repository is null where none is named. */
export function parse(fragment) {
  const [repo, view, change] = takeToken(fragment).path.slice(2).split("/").map(decoded);
  if (!repo) return { repo: null, view: "signin", change: null };
  if (view === "change" && change) return { repo, view, change };
  return { repo, view: VIEWS.includes(view) ? view : "lane", change: null };
}

/** The address of a view or of a change. */
export function href(repo, view, change) {
  const parts = [repo, view, change].filter(Boolean).map(encodeURIComponent);
  return `#/${parts.join("/")}`;
}

/** The repository that a token is bound to, as it says itself; null when it names none or is no token. */
export function repoOf(token) {
  try {
    const claims = token.split(".")[1].replace(/-/g, "+").replace(/_/g, "/");
    return JSON.parse(atob(claims)).repo ?? null;
  } catch {
    return null;
  }
}
