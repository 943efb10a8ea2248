//! The change base -> theirs, spliced into main's text.

use super::plan::{self, Pick, Plan};
use super::{Group, Member, Node, at, pick};

/// Merges three nodes; the answer is the text of ours' node.
///
/// # Errors
/// A sentence that names the key path which both sides changed.
pub(super) fn merge(texts: [&str; 3], nodes: [&Node; 3]) -> Result<String, String> {
    Merge { texts, path: Vec::new() }.node(nodes)
}

/// Three texts (base, ours, theirs) and the keys down to where the merge stands.
struct Merge<'a> {
    texts: [&'a str; 3],
    path: Vec<String>,
}

/// A member of the result: its text without its comma.
struct Piece {
    lead: String,
    core: String,
    /// After the core and before the comma, then after it.
    rest: [String; 2],
    /// It was the first of its group, and of one that has its first member on the bracket's line.
    first: bool,
    theirs: bool,
}

/// White space and comments without indentation.
fn bare(text: &str) -> String {
    text.split('\n').map(str::trim).collect::<Vec<_>>().join("\n")
}

/// The two parts of `after`, around its comma.
fn rest<'a>(text: &'a str, member: &Member) -> [&'a str; 2] {
    match member.comma {
        Some(comma) => [at(text, &(member.after.start..comma)), at(text, &(comma + 1..member.after.end))],
        None => ["", at(text, &member.after)],
    }
}

fn comment(text: &str, member: &Member) -> String {
    bare(rest(text, member).concat().trim())
}

fn left_alone(texts: [&str; 2], members: [&Member; 2]) -> bool {
    let ([a, b], [x, y]) = (texts, members);
    at(a, &x.core) == at(b, &y.core)
        && bare(at(a, &x.lead)) == bare(at(b, &y.lead))
        && comment(a, x) == comment(b, y)
}

/// Does the first member stand on the line that opens its group?
fn inline(text: &str, group: &Group) -> bool {
    group.members.first().is_some_and(|first| {
        if group.commas {
            return !at(text, &first.lead).contains('\n');
        }
        text.get(..first.lead.start).is_some_and(|before| !before.is_empty() && !before.ends_with('\n'))
    })
}

/// The indentation of a group's members.
fn indent<'a>(text: &'a str, group: &Group) -> Option<&'a str> {
    let skip = usize::from(inline(text, group));
    let lead = at(text, &group.members.get(skip)?.lead);
    let last = lead.rsplit('\n').next().unwrap_or_default();
    last.trim().is_empty().then_some(last)
}

/// Text of theirs with main's indentation.
fn indented(text: &str, from: &str, to: &str, at_line_start: bool) -> String {
    let mut lines = Vec::new();
    for (number, line) in text.split('\n').enumerate() {
        let moved = line.strip_prefix(from).filter(|_| number > 0 || at_line_start);
        lines.push(moved.map_or_else(|| line.to_owned(), |rest| format!("{to}{rest}")));
    }
    lines.join("\n")
}

impl<'a> Merge<'a> {
    fn here(&self) -> String {
        if self.path.is_empty() { "the file".to_owned() } else { format!("`{}`", self.path.join(".")) }
    }

    fn node(&mut self, nodes: [&Node; 3]) -> Result<String, String> {
        let [base, ours, theirs] = self.texts;
        let [b, o, t] = nodes;
        if let Some(text) = pick(at(base, &b.span), at(ours, &o.span), at(theirs, &t.span)) {
            return Ok(text.to_owned());
        }
        let (Some(bg), Some(og), Some(tg)) = (&b.group, &o.group, &t.group) else {
            return Err(format!("both sides change {} differently", self.here()));
        };
        if [og, tg].iter().any(|group| group.list != bg.list || group.commas != bg.commas) {
            return Err(format!("both sides change {} differently", self.here()));
        }
        let mut replay = Merge { texts: [base, base, theirs], path: self.path.clone() };
        if !bg.members.is_empty() && replay.group([b, b, t], [bg, bg, tg])? != at(theirs, &t.span) {
            return Err(format!(
                "the change also moves or reformats what stands around its edit in {}",
                self.here()
            ));
        }
        self.group(nodes, [bg, og, tg])
    }

    fn group(&mut self, nodes: [&Node; 3], groups: [&Group; 3]) -> Result<String, String> {
        let [base, ours, theirs] = self.texts;
        let [bg, og, tg] = groups;
        let ids = plan::ids(groups, self.texts).map_err(|fault| format!("in {}: {fault}", self.here()))?;
        let [_, our_ids, _] = &ids;
        let same = |place: usize, side: usize, main: bool| {
            let (text, group) = if main { (ours, og) } else { (theirs, tg) };
            match (bg.members.get(place), group.members.get(side)) {
                (Some(x), Some(y)) => left_alone([base, text], [x, y]),
                _ => false,
            }
        };
        let name = self.path.last().cloned().unwrap_or_default();
        let plan = Plan::new(&ids, bg, &name).map_err(|fault| format!("in {}: {fault}", self.here()))?;
        let picks = plan.picks(&same).map_err(|fault| format!("in {}: {fault}", self.here()))?;
        let mut pieces = Vec::with_capacity(picks.len());
        for pick in picks {
            let piece = match pick {
                Pick::Theirs(place) => tg.members.get(place).map(|member| self.added(place, member, og, tg)),
                Pick::Ours(place, b, t) => {
                    let key = our_ids.get(place).map(|id| plan::line(&id.key)).unwrap_or_default();
                    self.path.push(key);
                    let piece = self.kept(place, b, t, groups)?;
                    self.path.pop();
                    piece
                }
            };
            pieces.extend(piece);
        }
        self.written(nodes, groups, pieces)
    }

    /// A member that main has: as it is, or with what theirs changed in it.
    fn kept(
        &mut self,
        place: usize,
        b: Option<usize>,
        t: Option<usize>,
        groups: [&Group; 3],
    ) -> Result<Option<Piece>, String> {
        let [_, ours, theirs] = self.texts;
        let [bg, og, tg] = groups;
        let Some(member) = og.members.get(place) else { return Ok(None) };
        let mut piece = Self::piece(ours, member, place, og, false);
        match (b.and_then(|b| bg.members.get(b)), t.and_then(|t| tg.members.get(t))) {
            (Some(old), Some(new)) => self.changed(&mut piece, [old, member, new], [og, tg])?,
            (None, Some(new)) if !left_alone([ours, theirs], [member, new]) => {
                return Err(format!("both sides add {} differently", self.here()));
            }
            _ => {}
        }
        Ok(Some(piece))
    }

    /// What theirs changed in a member that all three sides have.
    fn changed(
        &mut self,
        piece: &mut Piece,
        members: [&Member; 3],
        groups: [&Group; 2],
    ) -> Result<(), String> {
        let [base, ours, theirs] = self.texts;
        let [old, member, new] = members;
        let [og, tg] = groups;
        let fault = |what: &str| Err(format!("both sides change the {what} of {} differently", self.here()));
        let [was, is, wants] =
            [(base, old), (ours, member), (theirs, new)].map(|(text, m)| bare(at(text, &m.lead)));
        match pick(&was, &is, &wants) {
            None => return fault("comment"),
            Some(lead) if *lead != is => piece.lead = self.moved(at(theirs, &new.lead), og, tg),
            Some(_) => {}
        }
        if at(base, &old.core) == at(theirs, &new.core) && rest(base, old) == rest(theirs, new) {
            return Ok(());
        }
        let same_rest = rest(base, old) == rest(ours, member);
        if same_rest && at(base, &old.core) == at(ours, &member.core) {
            piece.core = self.reindented(at(theirs, &new.core), og, tg, false);
            piece.rest = rest(theirs, new).map(|text| self.reindented(text, og, tg, false));
            return Ok(());
        }
        if [old, new].iter().any(|other| other.value.group.is_some() != member.value.group.is_some()) {
            return fault("value");
        }
        let [was, is, wants] = [(base, old), (ours, member), (theirs, new)].map(|(text, m)| comment(text, m));
        match pick(&was, &is, &wants) {
            None => return fault("comment"),
            Some(text) if *text != is => {
                piece.rest = rest(theirs, new).map(|text| self.reindented(text, og, tg, false));
            }
            Some(_) => {}
        }
        let head = |text: &'a str, m: &Member| at(text, &(m.core.start..m.value.span.start));
        let Some(head) = pick(head(base, old), head(ours, member), head(theirs, new)) else {
            return fault("key");
        };
        let value = self.node([&old.value, &member.value, &new.value])?;
        let end = at(ours, &(member.value.span.end..member.core.end));
        piece.core = format!("{head}{value}{end}");
        Ok(())
    }

    fn piece(text: &str, member: &Member, place: usize, group: &Group, theirs: bool) -> Piece {
        Piece {
            lead: at(text, &member.lead).to_owned(),
            core: at(text, &member.core).to_owned(),
            rest: rest(text, member).map(str::to_owned),
            first: place == 0 && inline(text, group),
            theirs,
        }
    }

    /// A member of theirs with main's indentation.
    fn added(&self, place: usize, member: &Member, og: &Group, tg: &Group) -> Piece {
        let mut piece = Self::piece(self.texts[2], member, place, tg, true);
        let at_line_start = !tg.commas && !piece.first;
        piece.lead = self.reindented(&piece.lead, og, tg, at_line_start);
        piece.core = self.reindented(&piece.core, og, tg, false);
        piece.rest = piece.rest.map(|text| self.reindented(&text, og, tg, false));
        piece
    }

    fn moved(&self, text: &str, og: &Group, tg: &Group) -> String {
        self.reindented(text, og, tg, !tg.commas)
    }

    fn reindented(&self, text: &str, og: &Group, tg: &Group, at_line_start: bool) -> String {
        let [_, ours, theirs] = self.texts;
        match (indent(theirs, tg), indent(ours, og)) {
            (Some(from), Some(to)) if from != to && from.is_empty() == to.is_empty() => {
                indented(text, from, to, at_line_start)
            }
            _ => text.to_owned(),
        }
    }

    /// The white space before a member that comes first in its group, or does not.
    fn usual_lead(&self, first: bool, og: &Group, tg: &Group) -> Option<&'a str> {
        let [_, ours, theirs] = self.texts;
        let of = |text: &'a str, group: &Group| {
            let member = group.members.get(usize::from(!first))?;
            let lead = at(text, &member.lead);
            lead.trim().is_empty().then_some(lead)
        };
        of(ours, og).or_else(|| of(theirs, tg))
    }

    /// Gives a piece the white space of its new place.
    fn placed(&self, piece: &mut Piece, first: bool, og: &Group, tg: &Group) -> Result<(), String> {
        let [_, ours, theirs] = self.texts;
        let inlines = (inline(ours, og), inline(theirs, tg));
        let lines_differ = piece.theirs && !og.members.is_empty() && inlines.0 != inlines.1;
        let place_differs = (inlines.0 || piece.theirs && inlines.1) && piece.first != first;
        if !lines_differ && !place_differs {
            return Ok(());
        }
        if piece.lead.trim().is_empty() {
            piece.lead = match self.usual_lead(first, og, tg) {
                Some(lead) => lead.to_owned(),
                None if og.commas => if first { "" } else { " " }.to_owned(),
                None => return Err(format!("the indentation of {} is not known", self.here())),
            };
            return Ok(());
        }
        Err(format!("a comment stands where a member of {} moves", self.here()))
    }

    fn written(
        &self,
        nodes: [&Node; 3],
        groups: [&Group; 3],
        mut pieces: Vec<Piece>,
    ) -> Result<String, String> {
        let [base, ours, theirs] = self.texts;
        let [_, node, new] = nodes;
        let [bg, og, tg] = groups;
        if pieces.iter().all(|piece| piece.theirs) && pieces.len() == tg.members.len() {
            return Ok(at(theirs, &new.span).to_owned());
        }
        let tails = [bare(at(base, &bg.tail)), bare(at(ours, &og.tail)), bare(at(theirs, &tg.tail))];
        let [old_tail, tail, new_tail] = &tails;
        let picked = pick(old_tail, tail, new_tail)
            .ok_or_else(|| format!("both sides change the end of {} differently", self.here()))?;
        let tail = if picked == tail || og.members.is_empty() {
            at(ours, &og.tail).to_owned()
        } else {
            self.moved(at(theirs, &tg.tail), og, tg)
        };
        let ends = |group: &Group| group.members.last().is_some_and(|last| last.comma.is_some());
        let trailing = pick(ends(bg), ends(og), ends(tg)).unwrap_or_else(|| ends(og));
        let opened = og.members.first().map_or(og.tail.start, |first| first.lead.start);
        let mut out = at(ours, &(node.span.start..opened)).to_owned();
        let last = pieces.len().saturating_sub(1);
        for (place, piece) in pieces.iter_mut().enumerate() {
            self.placed(piece, place == 0, og, tg)?;
            let comma = og.commas && (place < last || trailing);
            out.push_str(&piece.lead);
            out.push_str(&piece.core);
            let [before, after] = &piece.rest;
            out.push_str(before);
            if comma {
                out.push(',');
            }
            out.push_str(after);
        }
        out.push_str(&tail);
        out.push_str(at(ours, &(og.tail.end..node.span.end)));
        Ok(out)
    }
}
