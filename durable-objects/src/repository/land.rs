//! Landing: loads the candidate and main's trees on its way, asks the kernel, stores its fact.

use std::cell::RefCell;
use std::collections::BTreeSet;

use yard_common::config::Config;
use yard_common::landing::SignedRun;
use yard_common::policy::Policy;
use yard_common::submission::Mode;
use yard_common::{ChangeId, Fact, Millis, ObjectId, Refusal, RepoName};
use yard_landing::land::{Configuration, Context, land, refuse_missing};
use yard_landing::sign::{Verifier, is_signed};
use yard_landing::{Decision, LandingAnswer, Ledger as _};
use yard_wire::repository as wire;
use yard_wire::token::{self, Scope};

use super::ledger::{KnownRows, SqlLedger};
use super::lists::Lists;
use super::{Platform, Repository};
use crate::pack_set::Needed;
use crate::sql::{Sql, SqlFault};

/// A landing turn, in milliseconds: the longest default run (600 s) and its assembly.
const TURN_MS: u64 = 660_000;

/// Rebuilds runners' tokens from their public parts.
struct Tokens<'a, S> {
    secret: &'a str,
    repo: RepoName,
    now: Millis,
    sql: &'a S,
    /// A fault of the tables: then no answer of this verifier may be stored.
    fault: RefCell<Option<SqlFault>>,
}

impl<S: Sql> Verifier for Tokens<'_, S> {
    fn run_is_signed(&self, run: &SignedRun) -> bool {
        let Ok(claims) = token::claims(&run.token) else { return false };
        let may = claims.allows(Scope::Run, Some(&self.repo)) && claims.expires > self.now;
        let revoked = self.sql.run("SELECT 1 FROM revoked WHERE token = ?1", &[claims.id.as_str().into()]);
        let known_good = match revoked {
            Ok(rows) => rows.is_empty(),
            Err(fault) => {
                *self.fault.borrow_mut() = Some(fault);
                false
            }
        };
        let good = may && known_good;
        good && is_signed(&token::rebuild(self.secret.as_bytes(), run.token.as_str()), run)
    }
}

/// Reads `.switchyard.toml`.
struct Toml;

impl Configuration for Toml {
    fn policy(&self, blob: Option<(ObjectId, &[u8])>) -> Result<Policy, String> {
        match blob {
            None => Ok(Policy::default()),
            Some((id, bytes)) => match Config::parse(bytes) {
                Ok(config) => Ok(config.policy(Some(id))),
                Err(refusal) => Err(refusal.to_string()),
            },
        }
    }
}

/// The blobs that the landing puts on main: a tree must not name what no pack holds.
fn brought(asked: &wire::Land) -> BTreeSet<ObjectId> {
    let edits = asked.request.changes.iter().flat_map(|listed| &listed.edits);
    edits
        .filter(|edit| edit.result != edit.ours)
        .filter_map(|edit| edit.result)
        .filter(|result| result.mode != Mode::Gitlink)
        .map(|result| result.id)
        .collect()
}

impl<P: Platform> Repository<P> {
    /// Asks the kernel.
    pub(super) async fn land(
        &self,
        mut asked: wire::Land,
        now: Millis,
    ) -> Result<Result<wire::LandedReply, Refusal>, Refusal> {
        self.parent_only()?;
        let answered = self.ledger()?.landing_answer(&asked.request.key);
        if let Some(answer) = answered {
            return self.landing_reply(&asked, answer);
        }
        self.not_dead(&[&asked.request.candidate.key, &asked.request.notes.key])?;
        self.read_lists(&mut asked).await?;
        let changes: Vec<ChangeId> =
            asked.request.changes.iter().map(|listed| listed.change.clone()).collect();
        let lists = self.lists_of(&changes).await?;
        self.sync_packs()?;
        let source = format!("landing {}", asked.request.key);
        if let Some(candidate) = self.pack(asked.request.candidate.key.as_str())? {
            self.packs.add(&source, candidate)?;
        }
        self.packs.add(&source, asked.notes.clone())?;
        let mut needed = Needed::default();
        let mut rows = KnownRows::new();
        let mut lost = match self.packs.missing(&self.blobs, &brought(&asked)).await {
            Ok(lost) => lost,
            Err(refusal) => {
                self.packs.forget(&source);
                return Err(refusal);
            }
        };
        let answer = loop {
            match self.decide_landing(&asked, (&needed, &lost, &lists), &mut rows, now) {
                Err(refusal) => break Err(refusal),
                Ok(Ok(answer)) => break Ok(answer),
                Ok(Err(missing)) => match self.packs.load(&self.blobs, &missing, &mut needed).await {
                    Ok(none) => lost = none,
                    Err(refusal) => break Err(refusal),
                },
            }
        };
        self.packs.forget(&source);
        self.landing_reply(&asked, answer?)
    }

    /// One synchronous block: read, decide, store. `Err` names objects to load.
    #[allow(clippy::type_complexity, reason = "a fault, objects to load, or the answer")]
    fn decide_landing(
        &self,
        asked: &wire::Land,
        (needed, lost, lists): (&Needed, &BTreeSet<ObjectId>, &Lists),
        rows: &mut KnownRows,
        now: Millis,
    ) -> Result<Result<LandingAnswer, BTreeSet<ObjectId>>, Refusal> {
        let request = &asked.request;
        let mut ledger = self.ledger()?;
        ledger.lists = lists.clone();
        let changes: Vec<ChangeId> = request.changes.iter().map(|listed| listed.change.clone()).collect();
        ledger.prefetch(&changes, rows);
        let mut commits: Vec<ObjectId> = request.changes.iter().map(|listed| listed.commit).collect();
        commits.extend([request.head, request.notes_tip]);
        ledger.prefetch_commits(&commits);
        let (secret, repo, sql) = (self.secret.as_str(), self.remote()?.repo, &self.sql);
        let verifier = Tokens { secret, repo, now, sql, fault: RefCell::default() };
        let context =
            Context { objects: needed, verifier: &verifier, configuration: &Toml, now, turn_ms: TURN_MS };
        let decision = if lost.is_empty() {
            land(&ledger, request, &context)
        } else {
            refuse_missing(&ledger, request, lost, &context)
        };
        ledger.check()?;
        if let Some(fault) = verifier.fault.take() {
            return Err(fault.into());
        }
        let fact = match decision {
            Decision::Answered(answer) => return Ok(Ok(answer)),
            Decision::Refused(refusal) => return Err(refusal),
            Decision::Missing(ids) => return Ok(Err(ids)),
            Decision::Fact(fact) => fact,
        };
        self.store_landing(ledger, asked, *fact, now).map(Ok)
    }

    /// Fact, main, notes ref, catalogue and landed rows, in one block.
    fn store_landing(
        &self,
        mut ledger: SqlLedger<'_, P::Sql>,
        asked: &wire::Land,
        fact: Fact,
        now: Millis,
    ) -> Result<LandingAnswer, Refusal> {
        let key = &asked.request.key;
        // The packs may have gone to the sweep while objects were loaded.
        self.not_dead(&[&asked.request.candidate.key, &asked.request.notes.key])?;
        if matches!(fact, Fact::Landed { .. }) {
            let rows = self.sql.run(
                "SELECT c.commits FROM packs AS p JOIN candidates AS c ON c.attempt = p.attempt
                 WHERE p.key = ?1",
                &[asked.request.candidate.key.as_str().into()],
            )?;
            if let Some(row) = rows.first() {
                let commits: Vec<wire::CommitInfo> = row.json(0)?;
                ledger.seconds.extend(commits.iter().map(|commit| (commit.id, commit.seconds)));
            }
            let staged = self.pack(asked.request.candidate.key.as_str())?;
            if staged.is_none_or(|staged| staged.pack != asked.request.candidate) {
                return Err(Refusal::Malformed { why: "the candidate was not staged".into() });
            }
            if asked.notes.pack != asked.request.notes {
                return Err(Refusal::Malformed { why: "the notes pack is not the request's".into() });
            }
            self.put_pack(&asked.notes, "candidate", now)?;
            ledger.put_commits(std::slice::from_ref(&asked.notes_commit));
        }
        ledger.apply(fact, now);
        let answer = ledger.landing_answer(key);
        self.save(ledger)?;
        answer.ok_or(Refusal::Internal { during: "landing".into() })
    }

    fn landing_reply(
        &self,
        asked: &wire::Land,
        answer: LandingAnswer,
    ) -> Result<Result<wire::LandedReply, Refusal>, Refusal> {
        let head = match answer {
            LandingAnswer::Refused { refusal, .. } => return Ok(Err(refusal)),
            LandingAnswer::Landed { tip } => tip,
        };
        let first = asked.request.changes.first().map(|listed| listed.change.as_str());
        let rows = self.sql.run(
            "SELECT max(f.no) FROM fact_changes AS c JOIN facts AS f ON f.no = c.no
             WHERE c.change = ?1 AND f.kind = 'landed' HAVING count(*) > 0",
            &[first.unwrap_or_default().into()],
        )?;
        let fact = rows.first().map_or(Ok(0), |row| row.number(0))?;
        Ok(Ok(wire::LandedReply { head, fact: yard_common::FactNo(fact) }))
    }
}
