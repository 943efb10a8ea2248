// What is drawn, from what the model says.
import { h, sync } from "./dom.js";
import * as model from "./model.js";
import { href } from "./route.js";
import { comparedLines, count, diffLines, plain, short, span, usd } from "./text.js";

const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });

/** A moment, exact when pointed at. */
function time(at) {
  const date = new Date(at);
  const today = new Date().toDateString() === date.toDateString();
  return h("time", { datetime: date.toISOString(), title: date.toLocaleString() },
    today ? clock.format(date) : `${day.format(date)} ${clock.format(date)}`);
}

const chip = (stage) => h("span", { class: "chip", "data-stage": stage }, model.stageName(stage));
const empty = (text) => ({ key: "empty", sign: text, make: () => h("p", { class: "empty" }, text) });

function titleOf(state, change) {
  return state.changes.get(change)?.title ?? short(change, 10);
}

const changeLink = (state, change, text) =>
  h("a", { href: href(state.repo, "change", change), class: "change-link", dir: "auto" }, text ?? titleOf(state, change));

/** The line at the top. */
export function metrics(state, parent, now) {
  const { status } = state;
  parent.hidden = !status;
  if (!status) return;
  const stages = new Map(status.stages);
  const figures = model.figures(state.stream.log, now);
  const head = status.view.head;
  const items = [
    ["main", head ? short(head) : "empty", head && !status.view.tip_tested ? "untested" : ""],
    ["open", [...stages.values()].reduce((sum, number) => sum + number, 0)],
    ["in trains", stages.get("testing") ?? 0],
    ["replaying", stages.get("replaying") ?? 0],
    ["need authors", stages.get("needs-author") ?? 0, stages.get("needs-author") ? "waits" : ""],
    ["landed in 1 h", `${figures.landed}${figures.atLeast ? "+" : ""}`],
    ["offer to landing", figures.wait === null ? "\u2013" : span(figures.wait)],
  ];
  if (status.outbox > 0) items.push(["records on their way", status.outbox]);
  sync(parent, items.map(([name, value, note]) => ({
    key: name,
    sign: [value, note],
    make: () => h("span", { class: "figure", "data-note": note || null }, h("b", {}, value), " ", name, note === "untested" ? " (untested)" : ""),
  })));
}

/** The lane: why it waits, its trains, its last runs. */
export function lane(state, parent, now) {
  const { lane, status } = state;
  if (!lane) return sync(parent, [empty("Reading the lane ...")]);
  const times = model.runTimes(state.stream.log.entries.map(({ event }) => event));
  const trains = model.trains(lane, times);
  const frozen = status?.view.frozen;
  const waits = frozen === null || frozen === undefined ? lane.waits : `frozen: ${frozen}`;
  const items = [];
  if (waits) items.push({ key: "waits", sign: waits, make: () => h("p", { class: "notice" }, `The lane waits: ${waits}`) });
  for (const train of trains) {
    const { lane: name, train: number, attempt } = train.attempt;
    const titles = train.members.map((change) => titleOf(state, change));
    items.push({ key: `train-${name}-${number}-${attempt}`, sign: [train, titles], make: () => trainCard(state, train, now) });
  }
  if (trains.length === 0) {
    const queued = [...state.changes.values()].filter((one) => one.stage === "queued" || one.stage === "submitted").length;
    items.push(empty(queued > 0 ? `No train is under way; ${count(queued, "change")} wait for the next.` : "No train is under way. The lane waits for changes."));
  }
  const past = model.pastRuns(lane);
  if (past.length > 0) {
    items.push({ key: "past", sign: past, make: () => h("div", { class: "past" }, h("h3", {}, "Last runs"),
      h("ul", { class: "plain" }, past.map((run) => runRow(state, run)))) });
  }
  const claims = (status?.view.claims ?? []).filter((claim) => claim.until > now);
  if (claims.length > 0) {
    items.push({ key: "claims", sign: claims, make: () => h("div", { class: "past" }, h("h3", {}, "Claimed paths"),
      h("ul", { class: "plain" }, claims.map((claim) => h("li", { class: "run" }, claim.paths.map((path) => h("code", { class: "path" }, path)),
        h("small", {}, `by ${claim.fork ?? "the repository"} until `, time(claim.until)))))) });
  }
  if (lane.flaky.length > 0) {
    items.push({ key: "flaky", sign: lane.flaky, make: () => h("div", {}, h("h3", {}, "Flaky tests"),
      h("ul", { class: "plain" }, lane.flaky.map(([test, times]) => h("li", {}, test, h("small", {}, ` red, then green ${count(times, "time")}`))))) });
  }
  sync(parent, items);
}

function trainCard(state, train, now) {
  const shown = train.members.slice(0, 12);
  const more = train.members.slice(12);
  const member = (change) => h("li", {}, changeLink(state, change));
  return h("article", { class: "card train" },
    h("h3", {}, train.runs.some((run) => run.purpose === "confirm") ? "Main is tested" : `Train ${train.attempt.train}`, h("small", {}, ` ${train.attempt.lane}${train.attempt.attempt > 1 ? `, attempt ${train.attempt.attempt}` : ""} \u00b7 ${count(train.members.length, "change")}`)),
    train.runs.length === 0 ? h("p", { class: "why" }, "is put together, or lands") : h("ul", { class: "plain" }, train.runs.map((run) => openRun(run, now))),
    h("ol", { class: "members" }, shown.map(member)),
    more.length > 0 && h("details", {}, h("summary", {}, `${more.length} more`), h("ol", { class: "members", start: 13 }, more.map(member))));
}

/** A runner's name, its middle left out where it is long. */
const runnerName = (name) => (name.length > 24 ? `${name.slice(0, 14)}\u2026${name.slice(-8)}` : name);

/** A run of a train that is under way, with its progress by time: the one thing that `tick` moves. */
function openRun(run, now) {
  const words = { open: run.runner ? "tested by" : "waits for a runner", green: "green", red: "red", incomplete: "incomplete" };
  return h("li", { class: "run", "data-outcome": run.outcome },
    h("div", {}, h("b", {}, run.run), " ", words[run.outcome], " ", run.runner ? h("span", { title: run.runner }, runnerName(run.runner)) : "", h("small", {}, ` \u00b7 ${model.purposeName(run.purpose)}`)),
    run.outcome === "open" && run.began !== null && h("div", { class: "progress", "data-began": run.began, "data-usual": run.usual ?? "" },
      h("progress", run.usual ? { max: run.usual, value: Math.min(now - run.began, run.usual), "aria-label": `run ${run.run}, by time` } : { "aria-label": `run ${run.run}` }),
      h("span", {}, progressText(now - run.began, run.usual))));
}

function progressText(passed, usual) {
  return usual ? `${span(passed)} of about ${span(usual)}` : span(passed);
}

/** Moves the clocks that are on the page. */
export function tick(now) {
  for (const element of document.querySelectorAll("[data-began]")) {
    const passed = now - Number(element.dataset.began);
    const usual = Number(element.dataset.usual) || null;
    const bar = element.querySelector("progress");
    if (bar && usual) bar.value = Math.min(passed, usual);
    element.querySelector("span").textContent = progressText(passed, usual);
  }
  for (const element of document.querySelectorAll("[data-age]")) element.textContent = span(now - Number(element.dataset.age), true);
}

function runRow(state, run, withLog = true) {
  const { result } = run;
  const ran = result ? count(result.ran, "test") : "";
  const told = { green: `green, ${ran}`, red: `red, ${result?.failed.length} of ${ran}`, incomplete: result ? "incomplete" : "its runner was lost" };
  return h("li", { class: "run", "data-outcome": run.outcome },
    h("div", {}, h("b", {}, run.run), ` ${told[run.outcome]}`, h("small", {}, ` \u00b7 ${model.purposeName(run.purpose)}${run.runner ? ` \u00b7 ${runnerName(run.runner)}` : ""}`)),
    run.outcome !== "green" && result?.failed.length > 0 && h("ul", { class: "failed" }, result.failed.slice(0, 5).map((test) => h("li", {}, test))),
    withLog && run.outcome !== "green" && logBox(state, run.run));
}

/** The log of a run that was not green, read when it is opened. */
function logBox(state, run) {
  const body = h("pre", { class: "log", tabindex: 0 }, "Reading ...");
  const box = h("details", {}, h("summary", { "data-focus": `log-${run}` }, "Log"), body);
  box.addEventListener("toggle", async () => {
    if (!box.open || box.dataset.read) return;
    box.dataset.read = "1";
    try {
      body.textContent = plain((await state.api.log(run)).log) || "(the run printed nothing)";
      body.scrollTop = body.scrollHeight;
    } catch (error) {
      body.textContent = error.status === 404 ? "Nothing that it printed is kept." : error.message;
    }
  }, { passive: true });
  return box;
}

/** All changes by stage. */
export function queue(state, parent) {
  if (!state.status) return sync(parent, [empty("Reading the changes ...")]);
  const groups = model.byStage(state.changes.values());
  if (groups.length === 0) return sync(parent, [empty("Nobody has offered a change yet: git push origin HEAD:refs/for/main")]);
  sync(parent, groups.map((group) => ({
    key: group.stage,
    sign: group,
    make: () => {
      const list = h("ul", { class: "plain cards" });
      sync(list, group.changes.map((status) => ({ key: status.change, sign: status, make: () => changeCard(state, status) })));
      const left = group.total - group.changes.length;
      const box = h("details", { class: "group", "data-stage": group.stage, open: group.open },
        h("summary", { "data-focus": `group-${group.stage}` }, chip(group.stage), h("span", { class: "number" }, group.total)),
        list, left > 0 && h("p", { class: "hint" }, `and ${left} older`));
      const was = parent.querySelector(`details[data-stage="${group.stage}"]`);
      if (was) box.open = was.open;
      return box;
    },
  })));
}

function changeCard(state, status) {
  return h("li", { class: "card change", "data-stage": status.stage },
    h("h3", {}, changeLink(state, status.change, status.title)),
    h("p", { class: "why", dir: "auto" }, status.reason),
    h("p", { class: "meta" }, status.fork ?? "main repository", " \u00b7 ", h("code", {}, short(status.change, 9)),
      ` \u00b7 version ${status.version}`, status.replay_of ? `, redone from ${status.replay_of} by a model` : "", " \u00b7 ", h("span", { "data-age": status.at }, span(Date.now() - status.at, true)), " ago"));
}

/** Changes that are being replayed, or were. */
export function replays(state, parent) {
  const all = [...state.changes.values()].filter((one) => one.stage === "replaying" || one.replay_of);
  if (all.length === 0) {
    return sync(parent, [empty("No change was redone by a model lately. A change that collides is replayed, not sent back.")]);
  }
  all.sort((a, b) => (b.stage === "replaying") - (a.stage === "replaying") || b.at - a.at);
  sync(parent, all.map((status) => ({
    key: status.change,
    sign: [status, state.details.get(status.change)?.row.replay?.compared],
    make: () => {
      const origin = state.details.get(status.change)?.row.replay;
      return h("article", { class: "card change", "data-stage": status.stage },
        h("h3", {}, changeLink(state, status.change, status.title)), chip(status.stage),
        h("p", { class: "why", dir: "auto" }, status.reason),
        status.replay_of && h("p", { class: "meta" }, `version ${status.replay_of} redone as version ${status.version}`),
        origin && h("p", { class: "compared", dir: "auto" }, origin.compared));
    },
  })));
}

/** The timeline, newest first. */
export function timeline(state, parent, moreLine) {
  const { entries, more } = model.filtered(state.stream.log.entries, state.filter, state.changes);
  sync(parent, entries.length === 0 ? [{ key: "empty", make: () => h("li", { class: "empty" }, "Nothing yet.") }] : entries.map(({ cursor, event }) => ({
    key: String(cursor),
    sign: [event.change ? titleOf(state, event.change) : ""],
    make: () => h("li", { class: "event", "data-stage": model.tone(event) }, time(event.at), h("span", { class: "kind" }, event.kind),
      h("div", {}, event.change && [changeLink(state, event.change), event.kind === "submitted" ? " was offered" : ": "],
        event.kind === "submitted" && event.change ? "" : h("span", { dir: "auto" }, event.text))),
  })));
  moreLine.textContent = more ? "Older events are left out: filter, or see yard timeline." : "";
}

export function kinds(state, select) {
  const found = [...new Set(state.stream.log.entries.map(({ event }) => event.kind))].sort();
  const chosen = select.value;
  if ([...select.options].slice(1).map((option) => option.value).join() === found.join()) return;
  select.replaceChildren(h("option", { value: "" }, "all"), ...found.map((kind) => h("option", { value: kind }, kind)));
  select.value = found.includes(chosen) ? chosen : "";
}

const INTENT = [["task", "Task"], ["plan", "Plan"], ["review", "Review"], ["tests", "Tests"]];

/** One change, whole. */
export function change(state, parent) {
  const { id, detail, error } = state.shown;
  if (error) return sync(parent, [{ key: "error", sign: error, make: () => h("div", {}, h("h2", { id: "change-title" }, "Change"), h("p", { class: "notice" }, error), back(state)) }]);
  if (!detail) return sync(parent, [{ key: "reading", sign: id, make: () => h("div", {}, h("h2", { id: "change-title" }, titleOf(state, id)), empty("Reading ...").make()) }]);
  // The event socket knows the stage before the next detail is read.
  const status = state.changes.get(detail.status.change) ?? detail.status;
  const versions = model.versions(detail);
  const items = [{ key: "head", sign: [status, detail.row.intent], make: () => changeHead(state, status, detail) }];
  for (const one of versions.filter((version) => version.replay).reverse()) {
    items.push({ key: `replay-${one.version}`, sign: one.version, make: () => replayBox(state, detail, one) });
  }
  items.push({ key: "intent", sign: detail.row.intent, make: () => intentBox(detail.row) });
  items.push({ key: "history", sign: detail.history, make: () => historyBox(state, detail.history) });
  if (!detail.row.replay) {
    items.push({ key: `diff-${detail.row.version}`, sign: detail.row.version, make: () => lazyBox("Edits", () => diffBox(state, detail.status.change, detail.row.version)) });
  }
  if (versions.length > 1) items.push({ key: "versions", sign: versions.length, make: () => versionsBox(versions) });
  sync(parent, items);
}

const back = (state) => h("p", {}, h("a", { href: href(state.repo, "queue"), class: "back" }, "\u2190 All changes"));

function changeHead(state, status, detail) {
  const { row } = detail;
  const by = [row.intent.agent || row.author.name, row.intent.model].filter(Boolean).join(", ");
  const facts = [
    ["Change", h("code", {}, status.change)], ["Version", `${status.version} (${VIA[row.via] ?? row.via})`],
    ["Fork", row.fork ?? "the repository itself"], ["By", by], ["Lane", row.lane],
    ["Base", row.base.commits.map((commit) => h("code", {}, short(commit), " "))],
    status.commit && ["On main as", h("code", {}, short(status.commit))],
    row.waits_for.length > 0 && ["After", row.waits_for.map((change) => [changeLink(state, change), " "])],
    ["Paths", row.edits.length <= 6 ? row.edits.map((edit) => h("code", { class: "path" }, edit.path)) : count(row.edits.length, "path")],
  ].filter(Boolean);
  return h("header", {}, back(state), h("h2", { id: "change-title", tabindex: -1, dir: "auto" }, status.title), chip(status.stage),
    h("p", { class: "why large", dir: "auto" }, status.reason),
    row.warnings.map((warning) => h("p", { class: "notice" }, warning)),
    h("dl", { class: "facts" }, facts.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])));
}
const VIA = { git: "pushed", api: "by the API", replay: "redone by a model" };

function intentBox(row) {
  const { intent } = row;
  const parts = INTENT.filter(([field]) => intent[field]).map(([field, name]) => [h("h4", {}, name), h("p", { class: "prose", dir: "auto" }, intent[field])]);
  return h("section", { class: "box", "aria-label": "Intent" }, h("h3", {}, "Intent"),
    intent.body ? h("p", { class: "prose", dir: "auto" }, intent.body) : parts.length === 0 && h("p", { class: "empty" }, "Its title is all that it says."),
    parts, intent.notes.length > 0 && h("details", {}, h("summary", {}, count(intent.notes.length, "further note")), intent.notes.map((note) => h("p", { class: "prose", dir: "auto" }, note))));
}

function historyBox(state, history = []) {
  return h("section", { class: "box", "aria-label": "History" }, h("h3", {}, "History"),
    h("ol", { class: "plain history" }, history.map((step) => h("li", { class: "event", "data-stage": step.kind }, time(step.at), h("span", { class: "kind" }, step.kind),
      h("div", {}, h("span", { dir: "auto" }, step.text), step.kind === "red" && step.run && logBox(state, step.run))))));
}

function versionsBox(versions) {
  return h("section", { class: "box", "aria-label": "Versions" }, h("h3", {}, "Versions"),
    h("ul", { class: "plain" }, versions.map((one) => h("li", {}, `${one.version}: ${VIA[one.via] ?? one.via} `, time(one.at)))));
}

/** A replay: why, against whom, by what, at what cost, and both differences. */
function replayBox(state, detail, one) {
  const origin = one.replay;
  const { cost } = origin;
  const facts = [
    ["Why", model.causeText(origin.cause)],
    origin.rivals.length > 0 && ["Landed meanwhile", origin.rivals.map((rival) => h("div", {}, changeLink(state, rival)))],
    origin.renames.length > 0 && ["Renamed on main", origin.renames.map(([was, is]) => h("div", {}, h("code", {}, was), " \u2192 ", h("code", {}, is)))],
    ["By", cost.calls > 0 ? `${cost.model}, ${count(cost.calls, "call")}` : `${cost.model || "a model"}, its answer was at hand`],
    ["Cost", `${usd(cost.micro_usd)} (${cost.tokens_in} + ${cost.tokens_out} tokens)`],
    ["Differs", origin.differing_lines === 0 ? "in no line" : `in ${count(origin.differing_lines, "line")}`],
  ].filter(Boolean);
  return h("section", { class: "box replay", "aria-label": `Replay of version ${origin.of}` },
    h("h3", {}, `Version ${origin.of} redone as version ${one.version}`),
    h("p", { class: "compared", dir: "auto" }, origin.compared),
    h("dl", { class: "facts" }, facts.map(([name, value]) => [h("dt", {}, name), h("dd", { dir: "auto" }, value)])),
    origin.range_diff && h("details", { open: true }, h("summary", {}, "How it differs from what was reviewed"),
      h("p", { class: "hint" }, "< only in the reviewed change, > only in the redone one"), pre(comparedLines(origin.range_diff))),
    lazyBox("Both differences", () => h("div", { class: "pair" },
      h("div", {}, h("h4", {}, `Reviewed: version ${origin.reviewed}`), diffBox(state, detail.status.change, origin.reviewed)),
      h("div", {}, h("h4", {}, `Redone: version ${one.version}`), diffBox(state, detail.status.change, one.version))), true));
}

/** A box whose inside is made when it is opened. */
function lazyBox(title, make, open = false) {
  const inside = h("div", {});
  const box = h("details", { class: "box" }, h("summary", {}, title), inside);
  const fill = () => {
    if (box.open && !inside.firstChild) inside.append(make());
  };
  box.addEventListener("toggle", fill);
  if (open) {
    box.open = true;
    fill();
  }
  return box;
}

const pre = (lines) => h("pre", { class: "diff", tabindex: 0 }, lines.map(({ kind, text }) => h("span", { class: kind }, `${text}\n`)));

/** A version's edits, path by path. */
function diffBox(state, id, version) {
  const body = h("div", { class: "files" }, h("p", { class: "empty" }, "Reading ..."));
  state.api.diff(id, version).then((diff) => {
    const files = diff.files.map((file) => {
      const how = !file.before ? "new" : !file.after ? "deleted" : file.before !== file.after ? `mode ${file.before} \u2192 ${file.after}` : "";
      return h("div", { class: "file" }, h("h5", {}, h("code", { class: "path" }, file.path), how && h("small", {}, ` ${how}`)),
        file.text && pre(diffLines(file.text)), file.note && h("p", { class: "hint" }, file.note));
    });
    body.replaceChildren(...files, ...(diff.left_out ? [h("p", { class: "hint" }, `and ${count(diff.left_out, "path")} more`)] : []));
  }, (error) => body.replaceChildren(h("p", { class: "notice" }, error.message)));
  return body;
}

