//! The naive model: main is a map, and a list of what landed. Everything else is looked up the long way.

use std::collections::{BTreeMap, BTreeSet};

use yard_common::fact::{Fact, Terminal, Untested};
use yard_common::landing::LandRequest;
use yard_common::submission::Submission;
use yard_common::{ChangeId, Fence, ForkName, Millis, ObjectId, RepoPath, Version};

use crate::merge::{Files, merge_files};
use crate::world::Store;

/// What a version's author meant: the files that were looked at, and what was made of them.
#[derive(Debug, Clone)]
pub struct Meant {
    pub from: Files,
    pub to: Files,
}

#[derive(Debug, Clone, Default)]
pub struct Model {
    pub main: Files,
    pub head: Option<ObjectId>,
    pub landings: Vec<(ChangeId, Version, ObjectId)>,
    pub meant: BTreeMap<(ChangeId, Version), Meant>,
    newest: BTreeMap<ChangeId, (Version, Option<ForkName>)>,
    waits: BTreeMap<(ChangeId, Version), Vec<ChangeId>>,
    held_fences: BTreeMap<(ChangeId, Version), BTreeMap<RepoPath, Fence>>,
    ended: BTreeMap<ChangeId, Terminal>,
    holds: BTreeSet<ChangeId>,
    off_main: BTreeSet<ChangeId>,
    approved: BTreeSet<(ChangeId, Version)>,
    frozen: bool,
    claims: BTreeMap<Fence, (Option<ForkName>, Vec<RepoPath>, Millis)>,
    /// Trees that a runner really found green, with command and configuration.
    pub green: BTreeSet<(ObjectId, String, Option<ObjectId>)>,
    /// What is asked of a run now.
    pub suite: (String, Option<ObjectId>),
}

impl Model {
    pub fn under(command: String, config: Option<ObjectId>) -> Self {
        Self { suite: (command, config), ..Self::default() }
    }

    /// Follows a fact that the kernel has made, and says which law it breaks, if one.
    pub fn take(&mut self, fact: &Fact, store: &Store, now: Millis) -> Result<(), String> {
        match fact {
            Fact::Submitted { row, .. } => self.submitted(row, store, now)?,
            Fact::Landed { request, untested, .. } => {
                let before = self.suite.clone();
                self.landed(request, store, now)?;
                let tip = store.links(request.tip).0;
                let green = |suite: &(String, Option<ObjectId>)| {
                    self.green.contains(&(tip, suite.0.clone(), suite.1))
                };
                if untested.is_none() && !(green(&before) && green(&self.suite)) {
                    return Err("main's tip was never found green".into());
                }
                if *untested == Some(Untested::Paths) && !self.is_green_but_elsewhere(request, store) {
                    return Err("main's tip differs from every green tree at its own paths".into());
                }
            }
            Fact::DirectPush { new, .. } => {
                let before: BTreeSet<ChangeId> = self.all_on_main(store);
                self.head = Some(*new);
                self.main = store.files(store.links(*new).0);
                let after = self.all_on_main(store);
                self.off_main.extend(before.difference(&after).cloned());
                for change in &after {
                    self.off_main.remove(change);
                    self.ended.remove(change);
                }
                self.set_suite(store);
            }
            Fact::Closed { change, stage, .. } => {
                if self.on_main(change, store) > 0 {
                    return Err(format!("landed {change} closed"));
                }
                if *stage == Terminal::AlreadyOnMain && !self.stands(change) {
                    return Err(format!("{change} closed as already on main, which it is not"));
                }
                self.ended.insert(change.clone(), *stage);
            }
            Fact::HoldSet { change, reason: Some(_), .. } => drop(self.holds.insert(change.clone())),
            Fact::HoldSet { change, reason: None, .. } => drop(self.holds.remove(change)),
            Fact::Requeued { change, .. } => drop(self.off_main.remove(change)),
            Fact::Approved { change, version, .. } => drop(self.approved.insert((change.clone(), *version))),
            Fact::FreezeSet { reason } => self.frozen = reason.is_some(),
            Fact::Claimed { fork, paths, fence, until, .. } => {
                let live = |claim: &(Option<ForkName>, Vec<RepoPath>, Millis)| {
                    claim.2 > now && claim.0 != *fork && claim.1.iter().any(|path| paths.contains(path))
                };
                if self.claims.values().any(live) {
                    return Err("two forks hold one path".into());
                }
                self.claims.insert(*fence, (fork.clone(), paths.clone(), *until));
            }
            Fact::ClaimReleased { fence } => drop(self.claims.remove(fence)),
            _ => {}
        }
        Ok(())
    }

    fn submitted(&mut self, row: &Submission, store: &Store, now: Millis) -> Result<(), String> {
        let id = (row.change.clone(), row.version);
        if self.on_main(&row.change, store) > 0 {
            return Err(format!("version {} taken of landed {}", row.version, row.change));
        }
        if self.ended.get(&row.change) == Some(&Terminal::Withdrawn) {
            return Err(format!("version {} taken of withdrawn {}", row.version, row.change));
        }
        let before = self.newest.get(&row.change).map_or(0, |newest| newest.0.0);
        if row.version.0 != before + 1 {
            return Err(format!("version {} of {} after {before}", row.version, row.change));
        }
        self.waits.insert(id.clone(), row.waits_for.clone());
        let fence = |path: &RepoPath| {
            let held = self.claims.iter().filter(|(_, (fork, paths, until))| {
                *fork == row.fork && *until > now && paths.contains(path)
            });
            held.map(|(fence, _)| *fence).max()
        };
        let fences = row.edits.iter().filter_map(|edit| Some((edit.path.clone(), fence(&edit.path)?)));
        self.held_fences.insert(id, fences.collect());
        self.newest.insert(row.change.clone(), (row.version, row.fork.clone()));
        self.off_main.remove(&row.change);
        Ok(())
    }

    fn landed(&mut self, request: &LandRequest, store: &Store, now: Millis) -> Result<(), String> {
        if self.frozen {
            return Err("landed in a freeze".into());
        }
        if self.head != Some(request.head) {
            return Err("landed on another head than main".into());
        }
        let mut parent = request.head;
        for listed in &request.changes {
            let (change, id) = (&listed.change, (listed.change.clone(), listed.version));
            let (version, fork) = self.newest.get(change).cloned().ok_or("landed what nobody submitted")?;
            if version != listed.version {
                return Err(format!("landed {} of {change}, {version} is the newest", listed.version));
            }
            if self.ended.contains_key(change)
                || self.holds.contains(change)
                || self.off_main.contains(change)
            {
                return Err(format!("landed {change}, which was withdrawn, held or rewritten"));
            }
            if self.on_main(change, store) > 0 {
                return Err(format!("landed {change} twice"));
            }
            self.head = Some(parent);
            for parent in self.waits.get(&id).into_iter().flatten() {
                let there = self.on_main(parent, store) > 0;
                if !there && self.ended.get(parent) != Some(&Terminal::AlreadyOnMain) {
                    return Err(format!("landed {change} before {parent}"));
                }
            }
            let meant = self.meant.get(&id).ok_or("landed what nobody meant")?;
            let main = merge_files(&meant.from, &self.main, &meant.to).ok_or(format!("{change} collides"))?;
            let moved: Vec<&RepoPath> = main
                .iter()
                .filter(|(path, text)| self.main.get(*path) != Some(*text))
                .map(|(path, _)| path)
                .chain(self.main.keys().filter(|path| !main.contains_key(*path)))
                .collect();
            for path in moved {
                let held =
                    self.held_fences.get(&id).and_then(|held| held.get(path)).copied().unwrap_or_default();
                let over = |(fence, claim): (&Fence, &(Option<ForkName>, Vec<RepoPath>, Millis))| {
                    claim.2 > now && claim.0 != fork && *fence > held && claim.1.contains(path)
                };
                if self.claims.iter().any(over) {
                    return Err(format!("{change} runs over a claim on {path}"));
                }
                if path.as_bytes() == b".switchyard.toml" && !self.approved.contains(&id) {
                    return Err(format!("{change} changes the configuration without an admin"));
                }
            }
            let (tree, parents) = store.links(listed.commit);
            if parents != [parent] || store.files(tree) != main {
                return Err(format!("commit of {change} is not its edits on top of {parent}"));
            }
            self.main = main;
            self.landings.push((change.clone(), version, listed.commit));
            parent = listed.commit;
        }
        self.head = Some(request.tip);
        self.set_suite(store);
        if parent == request.tip { Ok(()) } else { Err("the tip is another commit".into()) }
    }

    /// Is some green tree main's tip but for paths that the train does not touch?
    fn is_green_but_elsewhere(&self, request: &LandRequest, store: &Store) -> bool {
        let touched: BTreeSet<&RepoPath> =
            request.changes.iter().flat_map(|listed| &listed.edits).map(|edit| &edit.path).collect();
        let rule = |tree: &ObjectId| {
            let green = store.files(*tree);
            touched.iter().all(|path| green.get(*path) == self.main.get(*path))
        };
        let today = self
            .green
            .iter()
            .filter(|(_, command, config)| (command, config) == (&self.suite.0, &self.suite.1));
        self.suite.0.starts_with("paths") && today.map(|green| &green.0).any(rule)
    }

    fn set_suite(&mut self, store: &Store) {
        let config = self.main.iter().find(|(path, _)| path.as_bytes() == b".switchyard.toml");
        if let Some((_, (_, text))) = config {
            self.suite = (text.trim().to_owned(), Some(store.blob_id(text)));
        }
    }

    fn stands(&self, change: &ChangeId) -> bool {
        let Some(newest) = self.newest.get(change) else { return false };
        let Some(meant) = self.meant.get(&(change.clone(), newest.0)) else { return false };
        let paths: BTreeSet<&RepoPath> = meant.from.keys().chain(meant.to.keys()).collect();
        paths
            .into_iter()
            .filter(|path| meant.from.get(*path) != meant.to.get(*path))
            .all(|path| self.main.get(path) == meant.to.get(path))
    }

    /// How many commits of the change main has.
    pub fn on_main(&self, change: &ChangeId, store: &Store) -> usize {
        let history = self.head.map(|head| store.history(head)).unwrap_or_default();
        let mine =
            self.landings.iter().filter(|landing| landing.0 == *change && history.contains(&landing.2));
        mine.map(|landing| landing.2).collect::<BTreeSet<_>>().len()
    }

    fn all_on_main(&self, store: &Store) -> BTreeSet<ChangeId> {
        let history = self.head.map(|head| store.history(head)).unwrap_or_default();
        let there = self.landings.iter().filter(|landing| history.contains(&landing.2));
        there.map(|landing| landing.0.clone()).collect()
    }
}
