// The board: signs in, follows the events, reads the status after them, draws.
import { Api } from "./api.js";
import * as model from "./model.js";
import { href, parse, repoOf, takeToken } from "./route.js";
import { Stream } from "./stream.js";
import { plain, span } from "./text.js";
import * as views from "./views.js";

const KEY = "switchyard.token";
/** The status is read at most this often, however many events come. */
const REFRESH_MS = 2000;
/** And at least this often while the page is looked at, for what no event tells: a lease that was lost. */
const IDLE_REFRESH_MS = 60_000;
const CHANGES = 200;
const ANNOUNCE_MS = 2000;
const DRAW_MS = 150;

const $ = (id) => document.getElementById(id);
const state = {
  repo: null, view: "signin", api: null, stream: null, status: null, lane: null, changes: new Map(), details: new Map(),
  shown: { id: null, detail: null, error: null }, filter: { kind: "", text: "" },
};
let refreshing = false;
let wanted = false;
let refreshedAt = 0;
let timer = null;
let moved = [];
let announcing = null;
let drawing = false;

// --- Signing in -------------------------------------------------------------------------------------------------

function token() {
  return sessionStorage.getItem(KEY);
}

/** Takes a token out of the address before anything else can see it there. */
function enter() {
  const { path, token: given } = takeToken(location.hash);
  if (given !== null) {
    sessionStorage.setItem(KEY, given);
    const named = parse(path).repo ? path : href(repoOf(given) ?? "");
    history.replaceState(null, "", location.pathname + named);
    if (state.repo) close();
  }
  const { repo, view, change } = parse(location.hash);
  if (!repo || !token()) return signIn(repo);
  if (repo !== state.repo) open(repo);
  show(view, change);
}

function signIn(repo, why) {
  close();
  state.view = "signin";
  $("signin-repo").value = repo ?? repoOf(token() ?? "") ?? "";
  notice(why ?? "");
  show("signin", null);
  ($("signin-repo").value ? $("signin-token") : $("signin-repo")).focus();
}

function open(repo) {
  close();
  const api = new Api(repo, token());
  const stream = new Stream(token(), {
    page: (query) => api.page(query),
    socket: (after, protocols) => api.socket(after, protocols),
    later: (action, ms) => setTimeout(action, ms),
    never: (handle) => clearTimeout(handle),
    onEvents: (events, how) => {
      if (state.stream === stream) heard(events, how);
    },
    onState: (name, detail) => {
      if (state.stream === stream) connection(name, detail);
    },
  });
  Object.assign(state, { repo, api, stream });
  notice("");
  stream.start();
  refresh();
}

function close() {
  state.stream?.stop();
  clearTimeout(timer);
  Object.assign(state, { repo: null, api: null, stream: null, status: null, lane: null });
  state.changes.clear();
  state.details.clear();
  timer = null;
  refreshedAt = 0;
}

function notice(text) {
  $("notice").textContent = plain(text);
  $("notice").hidden = !text;
}

// --- The connection ---------------------------------------------------------------------------------------------

const CONNECTION = { connecting: "Connecting", live: "Live", waiting: "Offline", refused: "Refused", off: "Not connected" };

function connection(name, detail) {
  const pill = $("connection");
  pill.dataset.state = name;
  pill.textContent = CONNECTION[name];
  if (name === "waiting") {
    const again = document.createElement("span");
    again.textContent = `, again in ${span(detail.delay)}`;
    pill.append(again);
  }
  if (name === "live") {
    notice("");
    refresh();
  }
  if (name === "refused") {
    if (detail.status === 401) {
      sessionStorage.removeItem(KEY);
      return signIn(state.repo, detail.message);
    }
    notice(detail.message);
  }
}

function heard(events, { first, lost }) {
  if (!first) moved.push(...model.fold(state.changes, events));
  const shown = state.shown.id;
  if (!first && shown && events.some((event) => event.change === shown || event.text.includes(shown) || event.kind === "run")) readShown();
  announce();
  // Events that are kept no more: the status, which is read anew, has what they did.
  if (lost) notice("Some events are kept no more: what is shown was read anew.");
  draw();
  refresh();
}

/** Tells a screen reader what moved, gathered, so that a full train is one sentence. */
function announce() {
  announcing ??= setTimeout(() => {
    announcing = null;
    const text = model.announcement(moved);
    moved = [];
    if (text) $("announce").textContent = plain(text);
  }, ANNOUNCE_MS);
}

// --- Reading ----------------------------------------------------------------------------------------------------

/** Reads the status soon: at most once in a while, never twice at once, and not while nobody looks. */
function refresh() {
  wanted = true;
  if (refreshing || timer !== null || document.hidden || !state.api) return;
  timer = setTimeout(read, Math.max(0, refreshedAt + REFRESH_MS - Date.now()));
}

async function read() {
  timer = null;
  const { api } = state;
  if (!api) return;
  [refreshing, wanted] = [true, false];
  try {
    const [listed, status, lane] = await Promise.all([api.changes(CHANGES), api.status(), api.lane("main")]);
    if (state.api === api) {
      Object.assign(state, { status, lane, changes: model.known(listed, status.open) });
      draw();
      readReplays();
    }
  } catch (error) {
    if (state.api === api && error.status === 401) connection("refused", error);
    else if (state.api === api && error.status) notice(error.message);
  } finally {
    refreshing = false;
    refreshedAt = Date.now();
    if (wanted) refresh();
  }
}

async function detailOf(id) {
  const detail = await state.api.change(id);
  state.details.set(detail.status.change, detail);
  if (state.details.size > 50) state.details.delete(state.details.keys().next().value);
  return detail;
}

let reading = null;
let again = false;

/** Reads the change that is shown; while that is under way, once more afterwards at most. */
async function readShown() {
  const { id } = state.shown;
  if (!id || !state.api) return;
  if (reading === id) {
    again = true;
    return;
  }
  reading = id;
  try {
    const detail = await detailOf(id);
    if (state.shown.id === id) state.shown = { id, detail, error: null };
  } catch (error) {
    if (state.shown.id === id && !state.shown.detail) state.shown = { id, detail: null, error: error.message };
  }
  reading = null;
  draw();
  if (again) {
    again = false;
    setTimeout(readShown, REFRESH_MS);
  }
}

/** The sentence on each replayed change, for the list of replays: a few at a time, each once a version. */
async function readReplays() {
  const lacking = [...state.changes.values()].filter((one) => one.replay_of && state.details.get(one.change)?.row.version !== one.version);
  for (const { change } of lacking.slice(0, 6)) {
    try {
      await detailOf(change);
    } catch {
      return;
    }
    draw();
  }
}

// --- Drawing ----------------------------------------------------------------------------------------------------

function show(view, change) {
  const from = `${state.view}/${state.shown.id}`;
  state.view = view;
  if (state.shown.id !== change) {
    state.shown = { id: change, detail: state.details.get(change) ?? null, error: null };
    if (change) readShown();
  }
  document.body.dataset.view = view;
  const inside = view !== "signin";
  $("tabs").hidden = !inside;
  $("signout").hidden = !inside;
  $("metrics").hidden = !inside || !state.status;
  $("repo").textContent = inside ? plain(state.repo) : "";
  $("home").href = inside ? href(state.repo) : "#/";
  document.title = inside ? `${plain(state.repo)} \u00b7 Switchyard` : "Switchyard";
  for (const tab of $("tabs").children) {
    tab.href = inside ? href(state.repo, tab.dataset.tab) : "#/";
    const here = tab.dataset.tab === (view === "change" ? "queue" : view);
    if (here) tab.setAttribute("aria-current", "page");
    else tab.removeAttribute("aria-current");
  }
  if (!inside) {
    $("connection").dataset.state = "off";
    $("connection").textContent = CONNECTION.off;
    return;
  }
  paint();
  if (from !== `${view}/${change}` && !from.startsWith("signin")) {
    scrollTo(0, 0);
    $("main").focus({ preventScroll: true });
  }
}

/** Draws soon and once, however often it is asked; a page that nobody sees is drawn when it is seen. */
function draw() {
  if (drawing || document.hidden) return;
  drawing = true;
  setTimeout(() => {
    drawing = false;
    paint();
  }, DRAW_MS);
}

function paint() {
  if (!state.stream) return;
  const now = Date.now();
  const parts = [
    () => views.metrics(state, $("metrics"), now),
    () => views.lane(state, $("lane-body"), now),
    () => views.queue(state, $("queue-body")),
    () => views.replays(state, $("replays-body")),
    () => views.kinds(state, $("filter-kind")),
    () => views.timeline(state, $("timeline-body"), $("timeline-more")),
    () => (state.shown.id ? views.change(state, $("change-body")) : $("change-body").replaceChildren()),
  ];
  for (const part of parts) {
    try {
      part();
    } catch (error) {
      // One part that meets what it does not know takes no other with it.
      console.error(error);
    }
  }
}

function awake() {
  if (document.hidden || !state.stream) return;
  state.stream.wake();
  if (wanted || Date.now() - refreshedAt > REFRESH_MS) refresh();
  draw();
}

$("signin-form").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem(KEY, $("signin-token").value.trim());
  const repo = $("signin-repo").value.trim();
  $("signin-token").value = "";
  close();
  if (location.hash === href(repo)) enter();
  else location.hash = href(repo);
});
$("signout").addEventListener("click", () => {
  sessionStorage.removeItem(KEY);
  const { repo } = state;
  close();
  history.replaceState(null, "", location.pathname);
  signIn(repo);
});
$("filter").addEventListener("submit", (event) => event.preventDefault());
$("filter").addEventListener("input", () => {
  state.filter = { kind: $("filter-kind").value, text: $("filter-text").value };
  draw();
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  $("main").focus();
});
addEventListener("hashchange", enter);
addEventListener("online", awake);
addEventListener("pageshow", awake);
document.addEventListener("visibilitychange", awake);
setInterval(() => {
  if (document.hidden) return;
  views.tick(Date.now());
  if (Date.now() - refreshedAt > IDLE_REFRESH_MS) refresh();
}, 1000);
enter();
