//! The steps of a lane, one at a time: what other objects and the bucket are needed for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use yard_common::bytes::{Base64, json_len};
use yard_common::config::ReplayPolicy;
use yard_common::landing::{AttemptId, SignedRun};
use yard_common::limits::{FACT_BYTES_MAX, INLINE_INDEX_BYTES_MAX};
use yard_common::{ChangeId, Fact, FactNo, IdempotencyKey, Millis, ObjectId, PackKey, Refusal, Version};
use yard_git::pack::write::FinishedPack;
use yard_queue::assemble::{Assembly, Built, Order, Passenger};
use yard_queue::fact::{Aside, AttemptKind, KnownRow};
use yard_queue::note::{self, NotesError};
use yard_queue::state::{Claim, View};
use yard_queue::without::own_tests;
use yard_queue::{Input, Step};
use yard_wire::board::Publish;
use yard_wire::names;
use yard_wire::repository as wire;

use super::objects::Lost;
use super::{Driving, LOST_MS, Lane, RETRY_DOUBLINGS_MAX, RETRY_MS, STEP_MS_MAX, SWEEP_MS, store};
use crate::blobs::Blobs as _;
use crate::call::Calls as _;
use crate::pack_set::Needed;
use crate::point;
use crate::repository::Platform;

/// Facts in one reply of the repository.
const PULL_LIMIT: u32 = 1_000;
/// Steps of one alarm: a lane that never rests is stopped here and woken again.
const STEPS_MAX: usize = 2_000;

/// The facts of a chunk are stored in one row: half of what a row may have.
const CHUNK_BYTES: usize = FACT_BYTES_MAX;

impl<P: Platform> Lane<P> {
    /// Does what is to be done; a step that fails is tried again by the next alarm.
    ///
    /// # Errors
    /// [`Refusal::Internal`] when the tables fail.
    pub async fn alarm(&self, clock: &dyn Fn() -> Millis) -> Result<Option<Millis>, Refusal> {
        if self.driving.get().is_some_and(|since| clock().since(since) < STEP_MS_MAX) {
            return Ok(Some(clock().plus(RETRY_MS)));
        }
        // Nobody but this assembles: what an alarm that was cut off had begun is given up.
        self.with(|loaded| loaded.world.assembling = None)?;
        self.driving.set(Some(clock()));
        let _driving = Driving(&self.driving);
        if self.with(|loaded| loaded.repo.is_none())? {
            return Ok(None);
        }
        if clock().since(self.pulled_at.get()) >= SWEEP_MS {
            self.with(|loaded| loaded.world.stale = true)?;
        }
        self.retry_at.set(None);
        for _ in 0..STEPS_MAX {
            let now = clock();
            self.driving.set(Some(now));
            self.feed(Input::Tick, now)?;
            let step = self.with(|loaded| loaded.brain.next(&loaded.world, now))?;
            if matches!(step, Step::Rest { .. }) {
                self.failures.set(0);
                break;
            }
            if let Err(refusal) = self.step(step, clock).await {
                crate::points::log(&format!("lane: {refusal}"));
                self.back_off(&refusal, clock());
                break;
            }
        }
        if self.publish().await.is_err() {
            self.with(|loaded| loaded.stored.gathers_since = Some(clock().plus(RETRY_MS)))?;
        }
        if let Err(refusal) = self.index_due(clock()).await {
            crate::points::log(&format!("lane: {refusal}"));
        }
        self.settle_logs(clock()).await;
        self.due(clock())
    }

    /// A failed step waits, longer each time; hints and steps that succeed do not shorten it to nothing.
    fn back_off(&self, refusal: &Refusal, now: Millis) {
        let failures = self.failures.get();
        self.failures.set(failures.saturating_add(1));
        let wait = match refusal {
            Refusal::NotFound { .. } => LOST_MS,
            _ => RETRY_MS << failures.min(RETRY_DOUBLINGS_MAX),
        };
        self.retry_at.set(Some(now.plus(wait)));
    }

    async fn step(&self, step: Step, clock: &dyn Fn() -> Millis) -> Result<(), Refusal> {
        match step {
            Step::Rest { .. } => Ok(()),
            Step::Pull => self.pull(clock).await,
            Step::Ask(changes) => self.ask(changes, clock).await,
            Step::Close { change, version, stage, head } => {
                self.close(change, version, stage, head, clock).await
            }
            Step::Assemble { attempt, kind, changes } => self.assemble(attempt, kind, &changes, clock).await,
            Step::Note { attempt, count, runs } => self.note(attempt, count, &runs, clock).await,
            Step::Land { attempt } => self.land(attempt, clock).await,
            Step::Replay(pointers) => self.ask_replays(pointers, clock).await,
        }
    }

    /// Reads the repository's log to its end, then takes the view that came with it.
    async fn pull(&self, clock: &dyn Fn() -> Millis) -> Result<(), Refusal> {
        let source = self.source()?;
        loop {
            let (lane, after) = self.with(|loaded| {
                // A hint that comes while this reads is news again.
                loaded.world.stale = false;
                (loaded.brain.name.clone(), loaded.brain.cursor)
            })?;
            point("lane.pull.before");
            let pulled = self.calls.call(&source, &wire::Pull { lane, after, limit: PULL_LIMIT }).await;
            let pulled = match pulled {
                Ok(pulled) => pulled,
                Err(refusal) => {
                    self.with(|loaded| loaded.world.stale = true)?;
                    return Err(refusal);
                }
            };
            point("lane.pull.after");
            self.take_facts(pulled.facts, pulled.upto, clock())?;
            if pulled.more && pulled.upto > after {
                continue;
            }
            let view = self.view(pulled.view).await;
            return match view {
                Ok(view) => {
                    self.pulled_at.set(clock());
                    self.with(|loaded| loaded.world.view = Some(view))
                }
                Err(refusal) => {
                    self.with(|loaded| loaded.world.stale = true)?;
                    Err(refusal)
                }
            };
        }
    }

    /// Feeds facts in rows that a table takes.
    fn take_facts(&self, facts: Vec<(FactNo, Fact)>, upto: FactNo, now: Millis) -> Result<(), Refusal> {
        let (mut chunk, mut bytes) = (Vec::new(), 0);
        for (no, fact) in facts {
            let size = json_len(&fact).unwrap_or(0);
            if bytes + size > CHUNK_BYTES && !chunk.is_empty() {
                let last = chunk.last().map_or(no, |(no, _): &(FactNo, Fact)| *no);
                self.feed(Input::Pulled { facts: std::mem::take(&mut chunk), upto: last }, now)?;
                bytes = 0;
            }
            bytes += size;
            chunk.push((no, fact));
        }
        if !chunk.is_empty() || self.with(|loaded| loaded.brain.cursor < upto)? {
            self.feed(Input::Pulled { facts: chunk, upto }, now)?;
        }
        Ok(())
    }

    async fn view(&self, seen: wire::View) -> Result<View, Refusal> {
        let head = seen.head.zip(seen.head_tree);
        let mut replay = ReplayPolicy { by_model: false, ..ReplayPolicy::default() };
        let mut tests = Vec::new();
        let (check, train_max) = match head {
            None => (Err("main does not exist yet: push it".to_owned()), 1),
            Some((_, tree)) => {
                let config = self.main_config(tree).await?;
                (replay, tests) = (config.replay, config.tests);
                (config.check, config.train_max)
            }
        };
        Ok(View {
            head,
            epoch: seen.epoch,
            owner_epoch: seen.owner_epoch,
            notes: seen.notes_head.zip(seen.notes_tree),
            frozen: seen.frozen,
            claims: seen
                .claims
                .into_iter()
                .map(|claim| Claim {
                    fork: claim.fork,
                    paths: claim.paths,
                    fence: claim.fence,
                    until: claim.until,
                })
                .collect(),
            tip_tested: seen.tip_tested,
            check,
            train_max,
            replay,
            tests,
        })
    }

    async fn ask(&self, changes: Vec<ChangeId>, clock: &dyn Fn() -> Millis) -> Result<(), Refusal> {
        let limit = u32::try_from(changes.len()).unwrap_or(100);
        let asked = wire::Changes { ids: changes.clone(), before: None, limit };
        let found = self.calls.call(&self.source()?, &asked).await?;
        let rows = changes.into_iter().map(|change| {
            let view = found.iter().find(|view| view.row.change == change);
            let open = view.filter(|view| view.closed.is_none() && (view.landed.is_none() || view.rewritten));
            let row = open.map(|view| KnownRow {
                row: Box::new(view.row.clone()),
                rewritten: view.rewritten,
                held: view.held.clone(),
            });
            (change, row)
        });
        let rows = rows.collect();
        self.feed(Input::Known(rows), clock()).map(|_| ())
    }

    async fn close(
        &self,
        change: ChangeId,
        version: Version,
        stage: yard_common::fact::Terminal,
        head: ObjectId,
        clock: &dyn Fn() -> Millis,
    ) -> Result<(), Refusal> {
        let lane = self.with(|loaded| loaded.brain.name.clone())?;
        let key = IdempotencyKey::new(format!("close-{change}-{version}-{stage:?}-{head}"))?;
        let act = wire::Act::Close { change: change.clone(), version, stage, head };
        let asked = wire::Do { key, act, fork: None, admin: false, by: format!("lane {lane}") };
        point("lane.close.before");
        let answer = self.calls.call(&self.source()?, &asked).await;
        point("lane.close.after");
        match answer {
            Ok(_) => self.with(|loaded| loaded.world.stale = true),
            Err(refusal @ (Refusal::Internal { .. } | Refusal::Overloaded { .. })) => Err(refusal),
            Err(refusal) => self.feed(Input::CloseRefused { change, stage, refusal }, clock()).map(|_| ()),
        }
    }

    /// Builds a candidate, announces it, puts its pack; then its runs may be leased.
    async fn assemble(
        &self,
        attempt: AttemptId,
        kind: AttemptKind,
        changes: &[ChangeId],
        clock: &dyn Fn() -> Millis,
    ) -> Result<(), Refusal> {
        let mut order = self.order(&attempt, &kind, changes, clock())?;
        let lost = self.fill(&mut order).await?;
        self.feed(Input::Begin { attempt: attempt.clone(), kind }, clock())?;
        let built = loop {
            match self.build(&attempt, order.clone()).await {
                // A smaller train needs less at once.
                Err(Refusal::TooLarge { .. }) if order.passengers.len() > 1 => {
                    order.passengers.truncate(order.passengers.len() / 2);
                }
                Err(refusal @ Refusal::TooLarge { .. }) => break Ok(too_large(&order, &refusal)),
                built => break built,
            }
        };
        match built {
            Ok(built) => {
                self.keep(built.objects);
                let (candidate, mut aside) = (built.candidate, built.aside);
                aside.extend(lost);
                let input = Input::Assembled { attempt, candidate, aside };
                self.feed(input, clock()).map(|_| ())
            }
            Err(refusal) => {
                let why = refusal.to_string();
                self.feed(Input::AssemblyFailed { attempt, why }, clock())?;
                Err(refusal)
            }
        }
    }

    fn order(
        &self,
        attempt: &AttemptId,
        kind: &AttemptKind,
        changes: &[ChangeId],
        now: Millis,
    ) -> Result<Order, Refusal> {
        let lost = || Refusal::Internal { during: "choosing the changes of a train".into() };
        let rules = self.config.borrow().as_ref().map(|config| config.rules.clone()).ok_or_else(lost)?;
        self.with(|loaded| {
            let view = loaded.world.view.as_ref()?;
            let passengers: Vec<Passenger> = changes
                .iter()
                .filter_map(|change| loaded.brain.entries.get(change))
                .map(|entry| match kind {
                    AttemptKind::Without { .. } => Passenger {
                        row: Arc::new(own_tests(&entry.row, &view.tests)),
                        waits_for: BTreeSet::new(),
                    },
                    _ => Passenger { row: Arc::from(entry.row.clone()), waits_for: entry.waits_for.clone() },
                })
                .collect();
            let own_base = matches!(kind, AttemptKind::Probe { on_main: false, .. });
            let base = passengers.first().filter(|_| own_base).map(|passenger| passenger.row.base.tree);
            // A probe is about the change itself: what it waits for lies in its base.
            let passengers = passengers.into_iter().map(|mut passenger| {
                if own_base {
                    passenger.waits_for.clear();
                }
                passenger
            });
            Some(Order {
                attempt: attempt.clone(),
                head: view.head?,
                base,
                epoch: view.epoch,
                owner_epoch: view.owner_epoch,
                check: view.check.clone().ok()?,
                rules,
                passengers: passengers.collect(),
                now,
            })
        })?
        .ok_or_else(lost)
    }

    /// Reads the edits that rows have in the bucket; a change whose list is lost does not board.
    async fn fill(&self, order: &mut Order) -> Result<Vec<(ChangeId, Version, Aside)>, Refusal> {
        let (repo, mut lost) = (self.repo()?, Vec::new());
        for passenger in &mut order.passengers {
            let Some(list) = passenger.row.list.clone() else { continue };
            let row = Arc::make_mut(&mut passenger.row);
            let value = self.blobs.get(&names::edit_list(&repo, &list)).await?;
            match list.read(value.as_deref()) {
                Ok(edits) => row.edits = edits,
                Err(refusal) => {
                    let why = Aside::Broken { why: refusal.to_string() };
                    lost.push((row.change.clone(), row.version, why));
                }
            }
        }
        order.passengers.retain(|passenger| lost.iter().all(|(change, ..)| *change != passenger.row.change));
        Ok(lost)
    }

    async fn build(&self, attempt: &AttemptId, order: Order) -> Result<Built, Refusal> {
        let mut needed = Needed::default();
        let mut assembly = Assembly::new(order);
        self.contents(assembly.contents(), &mut needed).await?;
        loop {
            match self.until(&mut needed, |objects| assembly.run(objects)).await {
                Ok(()) => break,
                Err(Lost::Fault(refusal)) => return Err(refusal),
                Err(Lost::Nowhere(ids)) if assembly.give_up(&ids) => {}
                Err(Lost::Nowhere(_)) => return Err(Refusal::Internal { during: "reading main".into() }),
            }
        }
        drop(needed);
        let name = format!("{}-{}-{}", attempt.lane, attempt.train, attempt.attempt);
        let key = PackKey::new(names::candidate_pack(&self.repo()?, &name))?;
        let failed = |why| {
            crate::points::log(&format!("candidate {attempt}: {why}"));
            Refusal::Internal { during: "writing a candidate".into() }
        };
        let mut built = assembly.finish(key).map_err(failed)?;
        for (list, value) in std::mem::take(&mut built.lists) {
            self.blobs.put(&names::edit_list(&self.repo()?, &list), value).await?;
        }
        if let (Some(candidate), Some(pack)) = (&built.candidate, built.pack.take()) {
            let pack_ref = candidate.pack.clone();
            let commits = built.commits.iter().map(|commit| wire::CommitInfo {
                id: commit.id,
                tree: commit.tree,
                parents: vec![commit.parent],
                seconds: commit.seconds,
            });
            let (commits, tip) = (commits.collect(), candidate.tip().0);
            let index = self.index(&pack_ref.key, &pack).await?;
            let asked = wire::StageCandidate {
                attempt: attempt.clone(),
                pack: wire::IndexedPack { pack: pack_ref.clone(), index },
                tip,
                commits,
                changes: candidate.versions(),
                for_ms: candidate.life_ms(),
            };
            point("lane.stage.before");
            self.calls.call(&self.source()?, &asked).await?;
            point("lane.stage.after");
            self.blobs.put(pack_ref.key.as_str(), pack.rest).await?;
            point("lane.candidate.put");
        }
        Ok(built)
    }

    /// The index where it is small; else it is put beside the pack.
    async fn index(&self, key: &PackKey, pack: &FinishedPack) -> Result<Option<Base64>, Refusal> {
        if pack.index.len() <= INLINE_INDEX_BYTES_MAX {
            return Ok(Some(Base64(pack.index.clone())));
        }
        self.blobs.put(&format!("{key}.idx"), pack.index.clone()).await?;
        Ok(None)
    }

    /// Writes the notes of what lands, puts their pack, and keeps what the kernel will be asked.
    async fn note(
        &self,
        attempt: AttemptId,
        count: usize,
        runs: &[SignedRun],
        clock: &dyn Fn() -> Millis,
    ) -> Result<(), Refusal> {
        let stale = || Refusal::Stale { what: format!("attempt {attempt}") };
        let (members, rows, proofs, notes_before) = self
            .with(|loaded| {
                let open = loaded.brain.attempts.get(&attempt.train)?;
                let members: Vec<_> = open.candidate.as_ref()?.members.iter().take(count).cloned().collect();
                let rows = members.iter().map(|member| {
                    let entry = loaded.brain.entries.get(&member.change)?;
                    (entry.row.version == member.version).then(|| entry.row.clone())
                });
                let rows = rows.collect::<Option<Vec<_>>>()?;
                let proofs = members.iter().filter_map(|member| {
                    let without = loaded.brain.entries.get(&member.change)?.without.as_ref()?;
                    Some((member.change.clone(), without.sentence()))
                });
                let proofs: BTreeMap<ChangeId, String> = proofs.collect();
                Some((members, rows, proofs, loaded.world.view.as_ref()?.notes))
            })?
            .ok_or_else(stale)?;
        let name = format!("{}-{}-{}", attempt.lane, attempt.train, attempt.attempt);
        let key = PackKey::new(names::notes_pack(&self.repo()?, &name))?;
        let order = note::Order {
            attempt: attempt.clone(),
            notes: notes_before,
            landing: members.iter().zip(rows.iter().map(|row| &**row)).collect(),
            runs,
            proofs,
            now: clock(),
        };
        let notes = self.written(&order, &key).await?;
        let index = self.index(&notes.pack.key, &notes.finished).await?.unwrap_or_default();
        self.blobs.put(notes.pack.key.as_str(), notes.finished.rest).await?;
        point("lane.notes.put");
        self.keep(notes.objects);
        let input = Input::Noted {
            attempt,
            count,
            notes_head: notes_before.map(|(commit, _)| commit),
            commit: notes.commit,
            seconds: notes.seconds,
            pack: notes.pack,
            index,
        };
        match self.feed(input, clock()) {
            // It was cut while the notes were written: the next step writes others.
            Err(Refusal::Stale { .. }) => Ok(()),
            other => other.map(|_| ()),
        }
    }

    /// The notes of an order, with the trees they stand on loaded for them.
    async fn written(&self, order: &note::Order<'_>, key: &PackKey) -> Result<note::Notes, Refusal> {
        let mut needed = Needed::default();
        let odd = std::cell::RefCell::new(None);
        let written = self
            .until(&mut needed, |objects| match note::write(objects, order, key.clone()) {
                Ok(notes) => Ok(Some(notes)),
                Err(NotesError::Read(error)) => Err(error),
                Err(NotesError::Odd(why)) => {
                    *odd.borrow_mut() = Some(why);
                    Ok(None)
                }
            })
            .await;
        match written {
            Ok(Some(notes)) => Ok(notes),
            Ok(None) => {
                let why = odd.borrow_mut().take().unwrap_or_default();
                crate::points::log(&format!("notes of {}: {why}", order.attempt));
                Err(Refusal::Internal { during: "writing notes".into() })
            }
            Err(Lost::Fault(refusal)) => Err(refusal),
            Err(Lost::Nowhere(_)) => Err(Refusal::Internal { during: "reading notes".into() }),
        }
    }

    async fn land(&self, attempt: AttemptId, clock: &dyn Fn() -> Millis) -> Result<(), Refusal> {
        let stale = || Refusal::Stale { what: format!("attempt {attempt}") };
        let asked = self
            .with(|loaded| {
                let (request, landing) = loaded.brain.land_request(&attempt)?;
                let index = (!landing.index.0.is_empty()).then(|| landing.index.clone());
                let notes_commit = wire::CommitInfo {
                    id: landing.commit.id,
                    tree: landing.commit.tree,
                    parents: landing.commit.parents.clone(),
                    seconds: landing.seconds,
                };
                let notes = wire::IndexedPack { pack: landing.pack.clone(), index };
                Some(wire::Land { request, notes, notes_commit })
            })?
            .ok_or_else(stale)?;
        point("lane.land.before");
        let answer = self.calls.call(&self.source()?, &asked).await;
        point("lane.land.after");
        let answer = match answer {
            Ok(Ok(landed)) => Ok((landed.head, landed.fact)),
            Ok(Err(refusal)) => Err(refusal),
            // It may have landed: the same request is sent again and gets the stored answer.
            Err(refusal @ (Refusal::Internal { .. } | Refusal::Overloaded { .. } | Refusal::Raced)) => {
                self.with(|loaded| loaded.world.stale = true)?;
                return Err(refusal);
            }
            Err(refusal) => Err(refusal),
        };
        self.feed(Input::LandAnswered { attempt, answer }, clock()).map(|_| ())
    }

    /// Events go to the board, in the order of their rows.
    async fn publish(&self) -> Result<(), Refusal> {
        loop {
            let Some(repo) = self.with(|loaded| loaded.repo.clone())? else { return Ok(()) };
            let published = self.with(|loaded| loaded.stored.published)?;
            let (events, upto) = store::unsent(&self.sql, published)?;
            if events.is_empty() {
                return self.with(|loaded| loaded.stored.gathers_since = None);
            }
            point("lane.board.before");
            self.calls.call(&names::board(&repo), &Publish { events }).await?;
            point("lane.board.after");
            self.with(|loaded| store::sent(&self.sql, loaded, upto))??;
        }
    }
}

/// A change that needs more at once than there is room for does not board.
fn too_large(order: &Order, refusal: &Refusal) -> Built {
    let aside = order.passengers.iter().map(|passenger| {
        let row = &passenger.row;
        (row.change.clone(), row.version, Aside::Broken { why: refusal.to_string() })
    });
    Built {
        candidate: None,
        pack: None,
        commits: Vec::new(),
        aside: aside.collect(),
        lists: Vec::new(),
        objects: Vec::new(),
    }
}
