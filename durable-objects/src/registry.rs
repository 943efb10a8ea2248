//! The Registry host: which repositories and forks there are.

use std::cell::Cell;

use yard_common::{ForkName, Millis, Refusal, RepoName};
use yard_wire::names::DEFAULT_LANE;
use yard_wire::registry as wire;

use crate::call::{LocalFuture, Object, no_method, reply, request};
use crate::sql::{Sql, Value, migrate};

const FIRST: &[&str] = &[
    "CREATE TABLE IF NOT EXISTS repos (repo TEXT PRIMARY KEY, at INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS forks (repo TEXT NOT NULL, fork TEXT NOT NULL, at INTEGER NOT NULL,
        PRIMARY KEY (repo, fork)) WITHOUT ROWID",
];

/// All names.
pub struct Registry<S: Sql> {
    sql: S,
    ready: Cell<bool>,
}

impl<S: Sql> Registry<S> {
    /// The host over its tables; reads nothing yet.
    pub fn new(sql: S) -> Self {
        Self { sql, ready: Cell::new(false) }
    }

    fn prepare(&self) -> Result<(), Refusal> {
        if !self.ready.get() {
            migrate(&self.sql, "registry", &[FIRST])?;
            self.ready.set(true);
        }
        Ok(())
    }

    fn save(&self, statement: &str, params: &[Value]) -> Result<(), Refusal> {
        crate::point("registry.before-save");
        self.sql.run(statement, params)?;
        crate::point("registry.saved");
        Ok(())
    }

    /// Takes a name; one that is taken already stays, so that a repeat is harmless.
    fn add_repo(&self, asked: &wire::AddRepo, now: Millis) -> Result<(), Refusal> {
        self.save(
            "INSERT OR IGNORE INTO repos (repo, at) VALUES (?1, ?2)",
            &[asked.repo.as_str().into(), now.0.into()],
        )
    }

    fn add_fork(&self, asked: &wire::AddFork, now: Millis) -> Result<(), Refusal> {
        let known = self.sql.run("SELECT 1 FROM repos WHERE repo = ?1", &[asked.repo.as_str().into()])?;
        if known.is_empty() {
            return Err(Refusal::NotFound { kind: "repository".into(), name: asked.repo.to_string() });
        }
        self.save(
            "INSERT OR IGNORE INTO forks (repo, fork, at) VALUES (?1, ?2, ?3)",
            &[asked.repo.as_str().into(), asked.fork.as_str().into(), now.0.into()],
        )
    }

    fn list(&self, asked: &wire::ListRepos) -> Result<Vec<wire::RepoEntry>, Refusal> {
        let wanted = Value::from(asked.repo.as_ref().map(RepoName::as_str));
        let rows = self.sql.run(
            "SELECT repo, at FROM repos WHERE ?1 IS NULL OR repo = ?1 ORDER BY repo",
            std::slice::from_ref(&wanted),
        )?;
        let forks = self.sql.run(
            "SELECT repo, fork FROM forks WHERE ?1 IS NULL OR repo = ?1 ORDER BY repo, fork",
            &[wanted],
        )?;
        let mut entries = Vec::with_capacity(rows.len());
        for row in &rows {
            let repo: RepoName = row.parse(0, "repository name")?;
            let mine = forks.iter().filter(|fork| fork.text(0) == Ok(repo.as_str()));
            let forks = mine.map(|row| row.parse(1, "fork name")).collect::<Result<Vec<ForkName>, _>>()?;
            let lanes = vec![yard_common::LaneName::new(DEFAULT_LANE)?];
            entries.push(wire::RepoEntry { repo, at: Millis(row.number(1)?), lanes, forks });
        }
        Ok(entries)
    }

    fn dispatch(&self, name: &str, body: &[u8], now: Millis) -> Result<Vec<u8>, Refusal> {
        self.prepare()?;
        match name {
            "add-repo" => reply::<wire::AddRepo>(&self.add_repo(&request(body)?, now)?),
            "add-fork" => reply::<wire::AddFork>(&self.add_fork(&request(body)?, now)?),
            "list-repos" => reply::<wire::ListRepos>(&self.list(&request(body)?)?),
            other => Err(no_method(other)),
        }
    }
}

impl<S: Sql> Object for Registry<S> {
    fn handle<'a>(
        &'a self,
        name: &'a str,
        body: &'a [u8],
        now: Millis,
    ) -> LocalFuture<'a, Result<Vec<u8>, Refusal>> {
        Box::pin(async move { self.dispatch(name, body, now) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::{NativeSql, block_on};
    use yard_wire::Method;

    fn call<M: Method>(registry: &Registry<NativeSql>, asked: &M) -> Result<M::Reply, Refusal> {
        let body = serde_json::to_vec(asked).unwrap();
        block_on(registry.handle(M::NAME, &body, Millis(7)))
            .map(|answer| serde_json::from_slice(&answer).unwrap())
    }

    #[test]
    fn names_are_taken_once_and_repeats_are_harmless() {
        let registry = Registry::new(NativeSql::new().unwrap());
        let repo = RepoName::new("click").unwrap();
        let fork = ForkName::new("a1").unwrap();
        let add_fork = wire::AddFork { repo: repo.clone(), fork: fork.clone() };
        assert!(matches!(call(&registry, &add_fork), Err(Refusal::NotFound { .. })));
        for _ in 0..2 {
            call(&registry, &wire::AddRepo { repo: repo.clone() }).unwrap();
            call(&registry, &add_fork).unwrap();
        }
        let all = call(&registry, &wire::ListRepos { repo: None }).unwrap();
        assert_eq!((all.len(), all[0].forks.as_slice(), all[0].at), (1, [fork].as_slice(), Millis(7)));
        let other = RepoName::new("other").unwrap();
        assert!(call(&registry, &wire::ListRepos { repo: Some(other) }).unwrap().is_empty());
        assert!(matches!(
            block_on(registry.handle("nothing", b"{}", Millis(0))),
            Err(Refusal::NotFound { .. })
        ));
    }
}
