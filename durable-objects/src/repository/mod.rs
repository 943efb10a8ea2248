//! The Repository host: refs, packs, submissions, landings of one repository, or the refs and packs
//! of one fork.
//!
//! One decision is one synchronous block: after everything is loaded, the tables are read, the kernel
//! decides, its fact is stored and folded, with no await in between. A refusal under a key is a fact
//! too. Effects (index, board) follow the facts by cursors and may be repeated.

mod acts;
mod effects;
mod fact_text;
mod heads;
mod land;
mod ledger;
mod lists;
mod project;
mod read;
mod refs;
mod store;
mod submit;
mod tables;

use std::cell::RefCell;
use std::rc::Rc;

use yard_common::{Fact, FactNo, LaneName, Millis, PackKey, Refusal, TokenId};
use yard_wire::names::{self, Remote};
use yard_wire::repository as wire;

use crate::blobs::Blobs;
use crate::call::{Calls, LocalFuture, Object, no_method, reply, request};
use crate::index::{Index, Writer};
use crate::pack_set::{Budget, PackSet};
use crate::sql::{Sql, Value};
use ledger::SqlLedger;
use tables::Scalars;

/// What a Repository stands on.
pub trait Platform {
    /// Its tables.
    type Sql: Sql;
    /// The bucket.
    type Blobs: Blobs;
    /// The index.
    type Index: Index;
    /// Other objects.
    type Calls: Calls;
}

/// A repository, or a fork of one.
pub struct Repository<P: Platform> {
    sql: P::Sql,
    blobs: P::Blobs,
    index: P::Index,
    calls: P::Calls,
    secret: String,
    packs: PackSet,
    scalars: RefCell<Option<Scalars>>,
    writer: RefCell<Option<Rc<Writer>>>,
    /// Rebuilds of the index that were begun: what was being sent then does not move its cursor.
    rebuilds: std::cell::Cell<u64>,
}

/// The source name under which the own catalogue stands in the pack set.
const OWN: &str = "own";

impl<P: Platform> Repository<P> {
    /// The host over its tables; `secret` signs the platform's tokens. Reads nothing yet.
    pub fn new(sql: P::Sql, blobs: P::Blobs, index: P::Index, calls: P::Calls, secret: String) -> Self {
        Self {
            sql,
            blobs,
            index,
            calls,
            secret,
            packs: PackSet::new(Budget::default()),
            scalars: RefCell::default(),
            writer: RefCell::default(),
            rebuilds: std::cell::Cell::new(0),
        }
    }

    /// The scalars; makes the tables and folds what a fault left unfolded.
    fn scalars(&self) -> Result<Scalars, Refusal> {
        if let Some(scalars) = &*self.scalars.borrow() {
            return Ok(scalars.clone());
        }
        tables::prepare(&self.sql)?;
        let scalars = Scalars::read(&self.sql)?;
        let left = self
            .sql
            .run("SELECT no, at, json FROM facts WHERE no > ?1 ORDER BY no", &[scalars.folded.0.into()])?;
        let scalars = if left.is_empty() {
            scalars
        } else {
            let mut ledger = SqlLedger::new(&self.sql, scalars);
            for row in left {
                let fact: Fact = row.json(2)?;
                ledger.refold(FactNo(row.number(0)?), Millis(row.number(1)?), fact);
            }
            store::save(ledger)?.ok_or_else(|| Refusal::Internal { during: "folding facts again".into() })?
        };
        *self.scalars.borrow_mut() = Some(scalars.clone());
        Ok(scalars)
    }

    /// The ledger as it is now.
    fn ledger(&self) -> Result<SqlLedger<'_, P::Sql>, Refusal> {
        let scalars = self.scalars()?;
        if scalars.repo.is_none() {
            return Err(Refusal::NotFound { kind: "repository".into(), name: "of this name".into() });
        }
        Ok(SqlLedger::new(&self.sql, scalars))
    }

    /// Stores what the ledger gathered.
    fn save(&self, ledger: SqlLedger<'_, P::Sql>) -> Result<(), Refusal> {
        let stored = store::save(ledger);
        *self.scalars.borrow_mut() = match &stored {
            Ok(Some(scalars)) => Some(scalars.clone()),
            Ok(None) | Err(_) => None,
        };
        stored?;
        crate::point("repository.saved");
        Ok(())
    }

    /// Is this object the repository itself, or a fork of it?
    fn remote(&self) -> Result<Remote, Refusal> {
        let scalars = self.scalars()?;
        let missing = || Refusal::NotFound { kind: "repository".into(), name: "of this name".into() };
        Ok(Remote { repo: scalars.repo.ok_or_else(missing)?, fork: scalars.fork })
    }

    fn parent_only(&self) -> Result<(), Refusal> {
        match self.remote()?.fork {
            None => Ok(()),
            Some(_) => Err(Refusal::Invalid { why: "this is asked of the repository, not of a fork".into() }),
        }
    }

    fn not_revoked(&self, token: Option<&TokenId>) -> Result<(), Refusal> {
        let Some(token) = token else { return Ok(()) };
        self.scalars()?;
        let rows = self.sql.run("SELECT 1 FROM revoked WHERE token = ?1", &[token.as_str().into()])?;
        if rows.is_empty() {
            return Ok(());
        }
        Err(Refusal::Unauthenticated { why: "this token was revoked: ask an admin for a new one".into() })
    }

    /// Refuses packs whose key was given to the sweep.
    fn not_dead(&self, keys: &[&PackKey]) -> Result<(), Refusal> {
        for key in keys {
            let rows = self.sql.run("SELECT state FROM packs WHERE key = ?1", &[key.as_str().into()])?;
            if rows.first().is_some_and(|row| matches!(row.text(0), Ok("dead" | "gone"))) {
                return Err(Refusal::Stale { what: format!("pack {key}") });
            }
        }
        Ok(())
    }

    /// Writes a pack's row with its index, unless it is in the catalogue.
    fn put_pack(&self, pack: &wire::IndexedPack, state: &str, now: Millis) -> Result<(), Refusal> {
        let index = pack.index.as_ref().map(|index| Value::Blob(index.0.clone())).unwrap_or(Value::Null);
        self.sql.run(
            "INSERT INTO packs (key, bytes, objects, idx, state, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT (key) DO UPDATE SET bytes = excluded.bytes, objects = excluded.objects,
               idx = excluded.idx, state = excluded.state, at = excluded.at
             WHERE packs.state IN ('staged', 'candidate')",
            &[
                pack.pack.key.as_str().into(),
                pack.pack.bytes.into(),
                pack.pack.objects.into(),
                index,
                state.into(),
                now.0.into(),
            ],
        )?;
        Ok(())
    }

    /// The one lane of a repository without lanes in its configuration.
    fn default_lane() -> Result<LaneName, Refusal> {
        Ok(LaneName::new(names::DEFAULT_LANE)?)
    }

    async fn dispatch(&self, name: &str, body: &[u8], now: Millis) -> Result<Vec<u8>, Refusal> {
        macro_rules! answer {
            ($method:ty, $answer:expr) => {{
                let asked: $method = request(body)?;
                #[allow(clippy::redundant_closure_call, reason = "one form for all methods")]
                reply::<$method>(&($answer)(asked)?)
            }};
        }
        match name {
            "create" => answer!(wire::Create, |asked| self.create(asked)),
            "refs" => answer!(wire::Refs, |asked: wire::Refs| self.refs(&asked)),
            "resolve" => answer!(wire::Resolve, |asked: wire::Resolve| self.resolve(&asked)),
            "catalogue" => answer!(wire::Catalogue, |asked: wire::Catalogue| self.catalogue(&asked)),
            "candidates" => answer!(wire::Candidates, |asked: wire::Candidates| self.candidates(&asked)),
            "graph" => answer!(wire::Graph, |asked: wire::Graph| self.graph(&asked)),
            "stage" => answer!(wire::Stage, |asked: wire::Stage| self.stage(&asked, now)),
            "push" => reply::<wire::Push>(&self.push(request(body)?, now).await?),
            "prepare" => answer!(wire::Prepare, |asked: wire::Prepare| self.prepare(&asked)),
            "offered" => answer!(wire::Offered, |asked: wire::Offered| self.offered(&asked)),
            "submit" => answer!(wire::Submit, |asked| self.submit(asked, now)),
            "pull" => answer!(wire::Pull, |asked: wire::Pull| self.pull(&asked, now)),
            "contents" => answer!(wire::Contents, |asked: wire::Contents| self.contents(&asked)),
            "heads" => reply::<wire::Heads>(&self.heads(&request(body)?).await?),
            "catalogue-heads" => {
                answer!(wire::CatalogueHeads, |asked: wire::CatalogueHeads| self.catalogue_heads(&asked, now))
            }
            "stage-candidate" => {
                answer!(wire::StageCandidate, |asked: wire::StageCandidate| self.stage_candidate(&asked, now))
            }
            "land" => reply::<wire::Land>(&self.land(request(body)?, now).await?),
            "do" => reply::<wire::Do>(&self.act(request(body)?, now).await?),
            "changes" => answer!(wire::Changes, |asked: wire::Changes| self.changes(&asked)),
            "find" => answer!(wire::Find, |asked: wire::Find| self.find(&asked)),
            "facts" => answer!(wire::Facts, |asked: wire::Facts| self.facts(&asked)),
            "check-token" => {
                answer!(wire::CheckToken, |asked: wire::CheckToken| self.not_revoked(Some(&asked.token)))
            }
            "revoke" => answer!(wire::Revoke, |asked: wire::Revoke| self.revoke(&asked)),
            "reindex" => answer!(wire::Reindex, |asked: wire::Reindex| self.reindex(&asked)),
            "sweep" => answer!(wire::Sweep, |_| self.sweep()),
            other => Err(no_method(other)),
        }
    }
}

impl<P: Platform> Object for Repository<P> {
    fn handle<'a>(
        &'a self,
        name: &'a str,
        body: &'a [u8],
        now: Millis,
    ) -> LocalFuture<'a, Result<Vec<u8>, Refusal>> {
        Box::pin(self.dispatch(name, body, now))
    }
}

#[cfg(test)]
pub(crate) mod tests;
