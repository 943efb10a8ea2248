// What the board says, from what the platform says: pure.
import { median } from "./text.js";

/** Stages in the order in which a person wants to see them, with their names. */
export const STAGES = [
  ["needs-author", "Needs its author"],
  ["held", "Held"],
  ["replaying", "Being replayed"],
  ["testing", "In a train"],
  ["queued", "Queued"],
  ["submitted", "Submitted"],
  ["landed", "Landed"],
  ["already-on-main", "Already on main"],
  ["withdrawn", "Taken back"],
  ["expired", "Expired"],
];
const NAMES = new Map(STAGES);
const ENDED = new Set(["landed", "already-on-main", "withdrawn", "expired"]);
/** What an event says of its change's stage. */
const STAGE_OF = new Map([
  ["submitted", "submitted"],
  ["queued", "queued"],
  ["testing", "testing"],
  ["replaying", "replaying"],
  ["held", "held"],
  ["needs-author", "needs-author"],
  ["landed", "landed"],
  ["withdrawn", "withdrawn"],
  ["already-on-main", "already-on-main"],
  ["expired", "expired"],
]);

export const stageName = (stage) => NAMES.get(stage) ?? stage;
export const isOpen = (status) => !ENDED.has(status.stage);

/** The changes at hand by id: those listed, over them those that are open now. */
export function known(listed, open) {
  const all = new Map(listed.map((status) => [status.change, status]));
  // An old answer may still call a change open that the newer list of open ones leaves out: the list was read after it.
  for (const status of open) all.set(status.change, status);
  return all;
}

/**
 * Changes after events, before the next status is read: each event that tells a stage changes its change's. Returns
 * the changes whose stage is another one now.
 */
export function fold(changes, events) {
  const moved = [];
  for (const event of events) {
    const stage = STAGE_OF.get(event.kind);
    if (!event.change || !stage) continue;
    const was = changes.get(event.change);
    if (!was) {
      // Only a submission tells the title; of the rest the next status does.
      if (event.kind !== "submitted") continue;
      changes.set(event.change, {
        change: event.change, version: 1, fork: null, title: event.text, stage, reason: "just offered", verdict: null,
        commit: null, at: event.at,
      });
      moved.push(changes.get(event.change));
      continue;
    }
    const reason = event.kind === "submitted" ? "a new version was offered" : event.text || was.reason;
    const now = { ...was, stage, reason };
    changes.set(event.change, now);
    if (was.stage !== stage) moved.push(now);
  }
  return moved;
}

/** Groups by stage: open ones oldest first, ended ones newest first and no more than `ended`. */
export function byStage(changes, ended = 30) {
  const groups = new Map(STAGES.map(([stage]) => [stage, []]));
  for (const status of changes) (groups.get(status.stage) ?? groups.get("queued")).push(status);
  return STAGES.map(([stage, name]) => {
    const all = groups.get(stage).sort((a, b) => (ENDED.has(stage) ? b.at - a.at : a.at - b.at));
    return { stage, name, open: !ENDED.has(stage), total: all.length, changes: ENDED.has(stage) ? all.slice(0, ended) : all };
  }).filter((group) => group.total > 0);
}

/** When each run began and how long it took, as far as events tell (durable-objects/src/lane/events.rs). */
export function runTimes(events) {
  const times = new Map();
  for (const { at, text } of events) {
    const began = /^run (\S+) is with /.exec(text);
    if (began) times.set(began[1], { began: at, took: null });
    const ended = /^run (\S+): /.exec(text);
    const time = ended && times.get(ended[1]);
    if (time) time.took = at - time.began;
  }
  return times;
}

/** What an event is coloured as: a run that is not green is red. */
export const tone = ({ kind, text }) => (kind === "run" && !/: green/.test(text) ? "red" : kind);

const same = (a, b) => a && b && a.lane === b.lane && a.train === b.train && a.attempt === b.attempt;

/** What a run is for, in words. */
export function purposeName(purpose) {
  return {
    train: "the whole train", alone: "one change alone", base: "its base without it", again: "the same tree again",
    prefix: "the first changes of the train", confirm: "main as it stands",
    without: "its own tests without it, red is right",
  }[purpose] ?? purpose;
}

/** Green, red, incomplete, or still open. */
export function outcome(run) {
  if (run.open) return "open";
  if (!run.result) return "incomplete";
  if (!run.result.complete) return "incomplete";
  return run.result.green && run.result.ran > 0 && run.result.failed.length === 0 ? "green" : "red";
}

/** The trains that are under way: members, runs, since when, and how long such a run takes. */
export function trains(lane, times) {
  const found = [];
  const train = (attempt) => {
    let one = found.find((train) => same(train.attempt, attempt));
    if (!one) found.push((one = { attempt, members: [], runs: [] }));
    return one;
  };
  for (const entry of lane.entries) {
    if (entry.attempt && entry.stage === "testing") train(entry.attempt).members.push(entry.change);
  }
  const usual = median([...times.values()].map((time) => time.took).filter((took) => took !== null));
  for (const run of lane.runs) {
    if (!run.open && !found.some((train) => same(train.attempt, run.attempt))) continue;
    const one = train(run.attempt);
    const time = times.get(run.run);
    one.runs.push({ ...run, outcome: outcome(run), began: run.runner ? time?.began ?? null : null, usual });
    for (const change of run.changes) if (!one.members.includes(change)) one.members.push(change);
  }
  for (const one of found) one.runs.reverse();
  return found.sort((a, b) => a.attempt.train - b.attempt.train);
}

/** The last runs that ended, newest first. */
export function pastRuns(lane, most = 12) {
  return lane.runs.filter((run) => !run.open).slice(0, most).map((run) => ({ ...run, outcome: outcome(run) }));
}

const HOUR = 3_600_000;

/** The figures of the line at the top, from the events at hand. */
export function figures(log, now) {
  const offered = new Map();
  const waits = [];
  let landed = 0;
  for (const { event } of log.entries) {
    if (event.kind === "submitted" && event.change) offered.set(event.change, event.at);
    if (event.kind !== "landed" || now - event.at > HOUR) continue;
    landed += 1;
    if (offered.has(event.change)) waits.push(event.at - offered.get(event.change));
  }
  const oldest = log.entries[0]?.event.at ?? now;
  return { landed, atLeast: log.older && now - oldest < HOUR, wait: median(waits) };
}

/** Events for the timeline, newest first: of a kind, and of a change or with these words. */
export function filtered(entries, { kind, text }, changes, most = 200) {
  const wanted = text.trim().toLowerCase();
  const found = [];
  for (let at = entries.length - 1; at >= 0 && found.length <= most; at -= 1) {
    const { event } = entries[at];
    if (kind && event.kind !== kind) continue;
    const title = event.change ? changes.get(event.change)?.title ?? "" : "";
    const hay = `${event.change ?? ""}\n${title}\n${event.text}`.toLowerCase();
    if (wanted === "" || hay.includes(wanted)) found.push(entries[at]);
  }
  return { entries: found.slice(0, most), more: found.length > most };
}

/** The versions of a change from its facts, oldest first, each with how it came in. */
export function versions(detail) {
  const found = [];
  for (const [, at, fact] of detail.facts) {
    const row = fact.fact === "submitted" ? fact.row : null;
    if (row) found.push({ version: row.version, at, via: row.via, replay: row.replay ?? null, row });
  }
  if (!found.some((one) => one.version === detail.row.version)) {
    const { row } = detail;
    found.push({ version: row.version, at: row.at, via: row.via, replay: row.replay ?? null, row });
  }
  return found;
}

/** One sentence on why a replay was asked for. */
export function causeText(cause) {
  if (cause.cause === "collision") {
    const paths = cause.paths.map(([path, why]) => `${path} (${why})`);
    return `it collided with main at ${paths.join("; ")}`;
  }
  return `it is green alone and red together with what landed first: ${cause.detail}`;
}

/** What a screen reader is told of changes whose stage moved. */
export function announcement(moved) {
  if (moved.length === 0) return "";
  if (moved.length <= 3) return moved.map((status) => `${status.title}: ${stageName(status.stage)}.`).join(" ");
  const counts = new Map();
  for (const status of moved) counts.set(status.stage, (counts.get(status.stage) ?? 0) + 1);
  return [...counts].map(([stage, number]) => `${stageName(stage)}: ${number}.`).join(" ");
}
