//! Facts of every kind from a seed, each optional field sometimes there and sometimes not.

use yard_common::edit_list::EditList;
use yard_common::fact::{Standing, Terminal, Turns, Untested};
use yard_common::intent::{Intent, Signature};
use yard_common::landing::{AttemptId, Edit, How, LandChange, LandRequest, PackRef, RunResult, SignedRun};
use yard_common::policy::{Commutative, Isolation, Policy};
use yard_common::replay::{Cause, Cost, Origin};
use yard_common::submission::{Base, CommitNode, Entry, Mode, RowEdit, Submission, Via};
use yard_common::{
    AttemptNo, ChangeId, Epoch, Fact, Fence, ForkName, IdempotencyKey, LaneName, LeaseNo, Millis, ObjectId,
    OwnerEpoch, PackKey, RefName, Refusal, ReplayNo, RepoPath, RuleName, RunId, Seq, SuiteId, TokenClaims,
    TrainNo, Version,
};

/// How many kinds of fact there are.
pub const KINDS: u64 = 15;

/// A splitmix64 generator (Steele, Lea, Flood 2014).
pub struct Facts(pub u64);

impl Facts {
    fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.number() % end
    }

    fn coin(&mut self) -> bool {
        self.below(2) == 0
    }

    fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.coin().then(|| make(self))
    }

    fn some<T>(&mut self, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(3)).map(|_| make(self)).collect()
    }

    fn text(&mut self) -> String {
        const PIECES: [&str; 9] = [
            "",
            "fact",
            "\"",
            "\\",
            "\n\u{1}",
            "\u{fc}\u{1f600}",
            "{\"fact\":\"landed\"}",
            "null",
            "\u{2028}",
        ];
        (0..self.below(4)).map(|_| PIECES[usize::try_from(self.below(9)).unwrap()]).collect()
    }

    fn id(&mut self) -> ObjectId {
        let mut bytes = [0; 20];
        bytes.iter_mut().for_each(|byte| *byte = self.number() as u8);
        ObjectId(bytes)
    }

    fn millis(&mut self) -> Millis {
        Millis(self.number() >> 11)
    }

    fn change(&mut self) -> ChangeId {
        ChangeId::new(format!("change-{}", self.number())).unwrap()
    }

    fn lane(&mut self) -> LaneName {
        LaneName::new(format!("lane-{}", self.below(9))).unwrap()
    }

    fn fork(&mut self) -> Option<ForkName> {
        self.maybe(|g| ForkName::new(format!("fork.{}", g.below(9))).unwrap())
    }

    fn run(&mut self) -> RunId {
        RunId::new(format!("run\"{}\\", self.number())).unwrap()
    }

    fn path(&mut self) -> RepoPath {
        let end: &[u8] = [b"plain".as_slice(), b"\xff\xfe", "\u{fc}\"".as_bytes(), b"a\\b\n"]
            [usize::try_from(self.below(4)).unwrap()];
        RepoPath::new([format!("d{}/", self.number()).as_bytes(), end].concat()).unwrap()
    }

    fn entry(&mut self) -> Option<Entry> {
        let modes = [Mode::File, Mode::Executable, Mode::Symlink, Mode::Gitlink];
        self.maybe(|g| Entry { mode: modes[usize::try_from(g.below(4)).unwrap()], id: g.id() })
    }

    fn list(&mut self) -> Option<EditList> {
        self.maybe(|g| EditList { sha256: g.text(), bytes: g.number(), count: g.number() })
    }

    fn intent(&mut self) -> Intent {
        Intent {
            title: self.text(),
            body: self.text(),
            task: self.text(),
            plan: self.text(),
            review: self.text(),
            tests: self.text(),
            agent: self.text(),
            model: self.text(),
            notes: self.some(Self::text),
            co_authors: self.some(Self::text),
        }
    }

    fn origin(&mut self) -> Box<Origin> {
        let cause = if self.coin() {
            Cause::Collision { paths: self.some(|g| (g.path(), g.text())) }
        } else {
            Cause::Interaction {
                with: self.some(Self::change),
                runs: self.some(Self::run),
                detail: self.text(),
            }
        };
        Box::new(Origin {
            lane: self.lane(),
            no: ReplayNo(self.number()),
            of: Version(self.number()),
            reviewed: Version(self.number()),
            cause,
            rivals: self.some(Self::change),
            renames: self.some(|g| (g.path(), g.path())),
            cost: Cost {
                model: self.text(),
                tokens_in: self.number(),
                tokens_out: self.number(),
                micro_usd: self.number(),
                calls: self.number() as u32,
            },
            prompt: self.text(),
            compared: self.text(),
            range_diff: self.text(),
            differing_lines: self.number() as u32,
        })
    }

    fn row(&mut self) -> Submission {
        Submission {
            seq: Seq(self.number()),
            change: self.change(),
            version: Version(self.number()),
            fork: self.fork(),
            author: Signature {
                name: self.text(),
                email: self.text(),
                seconds: self.number(),
                offset_minutes: self.number() as i16,
            },
            head: self.id(),
            head_tree: self.id(),
            commits: self.some(Self::id),
            base: Base { commits: self.some(Self::id), tree: self.id() },
            edits: self.some(|g| RowEdit { path: g.path(), base: g.entry(), theirs: g.entry() }),
            list: self.list(),
            fences: self.some(|g| (g.path(), Fence(g.number()))).into_iter().collect(),
            reverts: self.some(Self::change),
            lane: self.lane(),
            owner_epoch: OwnerEpoch(self.number()),
            waits_for: self.some(Self::change),
            key: IdempotencyKey::new(format!("key\"{}", self.number())).unwrap(),
            at: self.millis(),
            via: [Via::Git, Via::Api, Via::Replay][usize::try_from(self.below(3)).unwrap()],
            intent: self.intent(),
            warnings: self.some(Self::text),
            content: self.text(),
            replay: self.maybe(Self::origin),
        }
    }

    fn attempt(&mut self) -> AttemptId {
        AttemptId { lane: self.lane(), train: TrainNo(self.number()), attempt: AttemptNo(self.number()) }
    }

    fn pack(&mut self) -> PackRef {
        let key = PackKey::new(format!("packs/{}", self.number())).unwrap();
        PackRef { key, bytes: self.number(), objects: self.number() as u32 }
    }

    fn listed(&mut self) -> LandChange {
        let edit = |g: &mut Self| Edit {
            path: g.path(),
            from: g.maybe(Self::path),
            base: g.entry(),
            ours: g.entry(),
            theirs: g.entry(),
            result: g.entry(),
            how: [How::Theirs, How::Same, How::Merge, How::Rule(RuleName::new("union").unwrap())]
                [usize::try_from(g.below(4)).unwrap()]
            .clone(),
        };
        LandChange {
            change: self.change(),
            version: Version(self.number()),
            commit: self.id(),
            edits: self.some(edit),
            list: self.list(),
        }
    }

    fn signed_run(&mut self) -> SignedRun {
        SignedRun {
            run: self.run(),
            lease: LeaseNo(self.number()),
            tree: self.id(),
            suite: SuiteId::new("suite").unwrap(),
            command: self.text(),
            config: self.maybe(Self::id),
            result: RunResult {
                complete: self.coin(),
                green: self.coin(),
                ran: self.number() as u32,
                failed: self.some(Self::text),
                skipped: self.number() as u32,
            },
            token: TokenClaims::new("claims").unwrap(),
            mac: self.text(),
        }
    }

    fn request(&mut self) -> LandRequest {
        LandRequest {
            key: self.attempt(),
            epoch: Epoch(self.number()),
            owner_epoch: OwnerEpoch(self.number()),
            head: self.id(),
            tested_head: self.id(),
            tip: self.id(),
            notes_head: self.maybe(Self::id),
            notes_tip: self.id(),
            candidate: self.pack(),
            notes: self.pack(),
            changes: self.some(Self::listed),
            runs: self.some(Self::signed_run),
        }
    }

    fn turns(&mut self) -> Turns {
        Turns { queue: self.some(Self::lane), until: self.millis(), span: self.number() }
    }

    fn policy(&mut self) -> Box<Policy> {
        let isolation = if self.coin() { Isolation::Strict } else { Isolation::Paths };
        let rule = |g: &mut Self| Commutative { paths: g.text(), rule: RuleName::new("union").unwrap() };
        Box::new(Policy {
            config: self.maybe(Self::id),
            command: self.text(),
            isolation,
            commutative: self.some(rule),
            review_lines: self.maybe(|g| g.number() as u32),
        })
    }

    /// One of the two kinds that are read straight.
    fn heavy(&mut self, kind: u64) -> Fact {
        let node = |g: &mut Self| CommitNode { id: g.id(), parents: g.some(Self::id), tree: g.id() };
        if kind == 0 {
            return Fact::Submitted { row: Box::new(self.row()), nodes: self.some(node) };
        }
        let untested = [Untested::Paths, Untested::Operations, Untested::DirectPush];
        Fact::Landed {
            request: Box::new(self.request()),
            untested: self.maybe(|g| untested[usize::try_from(g.below(3)).unwrap()].clone()),
            trees: self.some(Self::id),
            policy: self.maybe(Self::policy),
            turns: self.turns(),
            at: self.millis(),
        }
    }

    fn light(&mut self, kind: u64) -> Fact {
        let refusal = Refusal::Invalid { why: self.text() };
        match kind {
            2 => {
                let key = IdempotencyKey::new("key").unwrap();
                Fact::SubmissionRefused { key, content: self.text(), refusal }
            }
            3 => {
                let (key, turn_until) = (self.attempt(), self.maybe(Self::millis));
                Fact::LandingRefused { key, refusal, turn_until, turns: self.turns() }
            }
            4 => Fact::DirectPush {
                old: self.maybe(Self::id),
                new: self.id(),
                epoch: Epoch(self.number()),
                reason: self.text(),
                rewritten: self.some(Self::change),
                restored: self.some(Self::change),
                standing: self.some(|g| Standing {
                    change: g.change(),
                    version: Version(g.number()),
                    commit: g.id(),
                }),
                policy: self.maybe(Self::policy),
                at: self.millis(),
            },
            5 => {
                let name = RefName::new("refs/heads/a").unwrap();
                Fact::RefMoved { name, old: self.maybe(Self::id), new: self.maybe(Self::id) }
            }
            6 => Fact::Closed {
                change: self.change(),
                version: Version(self.number()),
                stage: Terminal::AlreadyOnMain,
                by: self.text(),
                reason: self.text(),
                at: self.millis(),
            },
            7 => Fact::HoldSet { change: self.change(), reason: self.maybe(Self::text), by: self.text() },
            _ => self.small(kind),
        }
    }

    fn small(&mut self, kind: u64) -> Fact {
        match kind {
            8 => Fact::Requeued { change: self.change(), by: self.text() },
            9 => Fact::Approved { change: self.change(), version: Version(self.number()), by: self.text() },
            10 => Fact::FreezeSet { reason: self.maybe(Self::text) },
            11 => Fact::Claimed {
                fork: self.fork(),
                paths: self.some(Self::path),
                task: self.maybe(Self::text),
                fence: Fence(self.number()),
                until: self.millis(),
            },
            12 => Fact::ClaimReleased { fence: Fence(self.number()) },
            13 => Fact::OwnerSet {
                change: self.change(),
                lane: self.lane(),
                owner_epoch: OwnerEpoch(self.number()),
            },
            _ => Fact::ProtectedSet { protected: self.coin() },
        }
    }

    /// A fact of the kind with this number.
    pub fn fact(&mut self, kind: u64) -> Fact {
        if kind < 2 { self.heavy(kind) } else { self.light(kind) }
    }
}
