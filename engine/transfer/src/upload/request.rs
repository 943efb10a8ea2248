//! What a client asks for, whatever the version of its protocol.

use yard_common::{ObjectId, Refusal};

use crate::pktline::{FLUSH, Framing, write_line};
use crate::plan::Filter;
use crate::refs::{HIDDEN_PREFIX, RefTip, RefView};

/// How common commits are acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Acks {
    /// v0 without `multi_ack`: the first alone.
    #[default]
    Single,
    /// v0 with `multi_ack`.
    Multi,
    /// v0 with `multi_ack_detailed`.
    Detailed,
    /// The acknowledgments section of v2.
    V2,
}

/// How the round of a request ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RoundEnd {
    /// After the wants (v0 with a depth: the client wants to know the boundary first).
    #[default]
    Wants,
    /// After some haves: more may follow.
    Haves,
    /// With `done`: the pack is wanted now.
    Done,
}

/// How much history is asked for, in the client's words.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Deepening {
    /// `deepen N`
    pub depth: Option<u32>,
    /// `deepen-relative`
    pub relative: bool,
    /// `deepen-since SECONDS`
    pub since: Option<u64>,
    /// `deepen-not REF`
    pub not: Vec<String>,
}

impl Deepening {
    /// Is nothing asked for?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.depth.is_none() && self.since.is_none() && self.not.is_empty()
    }

    /// Takes an argument line that is about depth; false when it is not.
    pub(super) fn take(&mut self, line: &str) -> Result<bool, Refusal> {
        let bad = |what: &str| invalid(format!("invalid {what}: a positive number is expected"));
        match line.split_once(' ').unwrap_or((line, "")) {
            ("deepen", number) => {
                let depth = number.parse::<u32>().ok().filter(|depth| *depth > 0);
                self.depth = Some(depth.ok_or_else(|| bad("deepen"))?.min(crate::plan::DEPTH_INFINITE));
            }
            ("deepen-relative", "") => self.relative = true,
            ("deepen-since", number) => self.since = Some(number.parse().map_err(|_| bad("deepen-since"))?),
            ("deepen-not", name) if !name.is_empty() => self.not.push(name.to_owned()),
            _ => return Ok(false),
        }
        if self.depth.is_some() && (self.since.is_some() || !self.not.is_empty()) {
            return Err(invalid(
                "deepen and deepen-since (or deepen-not) cannot be used together".to_owned(),
            ));
        }
        Ok(true)
    }
}

/// One request for a pack, or one round of the negotiation for it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FetchRequest {
    /// Objects wanted, without doubles.
    pub wants: Vec<ObjectId>,
    /// Commits that the client says it has.
    pub haves: Vec<ObjectId>,
    /// How the round ends.
    pub end: RoundEnd,
    /// Commits whose parents the client does not have.
    pub shallow: Vec<ObjectId>,
    /// How much history.
    pub deepening: Deepening,
    /// What to leave out.
    pub filter: Filter,
    /// How common commits are acknowledged.
    pub acks: Acks,
    /// v0: the pack may follow `ready` at once.
    pub no_done: bool,
    /// v2: no pack before `done`.
    pub wait_for_done: bool,
    /// The client can complete a pack whose bases it has.
    pub thin_pack: bool,
    /// The client wants no progress.
    pub no_progress: bool,
    /// Annotated tags of what is sent are wanted too.
    pub include_tag: bool,
    /// The client reads deltas by offset.
    pub ofs_delta: bool,
    /// How the pack is framed.
    pub framing: Framing,
}

impl FetchRequest {
    pub(super) fn tidy(mut self) -> Self {
        for list in [&mut self.wants, &mut self.haves, &mut self.shallow] {
            let mut seen = std::collections::BTreeSet::new();
            list.retain(|id| seen.insert(*id));
        }
        self
    }
}

pub(super) fn invalid(why: String) -> Refusal {
    Refusal::Invalid { why }
}

/// Reads a filter specification: `blob:none`, `blob:limit=N[kmg]`, `tree:DEPTH`, or `combine:` of these.
///
/// # Errors
/// [`Refusal::Invalid`] for another kind of filter.
pub fn parse_filter(spec: &str) -> Result<Filter, Refusal> {
    let mut filter = Filter::default();
    let parts = spec.strip_prefix("combine:").map_or_else(|| vec![spec], |parts| parts.split('+').collect());
    for part in parts {
        let part = part.replace("%3a", ":").replace("%3A", ":").replace("%3d", "=").replace("%3D", "=");
        let fewer = |old: Option<u64>, new: u64| Some(old.map_or(new, |old| old.min(new)));
        if part == "blob:none" {
            filter.blob_limit = Some(0);
        } else if let Some(limit) = part.strip_prefix("blob:limit=").and_then(scaled) {
            filter.blob_limit = fewer(filter.blob_limit, limit);
        } else if let Some(depth) = part.strip_prefix("tree:").and_then(|depth| depth.parse().ok()) {
            filter.tree_depth = Some(filter.tree_depth.map_or(depth, |old| old.min(depth)));
        } else {
            return Err(invalid(format!(
                "filter '{spec}' is not supported: use blob:none, blob:limit=N, tree:N or a combine: of them"
            )));
        }
    }
    Ok(filter)
}

fn scaled(text: &str) -> Option<u64> {
    let (digits, scale) = match text.strip_suffix(|last: char| last.is_ascii_alphabetic()) {
        None => (text, 1),
        Some(digits) => match text.chars().last()?.to_ascii_lowercase() {
            'k' => (digits, 1 << 10),
            'm' => (digits, 1 << 20),
            'g' => (digits, 1 << 30),
            _ => return None,
        },
    };
    digits.parse::<u64>().ok()?.checked_mul(scale)
}

/// The v2 command `ls-refs`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LsRefs {
    /// Tell what annotated tags stand for.
    pub peel: bool,
    /// Tell the branch that HEAD names.
    pub symrefs: bool,
    /// Tell it also while that branch is unborn.
    pub unborn: bool,
    /// Only refs that start with one of these; none: all.
    pub prefixes: Vec<String>,
}

impl LsRefs {
    /// The answer; hidden refs are listed only for a prefix that names their folder.
    #[must_use]
    pub fn answer(&self, refs: &RefView) -> Vec<u8> {
        let mut out = Vec::new();
        if self.lists("HEAD") {
            self.write_head(&mut out, refs);
        }
        for tip in refs.tips().iter().filter(|tip| self.lists(tip.name.as_str()) && self.may_see(tip)) {
            let mut line = format!("{} {}", tip.id, tip.name);
            if let Some(peeled) = tip.peeled.filter(|_| self.peel) {
                line.push_str(&format!(" peeled:{peeled}"));
            }
            write_line(&mut out, &line);
        }
        out.extend_from_slice(FLUSH);
        out
    }

    fn lists(&self, name: &str) -> bool {
        self.prefixes.is_empty() || self.prefixes.iter().any(|prefix| name.starts_with(prefix.as_str()))
    }

    fn may_see(&self, tip: &RefTip) -> bool {
        let names = |prefix: &String| {
            prefix.starts_with(HIDDEN_PREFIX) && tip.name.as_str().starts_with(prefix.as_str())
        };
        !tip.is_hidden() || self.prefixes.iter().any(names)
    }

    fn write_head(&self, out: &mut Vec<u8>, refs: &RefView) {
        let target = if self.symrefs { format!(" symref-target:{}", refs.head()) } else { String::new() };
        match refs.head_tip() {
            Some(tip) => write_line(out, &format!("{} HEAD{target}", tip.id)),
            None if self.unborn && self.symrefs => write_line(out, &format!("unborn HEAD{target}")),
            None => {}
        }
    }
}
