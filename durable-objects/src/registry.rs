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

const SECOND: &[&str] = &["CREATE TABLE IF NOT EXISTS tokens (repo TEXT NOT NULL, id TEXT NOT NULL,
        expires INTEGER NOT NULL, json TEXT NOT NULL, PRIMARY KEY (repo, id)) WITHOUT ROWID"];

/// All names, and which tokens were given out.
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
            migrate(&self.sql, "registry", &[FIRST, SECOND])?;
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
        self.knows(&asked.repo, None)?;
        self.save(
            "INSERT OR IGNORE INTO forks (repo, fork, at) VALUES (?1, ?2, ?3)",
            &[asked.repo.as_str().into(), asked.fork.as_str().into(), now.0.into()],
        )
    }

    fn knows(&self, repo: &RepoName, fork: Option<&ForkName>) -> Result<(), Refusal> {
        let (kind, name, rows) = match fork {
            None => {
                let rows = self.sql.run("SELECT 1 FROM repos WHERE repo = ?1", &[repo.as_str().into()])?;
                ("repository", repo.as_str(), rows)
            }
            Some(fork) => {
                let params = [repo.as_str().into(), fork.as_str().into()];
                let rows = self.sql.run("SELECT 1 FROM forks WHERE repo = ?1 AND fork = ?2", &params)?;
                ("fork", fork.as_str(), rows)
            }
        };
        if rows.is_empty() {
            return Err(Refusal::NotFound { kind: kind.into(), name: name.to_owned() });
        }
        Ok(())
    }

    /// Tokens that have ended make room for the new one.
    fn add_token(&self, asked: &wire::AddToken, now: Millis) -> Result<(), Refusal> {
        self.knows(&asked.repo, asked.token.fork.as_ref())?;
        let json = serde_json::to_string(&asked.token)
            .map_err(|_| Refusal::Internal { during: "noting a token".into() })?;
        let repo = Value::from(asked.repo.as_str());
        self.sql.run("DELETE FROM tokens WHERE repo = ?1 AND expires < ?2", &[repo.clone(), now.0.into()])?;
        self.save(
            "INSERT OR REPLACE INTO tokens (repo, id, expires, json) VALUES (?1, ?2, ?3, ?4)",
            &[repo, asked.token.id.as_str().into(), asked.token.expires.0.into(), json.into()],
        )
    }

    fn find_token(&self, asked: &wire::FindToken) -> Result<Option<wire::TokenEntry>, Refusal> {
        let params = [asked.repo.as_str().into(), asked.id.as_str().into()];
        let rows = self.sql.run("SELECT json FROM tokens WHERE repo = ?1 AND id = ?2", &params)?;
        Ok(rows.first().map(|row| row.json(0)).transpose()?)
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
            "add-token" => reply::<wire::AddToken>(&self.add_token(&request(body)?, now)?),
            "find-token" => reply::<wire::FindToken>(&self.find_token(&request(body)?)?),
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
    use yard_common::TokenId;
    use yard_wire::Method;
    use yard_wire::token::Scope;

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

    #[test]
    fn a_token_is_noted_for_what_exists_alone_and_found_by_its_id() {
        let registry = Registry::new(NativeSql::new().unwrap());
        let repo = RepoName::new("click").unwrap();
        let token = |id: &str, fork: Option<&str>, expires| wire::AddToken {
            repo: repo.clone(),
            token: wire::TokenEntry {
                id: TokenId::new(id).unwrap(),
                fork: fork.map(|name| ForkName::new(name).unwrap()),
                scopes: vec![Scope::Read],
                expires: Millis(expires),
            },
        };
        let find = |id: &str| {
            call(&registry, &wire::FindToken { repo: repo.clone(), id: TokenId::new(id).unwrap() }).unwrap()
        };
        let unknown = |asked: &wire::AddToken, kind: &str| {
            let refused = call(&registry, asked);
            assert!(
                matches!(&refused, Err(Refusal::NotFound { kind: found, .. }) if found == kind),
                "{refused:?}"
            );
        };
        unknown(&token("t-1", None, 9), "repository");
        call(&registry, &wire::AddRepo { repo: repo.clone() }).unwrap();
        unknown(&token("t-1", Some("a1"), 9), "fork");
        call(&registry, &wire::AddFork { repo: repo.clone(), fork: ForkName::new("a1").unwrap() }).unwrap();
        call(&registry, &token("old", None, 6)).unwrap();
        call(&registry, &token("t-1", Some("a1"), 9)).unwrap();
        assert_eq!(find("t-1"), Some(token("t-1", Some("a1"), 9).token));
        assert_eq!((find("old"), find("t-2")), (None, None));
    }
}
