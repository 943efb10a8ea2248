//! Lanes as they must not be: requests that are wrong in one way each, and really tested otherwise.

use yard_common::landing::{Edit, How, LandRequest};
use yard_common::{AttemptNo, ChangeId, ObjectId, TokenClaims, TrainNo, Version};
use yard_git::Mode;
use yard_landing::{Ledger as _, sign};

use super::Sim;
use crate::world::{TOKEN, note_path, path};

const LIES: &[&str] = &[
    "stale head",
    "stale edits",
    "dropped edit",
    "theirs over ours",
    "old version",
    "other's base",
    "other's theirs",
    "unlisted path",
    "unlisted content",
    "wrong mode",
    "older parent",
    "two parents",
    "crossed",
    "reordered",
    "listed twice",
    "landed again",
    "file over directory",
    "empty commit on top",
    "red run",
    "run without tests",
    "forged run",
    "foreign run",
    "other tree's run",
    "old command",
    "missing note",
    "tampered note",
    "notes without history",
    "before its parent",
    "not free",
    "other lane's",
    "older epoch",
    "new key",
    "one tree for two",
];

type Listed = (ChangeId, Version, Vec<Edit>, ObjectId);

impl Sim {
    /// Tells one lie in the name of a lane; whether it is taken is for the laws to judge.
    pub(super) fn lie(&mut self, l: usize) -> Result<(), String> {
        let kind = *self.rng.pick(LIES).unwrap();
        let Some(mut request) = self.lying(l, kind) else { return Ok(()) };
        request.key.train = TrainNo(1_000_000 + self.world.count());
        request.key.attempt = AttemptNo(1);
        let taken = self.land(&request)?.is_ok();
        let told = self.stats.lies.entry(kind).or_default();
        *told = (told.0 + 1, told.1 + usize::from(taken));
        self.laws().map_err(|law| format!("{law} (after the lie {kind:?})"))
    }

    /// A change of the lane, merged on main as it should be.
    fn honest(&mut self, l: usize) -> Option<Listed> {
        let owned = self.lanes[l].owned();
        let in_train: Vec<_> = self.lanes[l]
            .train
            .iter()
            .flat_map(|train| train.request.changes.clone())
            .map(|listed| (listed.change, listed.version))
            .collect();
        let from = if self.rng.chance(60) && !in_train.is_empty() { in_train } else { owned };
        let (change, version) = self.rng.pick(&from)?.clone();
        self.merged(&change, version)
    }

    fn merged(&mut self, change: &ChangeId, version: Version) -> Option<Listed> {
        let onto = self.world.store.links(self.world.main()).0;
        let edits = self.world.merge(change, version, onto)?;
        let tree = self.world.tree_after(onto, &edits)?;
        (tree != onto).then(|| (change.clone(), version, edits, tree))
    }

    /// A request with these changes on main, with a run of its tip that really took place.
    fn ask(&mut self, l: usize, listed: Vec<Listed>) -> LandRequest {
        let name = self.lanes[l].name.clone();
        let mut request = self.world.request(&name, self.world.main(), listed);
        self.really_test(&mut request);
        request
    }

    fn really_test(&mut self, request: &mut LandRequest) {
        let tree = self.world.store.links(request.tip).0;
        request.runs = self.runs(tree);
    }

    fn lying(&mut self, l: usize, kind: &str) -> Option<LandRequest> {
        match kind {
            "stale head" | "new key" | "older epoch" => self.stale(l, kind),
            "dropped edit"
            | "theirs over ours"
            | "other's base"
            | "other's theirs"
            | "unlisted path"
            | "wrong mode"
            | "file over directory"
            | "stale edits" => self.lying_edits(l, kind),
            "unlisted content" | "older parent" | "two parents" | "empty commit on top" => {
                self.lying_commit(l, kind)
            }
            "missing note" | "tampered note" | "notes without history" => self.lying_notes(l, kind),
            "red run" | "run without tests" | "forged run" | "foreign run" | "other tree's run"
            | "old command" => self.lying_run(l, kind),
            "crossed" | "reordered" | "listed twice" | "one tree for two" => self.lying_order(l, kind),
            _ => self.not_due(l, kind),
        }
    }

    /// The lane's own request of before, under the head, the key or the epoch of now.
    fn stale(&mut self, l: usize, kind: &str) -> Option<LandRequest> {
        let mut request = self.lanes[l].train.as_ref().filter(|train| train.landing)?.request.clone();
        request.owner_epoch = self.world.owner_epoch(&request.key.lane);
        if kind == "stale head" {
            request.head = self.world.main();
            request.tested_head = request.head;
            request.epoch = self.world.epoch();
            self.world.note(&mut request);
        }
        if kind == "older epoch" {
            request.epoch.0 += 1;
        }
        Some(request)
    }

    fn lying_edits(&mut self, l: usize, kind: &str) -> Option<LandRequest> {
        let merged = |listed: &Listed| listed.2.iter().any(|edit| edit.ours != edit.base);
        let tries: Vec<Listed> = (0..6).filter_map(|_| self.honest(l)).collect();
        let (change, version, mut edits, tree) =
            tries.iter().find(|one| merged(one)).or(tries.first())?.clone();
        let onto = self.world.store.links(self.world.main()).0;
        let moved = edits.iter().position(|edit| edit.ours != edit.base);
        let at = moved.unwrap_or_else(|| self.rng.below(edits.len()));
        let text = Some((Mode::File, format!("lie {}\n", self.world.count())));
        let other = self.world.store.entry(&text);
        let edit = &mut edits[at];
        match kind {
            "dropped edit" => drop(edits.remove(at)),
            "theirs over ours" => (edit.result, edit.how) = (edit.theirs, How::Theirs),
            "other's base" => (edit.base, edit.result, edit.how) = (edit.ours, edit.theirs, How::Theirs),
            "other's theirs" => {
                (edit.theirs, edit.result) = (other, other);
                edit.how = if edit.ours == edit.base { How::Theirs } else { How::Merge };
            }
            "unlisted path" => {
                let (base, theirs, result, how) = (None, other, other, How::Theirs);
                edits.push(Edit { path: path("lie"), from: None, base, ours: None, theirs, result, how });
            }
            "wrong mode" => {
                let (Some(ours), Some(result)) = (edit.ours.as_mut(), edit.result.as_mut()) else {
                    return None;
                };
                let flip = |mode| if mode == Mode::File { Mode::Executable } else { Mode::File };
                (ours.mode, result.mode) = (flip(ours.mode), flip(ours.mode));
                edit.how = How::Merge;
            }
            "file over directory" => return self.over_directory(l, (change, version, edits, tree)),
            _ => return self.stale_edits(l),
        }
        let tree = self.world.tree_after(onto, &edits)?;
        Some(self.ask(l, vec![(change, version, edits, tree)]))
    }

    /// The edits of a train of before, put on main as it is.
    fn stale_edits(&mut self, l: usize) -> Option<LandRequest> {
        let mut tree = self.world.store.links(self.world.main()).0;
        let train = self.lanes[l].train.clone()?;
        let mut listed = Vec::new();
        for old in train.request.changes {
            tree = self.world.tree_after(tree, &old.edits)?;
            listed.push((old.change, old.version, old.edits, tree));
        }
        Some(self.ask(l, listed))
    }

    fn over_directory(&mut self, l: usize, (change, version, edits, _): Listed) -> Option<LandRequest> {
        let mut files = self.world.main_files();
        for edit in edits.iter().filter(|edit| edit.ours.is_none()) {
            files.retain(|at, _| !at.is_below(&edit.path) && !edit.path.is_below(at));
        }
        if files == self.world.main_files() {
            return None;
        }
        let cleared = self.world.store.tree(&files);
        let tree = self.world.tree_after(cleared, &edits)?;
        Some(self.ask(l, vec![(change, version, edits, tree)]))
    }

    fn lying_commit(&mut self, l: usize, kind: &str) -> Option<LandRequest> {
        let (change, version, edits, tree) = self.honest(l)?;
        let main = self.world.main();
        let tree = match kind {
            "unlisted content" => {
                let mut files = self.world.store.files(tree);
                files.insert(path("lie"), (Mode::File, "lie".into()));
                self.world.store.tree(&files)
            }
            _ => tree,
        };
        let mut request = self.ask(l, vec![(change, version, edits, tree)]);
        let other = self.world.store.links(main).1.first().copied();
        let tip = match kind {
            "older parent" => self.world.store.commit(&[other?], tree, "beside\n"),
            "two parents" => self.world.store.commit(&[main, other?], tree, "both\n"),
            "empty commit on top" => self.world.store.commit(&[request.tip], tree, "nothing\n"),
            _ => return Some(request),
        };
        request.tip = tip;
        if kind != "empty commit on top" {
            request.changes[0].commit = tip;
        }
        self.world.note(&mut request);
        Some(request)
    }

    fn lying_notes(&mut self, l: usize, kind: &str) -> Option<LandRequest> {
        let listed = self.honest(l)?;
        let mut request = self.ask(l, vec![listed]);
        let tree = self.world.store.links(request.notes_tip).0;
        let landed = self.world.model.landings.last().map(|landing| landing.2);
        let entry = self.world.store.entry(&Some((Mode::File, "another intent".into())));
        let (tree, parents) = match kind {
            "missing note" => {
                let less = self.world.store.apply(tree, &[(note_path(request.tip), None)]);
                (less, request.notes_head)
            }
            "tampered note" => {
                (self.world.store.apply(tree, &[(note_path(landed?), entry)]), request.notes_head)
            }
            _ => (tree, request.notes_head.and(None)),
        };
        request.notes_tip = self.world.store.commit(parents.as_slice(), tree, "notes\n");
        Some(request)
    }

    fn lying_run(&mut self, l: usize, kind: &str) -> Option<LandRequest> {
        let listed = self.honest(l)?;
        let green = self.world.model.green.clone();
        let mut request = self.ask(l, vec![listed]);
        // These runs did not take place as they say.
        self.world.model.green = green;
        let mut run = request.runs.first()?.clone();
        match kind {
            "red run" => {
                run.result.green = false;
                run.result.failed.push("t".into());
            }
            "run without tests" => run.result.ran = 0,
            "other tree's run" => {
                let main = self.world.store.links(self.world.main()).0;
                run.tree = main;
            }
            "old command" => run.command = "true".into(),
            "foreign run" => run.token = TokenClaims::new("sy1.other").ok()?,
            _ => {}
        }
        run.mac = match kind {
            "forged run" => "0".repeat(64),
            "foreign run" => sign::sign("sy1.other.secret", &run),
            _ => sign::sign(TOKEN, &run),
        };
        request.runs[0] = run;
        Some(request)
    }

    fn lying_order(&mut self, l: usize, kind: &str) -> Option<LandRequest> {
        let first = self.honest(l)?;
        if kind == "listed twice" {
            return Some(self.ask(l, vec![first.clone(), first]));
        }
        let second = self.honest(l).filter(|second| second.0 != first.0)?;
        let onto = first.3;
        let both = self.world.tree_after(onto, &second.2)?;
        match kind {
            "crossed" => Some(self.ask(l, vec![(first.0, first.1, second.2, second.3)])),
            "one tree for two" => {
                let (a, b) = ((first.0, first.1, first.2, both), (second.0, second.1, second.2, both));
                Some(self.ask(l, vec![a, b]))
            }
            _ => {
                let mut request = self.ask(l, vec![first, (second.0, second.1, second.2, both)]);
                request.changes.reverse();
                Some(request)
            }
        }
    }

    /// Changes whose time has not come, or has gone.
    fn not_due(&mut self, l: usize, kind: &str) -> Option<LandRequest> {
        let changes: Vec<ChangeId> = self.world.ledger.changes().cloned().collect();
        let name = self.lanes[l].name.clone();
        let fits = |change: &&ChangeId| {
            let state = self.world.ledger.state(change);
            let row = self.world.ledger.newest(change).unwrap();
            let landed = |parent: &ChangeId| self.world.ledger.state(parent).landed.is_some();
            match kind {
                "old version" => row.version > Version(1) && state.is_open(),
                "landed again" => state.landed.is_some(),
                "before its parent" => row.waits_for.iter().any(|parent| !landed(parent)),
                "other lane's" => state.is_open() && state.owner.is_some_and(|owner| owner.0 != name),
                _ => state.closed.is_some() || state.hold.is_some() || state.rewritten.is_some(),
            }
        };
        let fitting: Vec<ChangeId> = changes.iter().filter(fits).cloned().collect();
        let change = self.rng.pick(&fitting)?.clone();
        let newest = self.world.ledger.newest(&change).unwrap().version;
        let version = if kind == "old version" { Version(newest.0 - 1) } else { newest };
        let onto = self.world.store.links(self.world.main()).0;
        let edits = self.world.merge(&change, version, onto)?;
        let tree = self.world.tree_after(onto, &edits)?;
        let mut request = self.ask(l, vec![(change.clone(), version, edits, tree)]);
        let owner = self.world.ledger.state(&change).owner.map(|owner| owner.0);
        if kind != "other lane's" {
            // Asked in the name of the lane that owns it.
            request.key.lane = owner?;
            request.owner_epoch = self.world.owner_epoch(&request.key.lane);
        }
        Some(request)
    }
}
