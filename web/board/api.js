// The platform's API, as the board reads it. The token goes in a header, never into an address.

/** What the platform refused, in its own words; `final`: asking again is of no use. */
export class Refused extends Error {
  constructor(status, problem) {
    super(problem.detail ?? `the platform answered ${status}`);
    this.status = status;
    this.final = [400, 401, 403, 404].includes(status);
  }
}

export class Api {
  #token;
  #root;

  constructor(repo, token) {
    this.#token = token;
    this.#root = `/api/repos/${encodeURIComponent(repo)}`;
  }

  async get(path, query = {}) {
    const search = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== undefined)).toString();
    const headers = { authorization: `Bearer ${this.#token}`, accept: "application/json" };
    const address = `${this.#root}${path}${search ? `?${search}` : ""}`;
    const answer = await fetch(address, { headers, cache: "no-store", credentials: "omit", redirect: "error" });
    const body = await answer.json().catch(() => ({}));
    if (!answer.ok) throw new Refused(answer.status, body);
    return body;
  }

  status = () => this.get("");
  lane = (name) => this.get(`/lanes/${encodeURIComponent(name)}`);
  changes = (limit) => this.get("/changes", { limit });
  change = (id) => this.get(`/changes/${encodeURIComponent(id)}`);
  diff = (id, version) => this.get(`/changes/${encodeURIComponent(id)}/diff`, { version });
  log = (run) => this.get(`/runs/${encodeURIComponent(run)}/log`);
  page = (query) => this.get("/events", query);

  socket(after, protocols) {
    const address = new URL(`${this.#root}/events?after=${after}`, location.href);
    address.protocol = address.protocol.replace("http", "ws");
    return new WebSocket(address, protocols);
  }
}
