//! The parts of a prompt, and which of them fit.

use std::collections::BTreeSet;

use yard_common::RepoPath;
use yard_common::intent::Intent;

use super::{NoPrompt, excerpt};
use crate::brief::{Brief, BriefFile, Cause};
use crate::text::{cut as cut_text, lines, readable, unified};

/// Lines of context in a difference.
const CONTEXT: usize = 5;
/// One field of the change's own intent, in bytes.
const FIELD_BYTES_MAX: usize = 8 * 1024;
/// One field of a rival's intent, in bytes.
const RIVAL_FIELD_BYTES_MAX: usize = 1024;
/// The end of a red run's log, in bytes.
const LOG_BYTES_MAX: usize = 8 * 1024;
/// The list of tests that fail, in bytes.
const TESTS_BYTES_MAX: usize = 4 * 1024;
/// The list of what is not shown, in bytes.
const NOTES_BYTES_MAX: usize = 1024;
/// How a message begins.
const LEAD: &str = "Redo the reviewed change on newest main. All that is known of it follows.\n\n";
/// A piece is not cut to less than this, in bytes: it is left out.
const CUT_BYTES_MIN: usize = 512;

/// How much a piece matters; less comes first when room is given away.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// Without it there is no question.
    Needed,
    Reviewed,
    Rival,
    Contract,
    Other,
    Context,
}

/// A piece of the message, as it stands there.
struct Piece {
    rank: Rank,
    /// What is said of it where it is cut or left out.
    name: String,
    text: String,
    /// The path that is shown by it, where one is.
    shows: Option<RepoPath>,
    /// May its end be cut off?
    body: Option<Body>,
}

/// The text within a fence.
struct Body {
    head: String,
    text: String,
    foot: String,
}

/// The message, and what is not in it.
pub struct Chosen {
    pub text: String,
    pub cut: Vec<String>,
    pub partly: BTreeSet<RepoPath>,
}

/// A path as a line of the message: as it is, or as a JSON string where it has odd characters.
pub fn shown(path: &RepoPath) -> String {
    let text = path.to_string();
    let plain = |c: char| c.is_alphanumeric() || "._-/+@=,~()[]".contains(c) || c == ' ';
    if text.chars().all(plain) && text.trim() == text {
        return text;
    }
    serde_json::to_string(&text).unwrap_or(text)
}

struct Writer<'a> {
    nonce: &'a str,
}

impl Writer<'_> {
    fn fence(&self, what: &str, text: &str) -> Body {
        let feed = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        Body {
            head: format!("<data {} {what}>\n", self.nonce),
            text: format!("{text}{feed}"),
            foot: format!("</data {}>\n", self.nonce),
        }
    }

    fn piece(&self, rank: Rank, name: &str, text: &str) -> Piece {
        let body = self.fence(name, text);
        let text = [body.head.as_str(), &body.text, &body.foot].concat();
        Piece { rank, name: name.to_owned(), text, shows: None, body: Some(body) }
    }

    fn whole(&self, rank: Rank, name: &str, text: &str) -> Piece {
        Piece { body: None, ..self.piece(rank, name, text) }
    }
}

/// Chooses what fits into `room` bytes.
///
/// # Errors
/// Why there is no prompt, or the bytes that are needed.
pub fn choose(brief: &Brief, nonce: &str, room: usize) -> Result<Chosen, Result<NoPrompt, usize>> {
    for file in brief.files.iter().filter(|file| file.is_collided()) {
        if !file.is_text() || readable(file.path.as_bytes()).is_none() {
            return Err(Ok(NoPrompt::NotText { path: file.path.clone() }));
        }
    }
    let writer = Writer { nonce };
    let mut pieces = vec![
        writer.whole(Rank::Needed, "intent of the change", &intent(&brief.intent, FIELD_BYTES_MAX)),
        writer.whole(Rank::Needed, "why it is redone", &cause(&brief.cause)),
    ];
    let asked = asked(brief);
    let fixed = pieces.iter().map(|piece| piece.text.len()).sum::<usize>()
        + asked.len()
        + LEAD.len()
        + NOTES_BYTES_MAX;
    let mut partly = BTreeSet::new();
    let files = collided(excerpts(brief, &writer), room.saturating_sub(fixed), &mut partly)
        .map_err(|needed| Err(needed + fixed))?;
    pieces.extend(files);
    pieces.extend(rest(brief, &writer));
    let (texts, cut) =
        fit(pieces, room.saturating_sub(asked.len() + LEAD.len() + NOTES_BYTES_MAX), &mut partly);
    let mut text = [LEAD, &texts].concat();
    if !cut.is_empty() {
        let all = cut.join("; ");
        let short = cut_text(&all, NOTES_BYTES_MAX - 100);
        let more = if short.len() < all.len() { " ... and more" } else { "" };
        text.push_str(&format!("Not shown for want of room: {short}{more}.\n"));
    }
    text.push_str(&asked);
    Ok(Chosen { text, cut, partly })
}

/// Files that the model has to edit, or that an interaction is about, with their reviewed differences.
fn is_central(brief: &Brief, file: &BriefFile) -> bool {
    let interaction = matches!(brief.cause, Cause::Interaction { .. });
    file.is_text() && (file.is_collided() || interaction)
}

fn excerpts<'a>(brief: &'a Brief, writer: &Writer<'_>) -> Vec<(&'a BriefFile, Piece, Piece, Piece)> {
    let central = brief.files.iter().filter(|file| is_central(brief, file));
    central
        .map(|file| {
            let diff = writer.whole(Rank::Needed, &reviewed_name(file), &reviewed(file));
            let text = file.start().and_then(readable).unwrap_or_default();
            let mut full = writer.whole(Rank::Needed, &start_name(file), text);
            let mut excerpt = Piece {
                rank: Rank::Needed,
                name: full.name.clone(),
                text: parts(file, writer),
                shows: None,
                body: None,
            };
            full.shows = Some(file.path.clone());
            excerpt.shows = Some(file.path.clone());
            (file, diff, full, excerpt)
        })
        .collect()
}

/// The collided files whole, or the largest of them in parts until all fit.
fn collided(
    mut files: Vec<(&BriefFile, Piece, Piece, Piece)>,
    room: usize,
    partly: &mut BTreeSet<RepoPath>,
) -> Result<Vec<Piece>, usize> {
    let mut needed: usize = files.iter().map(|(_, diff, full, _)| diff.text.len() + full.text.len()).sum();
    files.sort_by_key(|(_, _, full, excerpt)| {
        std::cmp::Reverse(full.text.len().saturating_sub(excerpt.text.len()))
    });
    let mut pieces = Vec::new();
    for (file, diff, full, excerpt) in files {
        let in_parts = needed > room && excerpt.text.len() < full.text.len();
        if in_parts {
            needed -= full.text.len() - excerpt.text.len();
            partly.insert(file.path.clone());
        }
        pieces.push((file.path.clone(), diff, if in_parts { excerpt } else { full }));
    }
    if needed > room {
        return Err(needed);
    }
    pieces.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(pieces.into_iter().flat_map(|(_, diff, file)| [diff, file]).collect())
}

/// Everything that may be cut.
fn rest(brief: &Brief, writer: &Writer<'_>) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let others = || brief.files.iter().filter(|file| !is_central(brief, file));
    for file in others().filter(|file| file.is_text()) {
        pieces.push(writer.piece(Rank::Reviewed, &reviewed_name(file), &reviewed(file)));
    }
    for rival in &brief.rivals {
        let name = format!("intent of change {}, which landed meanwhile", rival.change);
        pieces.push(writer.piece(Rank::Rival, &name, &intent(&rival.intent, RIVAL_FIELD_BYTES_MAX)));
        for file in &rival.files {
            let sides = (file.before.as_deref(), file.after.as_deref());
            let name = format!("what change {} did to {}", rival.change, shown(&file.path));
            pieces.push(writer.piece(Rank::Rival, &name, &difference(sides.0, sides.1)));
        }
    }
    if let Some(contract) = &brief.contract {
        pieces.push(writer.piece(Rank::Contract, "contract that must hold", contract));
    }
    for file in others().filter(|file| file.is_text()) {
        let text = file.start().and_then(readable).unwrap_or_default();
        let mut piece = writer.piece(Rank::Other, &start_name(file), text);
        piece.shows = Some(file.path.clone());
        pieces.push(piece);
    }
    let notes = brief.intent.notes.join("\n\n");
    if !notes.is_empty() {
        pieces.push(writer.piece(Rank::Other, "further messages of the change", &notes));
    }
    for (path, content) in &brief.context {
        if let Some(text) = readable(content) {
            let name = format!("file {} on newest main, to read only", shown(path));
            pieces.push(writer.piece(Rank::Context, &name, text));
        }
    }
    pieces
}

/// Gives the room away by rank, in order within a rank; the message keeps the order of the list.
fn fit(pieces: Vec<Piece>, room: usize, partly: &mut BTreeSet<RepoPath>) -> (String, Vec<String>) {
    let mut order: Vec<usize> = (0..pieces.len()).collect();
    order.sort_by_key(|at| pieces.get(*at).map(|piece| piece.rank));
    let mut left = room;
    let mut texts = vec![String::new(); pieces.len()];
    let mut missing: Vec<(usize, String)> = Vec::new();
    for at in order {
        let (Some(piece), Some(text)) = (pieces.get(at), texts.get_mut(at)) else { continue };
        if piece.text.len() <= left || piece.rank == Rank::Needed {
            left = left.saturating_sub(piece.text.len());
            text.clone_from(&piece.text);
            continue;
        }
        partly.extend(piece.shows.clone());
        let shortened = piece.body.as_ref().and_then(|body| shorten(body, left));
        missing.push((
            at,
            format!("{} {}", if shortened.is_some() { "the end of" } else { "all of" }, piece.name),
        ));
        if let Some(short) = shortened {
            left = left.saturating_sub(short.len());
            *text = short;
        }
    }
    missing.sort();
    (texts.concat(), missing.into_iter().map(|(_, sentence)| sentence).collect())
}

fn shorten(body: &Body, room: usize) -> Option<String> {
    let room = room.checked_sub(body.head.len() + body.foot.len())?;
    if room < CUT_BYTES_MIN {
        return None;
    }
    let text = cut_text(&body.text, room);
    let whole_lines = text.rfind('\n').map_or("", |end| text.get(..=end).unwrap_or_default());
    (!whole_lines.is_empty()).then(|| [body.head.as_str(), whole_lines, &body.foot].concat())
}

fn intent(intent: &Intent, most: usize) -> String {
    let fields = [
        ("title", &intent.title),
        ("task", &intent.task),
        ("plan", &intent.plan),
        ("review", &intent.review),
        ("tests", &intent.tests),
        ("message", &intent.body),
    ];
    let mut out = String::new();
    for (name, text) in fields.iter().filter(|(_, text)| !text.trim().is_empty()) {
        let short = cut_text(text.trim(), most);
        let dots = if short.len() < text.trim().len() { " [cut]" } else { "" };
        out.push_str(&format!("{name}: {short}{dots}\n"));
    }
    out
}

fn cause(cause: &Cause) -> String {
    match cause {
        Cause::Collision { at } => at.iter().map(|at| format!("{}: {}\n", shown(&at.path), at.why)).collect(),
        Cause::Interaction { with, failing, log } => {
            let with: Vec<_> = with.iter().map(ToString::to_string).collect();
            let tests = failing.join("\n");
            let from = log.len().saturating_sub(LOG_BYTES_MAX);
            let log = log.get(log.ceil_char_boundary(from)..).unwrap_or_default();
            format!(
                "It merges without a collision, and these tests fail with it on newest main, together with {}:\n\
                 {}\n\nThe end of the log:\n{log}\n",
                with.join(", "),
                cut_text(&tests, TESTS_BYTES_MAX)
            )
        }
    }
}

fn reviewed_name(file: &BriefFile) -> String {
    let renamed = if file.reviewed == file.path {
        String::new()
    } else {
        format!(", which main has renamed to {}", shown(&file.path))
    };
    format!("reviewed difference of {}{renamed}", shown(&file.reviewed))
}

fn reviewed(file: &BriefFile) -> String {
    difference(file.base.as_deref(), file.theirs.as_deref())
}

fn difference(before: Option<&[u8]>, after: Option<&[u8]>) -> String {
    let is_text = |side: Option<&[u8]>| side.is_none_or(|bytes| readable(bytes).is_some());
    if !is_text(before) || !is_text(after) {
        return "(no text)\n".to_owned();
    }
    let lead = match (before, after) {
        (None, Some(_)) => "(a new file)\n",
        (Some(_), None) => "(the file is deleted)\n",
        _ => "",
    };
    format!("{lead}{}", unified(before.unwrap_or_default(), after.unwrap_or_default(), CONTEXT))
}

fn start_name(file: &BriefFile) -> String {
    let path = shown(&file.path);
    match (file.is_collided(), file.start().is_some()) {
        (true, true) => format!("file {path} on newest main, collided"),
        (true, false) => format!("file {path}, collided: newest main does not have it"),
        (false, true) => format!("file {path} on newest main with the reviewed change already merged in"),
        (false, false) => format!("file {path}: already deleted by the reviewed change"),
    }
}

/// A file in parts, each in a fence of its own.
fn parts(file: &BriefFile, writer: &Writer<'_>) -> String {
    let all = lines(file.start().unwrap_or_default());
    let mut out = format!("Of {}, parts only; it has {} lines:\n", shown(&file.path), all.len());
    for part in excerpt::parts(file) {
        let name = format!("{}, lines {} to {}", start_name(file), part.start + 1, part.end);
        let text = all.get(part).unwrap_or_default().join(&b'\n');
        let body = writer.fence(&name, &String::from_utf8_lossy(&text));
        out.extend([body.head, body.text, body.foot]);
    }
    out
}

/// What is asked, last: the paths.
fn asked(brief: &Brief) -> String {
    let mut files: Vec<_> = brief.files.iter().filter(|file| file.is_text()).collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let (collided, merged): (Vec<_>, Vec<_>) = files.into_iter().partition(|file| file.is_collided());
    let list = |files: &[&BriefFile]| -> String {
        files.iter().map(|file| format!("{}\n", shown(&file.path))).collect()
    };
    let mut out = String::new();
    if !collided.is_empty() {
        out.push_str(&format!("\nCollided paths, each needs at least one block:\n{}", list(&collided)));
    }
    if !merged.is_empty() {
        out.push_str(&format!("\nAllowed paths that are merged already:\n{}", list(&merged)));
    }
    out.push_str("\nNo other path may be edited. Answer with blocks alone.\n");
    out
}
