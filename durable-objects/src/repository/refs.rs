//! Making the object, its refs, and pushes.

use std::collections::BTreeSet;

use yard_common::config::Config;
use yard_common::policy::{CONFIG_PATH, Policy};
use yard_common::submission::CommitNode;
use yard_common::{Fact, Millis, ObjectId, RefName, Refusal, RepoPath};
use yard_git::{Objects as _, ReadError, tree};
use yard_landing::act::Actor;
use yard_landing::push::{DirectPush, direct_push};
use yard_landing::{Decision, Ledger as _};
use yard_wire::repository as wire;

use super::ledger::SqlLedger;
use super::{OWN, Platform, Repository};
use crate::pack_set::Needed;
use crate::sql::{Sql, each_json};

/// The notes ref that only the server writes in a repository.
pub(super) const NOTES: &str = "refs/notes/intent";

fn rejected(name: &RefName, why: &str) -> Refusal {
    Refusal::RefRejected { name: name.to_string(), why: why.to_owned() }
}

impl<P: Platform> Repository<P> {
    /// Makes the object; the same again changes nothing.
    pub(super) fn create(&self, asked: wire::Create) -> Result<(), Refusal> {
        let mut scalars = self.scalars()?;
        if let Some(repo) = &scalars.repo {
            if *repo == asked.repo && scalars.fork == asked.fork && scalars.made_by == asked.key {
                return Ok(());
            }
            return Err(match &scalars.fork {
                Some(fork) => Refusal::Exists { kind: "fork".into(), name: fork.to_string() },
                None => Refusal::Exists { kind: "repository".into(), name: repo.to_string() },
            });
        }
        crate::point("repository.create.before");
        each_json(
            &self.sql,
            "INSERT OR REPLACE INTO refs (name, target)
             SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?1)",
            &asked.refs,
            &[],
        )?;
        scalars.repo = Some(asked.repo);
        scalars.fork = asked.fork;
        scalars.made_by = asked.key;
        scalars.default_branch = Some(asked.default_branch);
        let saved = scalars.write(&self.sql);
        *self.scalars.borrow_mut() = saved.is_ok().then_some(scalars);
        crate::point("repository.create.after");
        Ok(saved?)
    }

    /// All refs that a client may see.
    pub(super) fn refs(&self, asked: &wire::Refs) -> Result<wire::RefsReply, Refusal> {
        self.not_revoked(asked.token.as_ref())?;
        let ledger = self.ledger()?;
        let scalars = &ledger.scalars;
        let head =
            scalars.default_branch.clone().ok_or(Refusal::Internal { during: "reading HEAD".into() })?;
        let filter = if asked.without_changes { "WHERE name NOT GLOB 'refs/changes/*'" } else { "" };
        let rows =
            self.sql.run(&format!("SELECT name, target, peeled FROM refs {filter} ORDER BY name"), &[])?;
        let mut refs = rows
            .iter()
            .map(|row| {
                let name = row.parse(0, "ref name")?;
                Ok(wire::RefEntry { name, id: row.id(1)?, peeled: row.maybe_id(2)? })
            })
            .collect::<Result<Vec<_>, Refusal>>()?;
        if !asked.without_changes {
            refs.extend(self.head_refs()?);
        }
        if let Some(id) = scalars.main {
            refs.push(wire::RefEntry { name: head.clone(), id, peeled: None });
        }
        if let Some(id) = scalars.notes {
            refs.push(wire::RefEntry { name: RefName::new(NOTES)?, id, peeled: None });
        }
        refs.sort_by(|a, b| a.name.cmp(&b.name));
        refs.dedup_by(|a, b| a.name == b.name);
        Ok(wire::RefsReply { head, refs, state: scalars.folded })
    }

    /// What names stand for, hidden ones too.
    pub(super) fn resolve(&self, asked: &wire::Resolve) -> Result<Vec<Option<ObjectId>>, Refusal> {
        let ledger = self.ledger()?;
        let found = asked.names.iter().map(|name| self.resolve_one(&ledger, name)).collect();
        ledger.check()?;
        found
    }

    fn resolve_one(
        &self,
        ledger: &SqlLedger<'_, P::Sql>,
        name: &RefName,
    ) -> Result<Option<ObjectId>, Refusal> {
        let name = match (name.as_str(), &ledger.scalars.default_branch) {
            ("HEAD", Some(branch)) => branch,
            _ => name,
        };
        if let Some(attempt) = name.as_str().strip_prefix("refs/candidates/") {
            let rows = self.sql.run("SELECT tip FROM candidates WHERE attempt = ?1", &[attempt.into()])?;
            return Ok(rows.first().map(|row| row.id(0)).transpose()?);
        }
        match current(ledger, name) {
            None if name.as_str().starts_with("refs/changes/") => self.head_named(name),
            found => Ok(found),
        }
    }

    /// Announces a pack.
    pub(super) fn stage(&self, asked: &wire::Stage, now: Millis) -> Result<(), Refusal> {
        self.remote()?;
        self.not_dead(&[&asked.key])?;
        crate::point("repository.stage.before");
        self.sql.run(
            "INSERT INTO packs (key, bytes, objects, state, at) VALUES (?1, 0, 0, 'staged', ?2)
             ON CONFLICT (key) DO UPDATE SET at = excluded.at WHERE packs.state = 'staged'",
            &[asked.key.as_str().into(), now.0.into()],
        )?;
        crate::point("repository.stage.after");
        Ok(())
    }

    /// Takes a push: pack, commits and refs, in one decision.
    pub(super) async fn push(&self, push: wire::Push, now: Millis) -> Result<wire::PushReply, Refusal> {
        self.not_revoked(push.token.as_ref())?;
        if let Some(answer) = self.ledger()?.other_answer("push", push.key.as_str()) {
            return Ok(answer);
        }
        let main = self.main_name()?;
        let to_main = push.commands.iter().filter(|command| Some(&command.name) == main.as_ref());
        let new = to_main.filter_map(|command| command.new).next_back();
        let policy = match new {
            Some(new) => Some(self.policy_at(&push, new).await?),
            None => None,
        };
        self.decide_push(&push, policy, now)
    }

    /// Main's ref, in a repository; a fork's branches are all its own.
    fn main_name(&self) -> Result<Option<RefName>, Refusal> {
        let scalars = self.scalars()?;
        Ok(scalars.default_branch.filter(|_| scalars.fork.is_none()))
    }

    /// The policy of the configuration at a pushed commit, or why it cannot be read.
    async fn policy_at(&self, push: &wire::Push, new: ObjectId) -> Result<Result<Policy, Refusal>, Refusal> {
        self.sync_packs()?;
        let source = format!("push {}", push.key);
        if let Some(pack) = &push.pack {
            self.packs.add(&source, pack.clone())?;
        }
        let pushed = push.commits.iter().find(|commit| commit.id == new).map(|commit| commit.tree);
        let Some(root) = pushed.or_else(|| Some(self.ledger().ok()?.commit(&new)?.tree)) else {
            return Ok(Err(Refusal::Invalid { why: format!("commit {new} was not pushed") }));
        };
        let path = RepoPath::new(CONFIG_PATH)?;
        let mut needed = Needed::default();
        let read = self.packs.until(&self.blobs, &mut needed, |objects| {
            let entry = match tree::lookup(objects, root, &path) {
                Ok(entry) => entry,
                Err(ReadError::Missing(missing)) => return Err(missing.0),
                Err(malformed) => return Ok(Err(Refusal::Invalid { why: malformed.to_string() })),
            };
            let Some(entry) = entry else { return Ok(Ok(Policy::default())) };
            let blob = objects.get(&entry.id).ok_or_else(|| BTreeSet::from([entry.id]))?;
            Ok(Config::parse(&blob.data).map(|config| config.policy(Some(entry.id))))
        });
        let read = read.await;
        self.packs.forget(&source);
        match read? {
            Ok(policy) => Ok(policy),
            Err(missing) => {
                let first = missing.first().copied().unwrap_or(new);
                Ok(Err(Refusal::Invalid { why: format!("object {first} was not pushed") }))
            }
        }
    }

    fn decide_push(
        &self,
        push: &wire::Push,
        policy: Option<Result<Policy, Refusal>>,
        now: Millis,
    ) -> Result<wire::PushReply, Refusal> {
        let main = self.main_name()?;
        if let Some(pack) = &push.pack {
            self.not_dead(&[&pack.pack.key])?;
        }
        let mut ledger = self.ledger()?;
        if let Some(answer) = ledger.other_answer("push", push.key.as_str()) {
            return Ok(answer);
        }
        ledger.put_commits(&push.commits);
        let mut results = Vec::with_capacity(push.commands.len());
        for command in &push.commands {
            let done = if Some(&command.name) == main.as_ref() {
                self.push_main(&mut ledger, push, command, policy.as_ref(), now)
            } else {
                self.push_ref(&mut ledger, command, main.is_some(), now)
            };
            ledger.check()?;
            results.push(done.err());
        }
        let failed = results.iter().any(Option::is_some);
        if failed && (push.atomic || results.iter().all(Option::is_some)) {
            let others = |command: &wire::RefCommand| rejected(&command.name, "atomic push failed");
            let results = push.commands.iter().zip(results);
            let results = results.map(|(command, result)| result.or_else(|| Some(others(command)))).collect();
            return Ok(wire::PushReply { results });
        }
        let answer = wire::PushReply { results };
        ledger.keep_answer("push", push.key.as_str(), &answer);
        if let Some(pack) = &push.pack {
            self.put_pack(pack, "staged", now)?;
            ledger.pending.live_packs.push(pack.pack.clone());
        }
        self.save(ledger)?;
        Ok(answer)
    }

    fn push_main(
        &self,
        ledger: &mut SqlLedger<'_, P::Sql>,
        push: &wire::Push,
        command: &wire::RefCommand,
        policy: Option<&Result<Policy, Refusal>>,
        now: Millis,
    ) -> Result<(), Refusal> {
        let new = command.new.ok_or_else(|| rejected(&command.name, "deletion of main is not allowed"))?;
        if !command.is_commit {
            return Err(rejected(&command.name, "a branch takes a commit only"));
        }
        let policy = match policy {
            Some(Ok(policy)) => policy,
            Some(Err(refusal)) => return Err(rejected(&command.name, &refusal.to_string())),
            None => return Err(Refusal::Internal { during: "reading the configuration".into() }),
        };
        free_of_others(ledger, &command.name)?;
        let nodes = push.commits.iter();
        let nodes = nodes.map(|c| CommitNode { id: c.id, parents: c.parents.clone(), tree: c.tree });
        let direct = DirectPush {
            old: command.old,
            new,
            commits: nodes.collect(),
            reason: push.reason.clone().unwrap_or_default(),
            policy: Some(policy.clone()).filter(|policy| *policy != *ledger.policy()),
            name: command.name.to_string(),
        };
        let by = push.token.as_ref().map_or_else(String::new, ToString::to_string);
        let actor = Actor { fork: None, admin: push.admin, by };
        match direct_push(&*ledger, &direct, &actor, now) {
            Decision::Fact(fact) => {
                ledger.apply(*fact, now);
                Ok(())
            }
            Decision::Answered(()) => Ok(()),
            Decision::Refused(refusal) => Err(refusal),
            Decision::Missing(_) => Err(rejected(&command.name, "missing necessary objects")),
        }
    }

    fn push_ref(
        &self,
        ledger: &mut SqlLedger<'_, P::Sql>,
        command: &wire::RefCommand,
        is_repository: bool,
        now: Millis,
    ) -> Result<(), Refusal> {
        let name = &command.name;
        writable(name, is_repository)?;
        let stands = current(ledger, name);
        if stands == command.new {
            return Ok(());
        }
        if stands != command.old {
            return Err(rejected(name, "fetch first"));
        }
        if let Some(new) = command.new {
            if name.as_str().starts_with("refs/heads/") && !command.is_commit {
                return Err(rejected(name, "a branch takes a commit only"));
            }
            if is_repository && command.is_commit && ledger.commit(&new).is_none() {
                return Err(rejected(name, "missing necessary objects"));
            }
            free_of_others(ledger, name)?;
        }
        ledger.apply(Fact::RefMoved { name: name.clone(), old: stands, new: command.new }, now);
        if let Some(peeled) = command.peeled {
            ledger.pending.peeled.insert(name.clone(), peeled);
        }
        Ok(())
    }
}

fn current<S: Sql>(ledger: &SqlLedger<'_, S>, name: &RefName) -> Option<ObjectId> {
    let scalars = &ledger.scalars;
    if scalars.fork.is_none() && scalars.default_branch.as_ref() == Some(name) {
        return scalars.main;
    }
    if scalars.fork.is_none() && name.as_str() == NOTES {
        return scalars.notes;
    }
    ledger.target(name)
}

fn writable(name: &RefName, is_repository: bool) -> Result<(), Refusal> {
    let text = name.as_str();
    let kinds = ["refs/heads/", "refs/tags/", "refs/notes/"];
    if !kinds.iter().any(|kind| text.starts_with(kind)) {
        return Err(rejected(name, "only refs/heads, refs/tags and refs/notes can be pushed"));
    }
    if is_repository && text == NOTES {
        return Err(rejected(name, "only the platform writes it: notes of landed changes"));
    }
    Ok(())
}

/// No other ref is a directory of this one's name, or below it.
fn free_of_others<S: Sql>(ledger: &SqlLedger<'_, S>, name: &RefName) -> Result<(), Refusal> {
    let text = name.as_str();
    let above = text.match_indices('/').filter_map(|(at, _)| RefName::new(text.get(..at)?).ok());
    let taken = above.into_iter().find(|above| current(ledger, above).is_some());
    let below = |other: &str| other.strip_prefix(text).is_some_and(|rest| rest.starts_with('/'));
    let scalars = &ledger.scalars;
    let main = scalars.default_branch.as_ref().filter(|_| scalars.main.is_some() && scalars.fork.is_none());
    let in_block = ledger.pending.refs.iter().filter(|(_, target)| target.is_some()).map(|(name, _)| name);
    let mut below_it = in_block.chain(main).find(|other| below(other.as_str())).map(ToString::to_string);
    if below_it.is_none() {
        let rows = ledger.sql.run(
            "SELECT name FROM refs WHERE name > ?1 || '/' AND name < ?1 || '0' LIMIT 100",
            &[text.into()],
        )?;
        let names = rows.iter().filter_map(|row| row.parse::<RefName>(0, "ref name").ok());
        below_it = names.into_iter().find(|name| ledger.target(name).is_some()).map(|name| name.to_string());
    }
    match taken.map(|name| name.to_string()).or(below_it) {
        Some(other) => Err(rejected(name, &format!("{other} exists; cannot create {name}"))),
        None => Ok(()),
    }
}

impl<P: Platform> Repository<P> {
    /// Brings the pack set up to the own catalogue.
    pub(super) fn sync_packs(&self) -> Result<(), Refusal> {
        let asked = self.packs.ask(OWN);
        let reply = self.catalogue(&asked)?;
        self.packs.take(OWN, reply)
    }
}
