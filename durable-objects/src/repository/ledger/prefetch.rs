//! Reads of many rows by one statement each, before a decision goes through them one by one.

use std::collections::BTreeMap;
use std::sync::Arc;

use yard_common::submission::{RowEdit, Submission};
use yard_common::{ChangeId, ForkName, ObjectId};

use super::super::lists::filled;
use super::{SqlLedger, commit_row, fork_key, path_text, row_of_fact, state_of, version_of};
use crate::sql::{Row, Sql, SqlFault, each_ids, each_json};

/// Submission rows by the number of their fact.
pub(crate) type KnownRows = BTreeMap<u64, Arc<Submission>>;

fn place_of(row: &Row) -> Result<(ChangeId, u64), SqlFault> {
    Ok((row.parse(0, "change id")?, row.number(1)?))
}

impl<S: Sql> SqlLedger<'_, S> {
    /// Reads newest rows and states of many changes by one statement each; rows in `known`, which never
    /// change under their fact's number, are not read again.
    pub(crate) fn prefetch(&self, changes: &[ChangeId], known: &mut KnownRows) {
        let places = self.ok(each_json(
            self.sql,
            "SELECT j.value,
               (SELECT fact FROM submissions WHERE change = j.value ORDER BY version DESC LIMIT 1)
             FROM json_each(?1) AS j",
            changes,
            &[],
        ));
        let places = places.unwrap_or_default().into_iter().filter(|row| !row.is_null(1));
        let places: Vec<(ChangeId, u64)> = places.filter_map(|row| self.ok(place_of(&row))).collect();
        let unread = places.iter().map(|place| place.1).filter(|no| !known.contains_key(no));
        let rows = self.ok(each_json(
            self.sql,
            "SELECT f.no, f.json FROM json_each(?1) AS j JOIN facts AS f ON f.no = j.value",
            unread,
            &[],
        ));
        for row in rows.unwrap_or_default() {
            let read = row.number(0).and_then(|no| Ok((no, filled(row_of_fact(row.text(1)?)?, &self.lists))));
            known.extend(self.ok(read));
        }
        let states = self.ok(each_json(
            self.sql,
            "SELECT c.change, c.state, c.upto FROM json_each(?1) AS j
             JOIN changes AS c ON c.change = j.value",
            changes,
            &[],
        ));
        let mut read = self.read.borrow_mut();
        for change in changes {
            read.newest.entry(change.clone()).or_default();
            read.states.entry(change.clone()).or_default();
        }
        for (change, no) in places {
            if let Some(row) = known.get(&no) {
                read.newest.insert(change, Some(Arc::clone(row)));
            }
        }
        for row in states.unwrap_or_default() {
            if let Some((change, state)) = self.ok(state_of(&row)) {
                read.states.insert(change, state);
            }
        }
    }

    /// Reads commits, and the versions that have them, by one statement each.
    pub(crate) fn prefetch_commits(&self, ids: &[ObjectId]) {
        let commits = self.ok(each_ids(
            self.sql,
            "SELECT c.id, c.tree, c.parents, c.generation, c.ever FROM ids
             JOIN commits AS c ON c.id = ids.id",
            ids,
            &[],
        ));
        let versions = self.ok(each_ids(
            self.sql,
            "SELECT v.id, v.change, v.version FROM ids JOIN version_commits AS v ON v.id = ids.id
             ORDER BY v.change, v.version",
            ids,
            &[],
        ));
        let mut read = self.read.borrow_mut();
        for id in ids {
            read.commits.entry(*id).or_default();
            read.versions.entry(*id).or_default();
        }
        for row in commits.unwrap_or_default() {
            if let (Some(id), Some(found)) = (self.ok(row.id(0)), self.ok(commit_row(&row, 1))) {
                read.commits.insert(id, Some(found));
            }
        }
        for row in versions.unwrap_or_default() {
            if let (Some(id), Some(version)) = (self.ok(row.id(0)), self.ok(version_of(&row, 1))) {
                read.versions.entry(id).or_default().push(version);
            }
        }
    }

    /// Reads the answers of many keys by one statement.
    pub(crate) fn prefetch_answers(&self, kind: &'static str, keys: &[&str]) {
        let rows = self.ok(each_json(
            self.sql,
            "SELECT a.key, a.json FROM json_each(?1) AS j
             JOIN answers AS a ON a.kind = ?2 AND a.key = j.value",
            keys,
            &[kind.into()],
        ));
        let mut read = self.read.borrow_mut();
        for key in keys {
            read.answers.entry((kind, (*key).to_owned())).or_default();
        }
        for row in rows.unwrap_or_default() {
            if let (Some(key), Some(json)) = (self.ok(row.text(0)), self.ok(row.text(1))) {
                read.answers.insert((kind, key.to_owned()), Some(json.to_owned()));
            }
        }
    }

    /// Reads which changes of a fork touch these paths by one statement.
    pub(crate) fn prefetch_paths(&self, fork: Option<&ForkName>, edits: &[RowEdit]) {
        let fork = fork_key(fork);
        let paths: Vec<String> = edits.iter().map(|edit| path_text(&edit.path)).collect();
        let rows = self.ok(each_json(
            self.sql,
            "SELECT p.path, p.change FROM json_each(?1) AS j
             JOIN paths AS p ON p.fork = ?2 AND p.path = j.value",
            &paths,
            &[fork.into()],
        ));
        let mut read = self.read.borrow_mut();
        for row in rows.unwrap_or_default() {
            let found = row.text(0).and_then(|path| Ok((path.to_owned(), row.parse(1, "change id")?)));
            if let Some((path, change)) = self.ok(found) {
                read.on_path.entry((fork.to_owned(), path)).or_default().insert(change);
            }
        }
        for path in paths {
            read.on_path.entry((fork.to_owned(), path)).or_default();
        }
    }
}
