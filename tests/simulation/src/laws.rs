//! The laws, checked against a model that anyone can follow: bags of lines, and what each change's author meant.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde_json::Value;
use yard_common::{Fact, ObjectId};
use yard_objects::Index as _;
use yard_objects::sql::Sql as _;

use crate::actors::Play;
use crate::suite::{self, Bag};

/// The first law that was broken, in one sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken(pub String);

/// What holds after every step.
pub struct Laws {
    play: Rc<Play>,
    seen: u64,
    head: Option<ObjectId>,
    model: Bag,
    /// Versions that a model made.
    redone: BTreeSet<(String, u64)>,
    /// Landed changes with their commits.
    pub landed: BTreeMap<String, ObjectId>,
}

impl Laws {
    /// From the beginning on.
    #[must_use]
    pub fn new(play: &Rc<Play>) -> Self {
        let model = suite::bag(&suite::project());
        Self {
            play: Rc::clone(play),
            seen: 0,
            head: None,
            model,
            redone: BTreeSet::new(),
            landed: BTreeMap::new(),
        }
    }

    /// Reads the repository's new facts and holds them against the model.
    ///
    /// # Errors
    /// [`Broken`].
    pub fn check(&mut self) -> Result<(), Broken> {
        let tables = self.play.world.tables(&format!("repo:{}", self.play.repo));
        // The table is made by the first event.
        let Ok(rows) =
            tables.run("SELECT no, json FROM facts WHERE no > ?1 ORDER BY no", &[self.seen.into()])
        else {
            return Ok(());
        };
        for row in rows {
            let odd = |fault| Broken(format!("a fact cannot be read: {fault}"));
            self.seen = row.number(0).map_err(odd)?;
            self.follow(&row.json::<Fact>(1).map_err(odd)?)?;
        }
        Ok(())
    }

    fn follow(&mut self, fact: &Fact) -> Result<(), Broken> {
        match fact {
            Fact::Landed { request, .. } => {
                if self.head != Some(request.head) {
                    return Err(Broken(format!("{} landed on {}, not on main", request.key, request.head)));
                }
                for change in &request.changes {
                    let redone = self.redone.contains(&(change.change.to_string(), change.version.0));
                    self.land(change.change.as_str(), change.commit, redone)?;
                }
                let tree = self.play.world.god.borrow().commit(&request.tip).map(|(tree, _)| tree);
                if !tree.is_some_and(|tree| self.play.green.borrow().contains(&tree)) {
                    return Err(Broken(format!("{} landed a tree that no runner saw green", request.key)));
                }
            }
            Fact::Submitted { row, .. } if row.replay.is_some() => {
                self.redone.insert((row.change.to_string(), row.version.0));
            }
            Fact::DirectPush { new, .. } => {
                if let Some(ops) = self.play.pushed.borrow().get(new) {
                    suite::change(&mut self.model, ops);
                }
                self.head = Some(*new);
            }
            _ => {}
        }
        Ok(())
    }

    fn land(&mut self, change: &str, commit: ObjectId, redone: bool) -> Result<(), Broken> {
        if let Some(before) = self.landed.insert(change.to_owned(), commit) {
            return Err(Broken(format!("{change} landed twice: {before} and {commit}")));
        }
        let changes = self.play.changes.borrow();
        let meant =
            changes.get(change).ok_or_else(|| Broken(format!("{change} landed and nobody made it")))?;
        if meant.broken {
            return Err(Broken(format!("{change} landed, and is red wherever it is")));
        }
        let before = self.model.clone();
        suite::change(&mut self.model, &meant.ops);
        let god = self.play.world.god.borrow();
        let (tree, parent) =
            god.commit(&commit).ok_or_else(|| Broken(format!("commit {commit} is in no pack")))?;
        if parent != self.head {
            return Err(Broken(format!("{commit} of {change} does not stand on {:?}", self.head)));
        }
        let files = god.files(tree).ok_or_else(|| Broken(format!("the tree of {commit} is not whole")))?;
        let there = suite::bag(&files);
        if redone {
            self.model = redone_as(&before, &self.model, &there, self.play.errs > 0)?;
        }
        if there != self.model {
            let differ = there.iter().find(|(path, lines)| self.model.get(*path) != Some(lines));
            let differ = differ.or_else(|| self.model.iter().find(|(path, _)| !there.contains_key(*path)));
            let (path, wanted) = differ.map(|(path, _)| (path, self.model.get(path))).unzip();
            return Err(Broken(format!(
                "with {change} main is not what the changes say at {path:?}: it has {:?}, not {wanted:?}",
                path.and_then(|path| there.get(path))
            )));
        }
        self.head = Some(commit);
        Ok(())
    }

    /// When all has come to rest: every change ended, with a reason, and the records are whole.
    ///
    /// # Errors
    /// [`Broken`].
    pub async fn at_rest(&self, play: &Play) -> Result<(), Broken> {
        let accepted: Vec<String> = {
            let changes = play.changes.borrow();
            changes.iter().filter(|(_, meant)| meant.accepted).map(|(id, _)| id.clone()).collect()
        };
        for change in &accepted {
            let Some((stage, reason, verdict)) = play.status(change).await else {
                return Err(Broken(format!("{change} was accepted and is not known any more")));
            };
            self.ended(play, change, (&stage, &reason, &verdict))?;
        }
        let rows = play.world.index.run("SELECT count(*) FROM landed", &[]).await;
        let rows = rows.ok().and_then(|rows| rows.first().and_then(|row| row.number(0).ok()));
        if rows != Some(self.landed.len() as u64) {
            return Err(Broken(format!("the index has {rows:?} of {} landed changes", self.landed.len())));
        }
        indexed(play).await?;
        self.noted(play).await?;
        rebuilt(play).await
    }

    fn ended(
        &self,
        play: &Play,
        change: &str,
        (stage, reason, verdict): (&str, &str, &Value),
    ) -> Result<(), Broken> {
        let changes = play.changes.borrow();
        let Some(meant) = changes.get(change) else { return Ok(()) };
        let landed = self.landed.contains_key(change);
        let right = match stage {
            "landed" => landed,
            "withdrawn" => meant.cancelled && !landed,
            "already-on-main" | "expired" => !landed,
            "needs-author" => !landed && !reason.is_empty(),
            _ => return Err(Broken(format!("{change} never ended: {stage}, {reason}"))),
        };
        if !right {
            return Err(Broken(format!("{change} is {stage} ({reason}), landed: {landed}")));
        }
        let blamed = verdict["verdict"] == "broken-alone";
        let by_chance = reason.contains("sometimes");
        if blamed
            && !meant.broken
            && !by_chance
            && !reason.contains("replay")
            && !meant.word
            && play.errs == 0
        {
            return Err(Broken(format!("{change} is blamed and broke nothing: {reason}")));
        }
        Ok(())
    }

    /// Each landed commit has one note of its own.
    async fn noted(&self, play: &Play) -> Result<(), Broken> {
        let path = format!("/api/repos/{}", play.repo);
        let admin = crate::client::admin();
        let asked = crate::client::request(&play.world, ("GET", &path), &admin, Value::Null).await;
        let Some((_, body)) = asked else { return Err(Broken("the status does not come".into())) };
        if body["outbox"] != 0 {
            return Err(Broken(format!("{} effects are still to be done", body["outbox"])));
        }
        let notes = body["view"]["notes_head"].as_str().and_then(|id| id.parse::<ObjectId>().ok());
        let god = play.world.god.borrow();
        let entries = notes.and_then(|notes| god.entries(god.commit(&notes)?.0)).unwrap_or_default();
        let names: BTreeMap<String, ObjectId> =
            entries.into_iter().map(|(path, id)| (path.to_string().replace('/', ""), id)).collect();
        if names.len() != self.landed.len() {
            return Err(Broken(format!("{} notes of {} landed changes", names.len(), self.landed.len())));
        }
        for (change, commit) in &self.landed {
            let note = names.get(&commit.to_string()).and_then(|id| god.get(id));
            let own = note.is_some_and(|note| String::from_utf8_lossy(&note.data).contains(change.as_str()));
            if !own {
                return Err(Broken(format!("{commit} has no note of {change}")));
            }
        }
        Ok(())
    }
}

impl Laws {
    /// As they stand now.
    #[must_use]
    pub fn snapshot(&self) -> Self {
        Self {
            play: Rc::clone(&self.play),
            seen: self.seen,
            head: self.head,
            model: self.model.clone(),
            redone: self.redone.clone(),
            landed: self.landed.clone(),
        }
    }
}

/// The index has exactly the rows that the lane made.
async fn indexed(play: &Play) -> Result<(), Broken> {
    let tables = play.world.tables(&format!("lane:{}/main", play.repo));
    for (kind, table, key) in [
        ("run", "runs", "run"),
        ("verdict", "verdicts", "seq"),
        ("replay", "replays", "replay"),
        ("timeline", "timeline", "seq"),
    ] {
        let odd = |fault: String| Broken(format!("{table} cannot be read: {fault}"));
        let made = tables
            .run("SELECT key, seq FROM projected WHERE kind = ?1 ORDER BY key", &[kind.into()])
            .map_err(|fault| odd(fault.to_string()))?;
        let asked = format!(
            "SELECT CAST({key} AS TEXT), seq FROM {table} WHERE lane = 'main' {} ORDER BY 1",
            if kind == "timeline" { "AND source = 'lane:main'" } else { "" }
        );
        let there = play.world.index.run(&asked, &[]).await.map_err(|fault| odd(fault.to_string()))?;
        if format!("{made:?}") != format!("{there:?}") {
            let (made, there) = (made.len(), there.len());
            return Err(Broken(format!("{table}: the lane made {made} rows, the index has {there} or others")));
        }
        if kind == "run" && made.is_empty() && !play.green.borrow().is_empty() {
            return Err(Broken("runs were made and the lane has no rows of them".into()));
        }
    }
    Ok(())
}

/// Every row of the index, table by table.
fn dumped(play: &Play) -> Result<Vec<String>, Broken> {
    let dump = |table: &yard_objects::index::Table| {
        let rows = play.world.index.sql.run(&table.dump(), &[]);
        let rows = rows.map_err(|fault| Broken(format!("{} cannot be read: {fault}", table.name)))?;
        Ok(rows.iter().map(|row| format!("{} {row:?}", table.name)).collect::<Vec<_>>())
    };
    let tables = yard_objects::index::TABLES.iter().map(dump).collect::<Result<Vec<_>, Broken>>()?;
    Ok(tables.into_iter().flatten().collect())
}

/// The index, dropped and made anew from the objects, has the same rows.
async fn rebuilt(play: &Play) -> Result<(), Broken> {
    let before = dumped(play)?;
    for table in yard_objects::index::TABLES.iter().skip(1) {
        // The first table's rows are left for the request to delete.
        let dropped = play.world.index.sql.run(&format!("DROP TABLE {}", table.name), &[]);
        dropped.map_err(|fault| Broken(format!("{} cannot be dropped: {fault}", table.name)))?;
    }
    let path = format!("/api/repos/{}/rebuild-index", play.repo);
    let admin = crate::client::admin();
    loop {
        let asked = crate::client::request(&play.world, ("POST", &path), &admin, serde_json::json!({})).await;
        let Some((200, body)) = asked else { return Err(Broken(format!("no rebuild: {asked:?}"))) };
        if body["clearing"] == false {
            break;
        }
    }
    for _ in 0..600 {
        play.world.clock.sleep(1_000).await;
        let asked = crate::client::request(&play.world, ("GET", &path), &admin, Value::Null).await;
        let Some((200, body)) = asked else { return Err(Broken(format!("no progress: {asked:?}"))) };
        let parts = body["parts"].as_array().cloned().unwrap_or_default();
        if parts.len() == 2 && parts.iter().all(|part| part["sent"] == part["total"]) {
            let after = dumped(play)?;
            let (gone, new) = (
                before.iter().find(|row| !after.contains(row)),
                after.iter().find(|row| !before.contains(row)),
            );
            if gone.is_some() || new.is_some() || before.len() != after.len() {
                return Err(Broken(format!("the index made anew differs: {gone:?} became {new:?}")));
            }
            return Ok(());
        }
    }
    Err(Broken("the index is never made anew".into()))
}

/// The model after a change that a language model redid: it may leave a line that was to go, and one that errs may
/// do in its files whatever the suite lets through. Other files are as they were.
fn redone_as(before: &Bag, meant: &Bag, there: &Bag, errs: bool) -> Result<Bag, Broken> {
    let mut model = meant.clone();
    for (path, lines) in there {
        let (old, new) = (before.get(path), meant.get(path));
        if old == new || new == Some(lines) {
            continue;
        }
        let kept = new.is_some_and(|new| new.iter().all(|(line, count)| lines.get(line) >= Some(count)));
        if !kept && !errs {
            return Err(Broken(format!(
                "a redone change took something away from {path}: {lines:?}, {new:?}"
            )));
        }
        model.insert(path.clone(), lines.clone());
    }
    Ok(model)
}
