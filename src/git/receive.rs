//! Pushes.

use std::cell::Cell;
use std::collections::BTreeSet;

use yard_common::{IdempotencyKey, LaneName, ObjectId, Refusal};
use yard_git::{Kind, Tag};
use yard_objects::Calls as _;
use yard_transfer::RefView;
use yard_transfer::advertise::Service;
use yard_transfer::plan::CommitGraph as _;
use yard_transfer::receive::{self, Capabilities, Command, Parsed, Parser, Place, RefStatus, Report};
use yard_wire::names::{self, Remote};
use yard_wire::problem;
use yard_wire::repository::{Push, RefCommand};

use super::intake::{self, Intake};
use super::{Body, content, drain, may_push, refs, remote, submit, view};
use crate::api::{Call, Event, Platform};
use crate::hand::Source as _;
use crate::respond::{self, Answer};
use crate::store::{Ancestry, Store};
use crate::submit::offer;

/// Tags that may stand for each other before the object itself.
const TAGS_DEPTH_MAX: usize = 16;
/// How often a push whose answer was lost is asked again.
const TRIES: usize = 3;

/// `POST /git-receive-pack`
pub async fn receive<P: Platform>(event: &Event<P>, call: &Call<'_>, mut body: impl Body) -> Answer {
    let mut parser = Parser::default();
    let parsed = match read(&mut parser, &mut body).await {
        Ok(parsed) => parsed,
        Err(refusal) => {
            drain(&mut body).await;
            return answer(parser.refusal(&refusal));
        }
    };
    let Parsed::Ready { push, pack } = parsed else { return answer(Vec::new()) };
    let capabilities = push.capabilities.clone();
    let served = serve(event, call, &push, pack, &mut body).await;
    drain(&mut body).await;
    match served {
        Ok(report) => answer(report.body(&capabilities)),
        // What is wrong with the bearer is HTTP's business: git then asks for other credentials.
        Err(
            refusal
            @ (Refusal::Unauthenticated { .. } | Refusal::Forbidden { .. } | Refusal::NotFound { .. }),
        ) => respond::refused_git(&refusal),
        Err(refusal) => answer(Report::unpack_failed(&push, &refusal.to_string()).body(&capabilities)),
    }
}

fn answer(body: Vec<u8>) -> Answer {
    Answer::new(200, Service::ReceivePack.result_type(), body)
}

async fn read(parser: &mut Parser, body: &mut impl Body) -> Result<Parsed, Refusal> {
    while let Some(chunk) = body.next().await? {
        match parser.push(&chunk)? {
            Parsed::More => {}
            parsed => return Ok(parsed),
        }
    }
    parser.end()
}

/// One push while it is served.
pub(super) struct Session<'a, P: Platform> {
    pub event: &'a Event<P>,
    pub call: &'a Call<'a>,
    pub remote: Remote,
    /// The name of the push: its pack's key and its idempotency key.
    pub id: String,
    pub options: &'a [String],
    /// The Repository was asked to catalogue the pack: from then on only its sweep may delete it.
    asked: Cell<bool>,
}

async fn serve<P: Platform>(
    event: &Event<P>,
    call: &Call<'_>,
    push: &receive::Push,
    pack: Vec<u8>,
    body: &mut impl Body,
) -> Result<Report, Refusal> {
    let remote = remote(call)?;
    may_push(call, &remote)?;
    let place = if remote.fork.is_some() { Place::Fork } else { Place::Repository };
    let refs = view(refs(event, call, &remote, true).await?, Vec::new());
    let mut statuses = receive::check(push, &refs, place);
    if !receive::make_atomic(push.capabilities.atomic, &mut statuses) {
        return Ok(Report { unpack_fault: None, statuses, messages: Vec::new() });
    }
    let id = format!("{:013}-{:016x}", event.now.0, event.platform.random());
    let session = Session { event, call, remote, id, options: &push.options, asked: Cell::new(false) };
    let store = Store::of(event, &session.remote).await?;
    let intake = match push.has_pack() {
        true => Some(intake::take(event, &session.remote, &store, &session.id, pack, body).await?),
        false => None,
    };
    let done = session.apply(push, &refs, statuses, store, intake.as_ref()).await;
    if let (Err(_), Some(pack), false) = (&done, intake.and_then(|intake| intake.pack), session.asked.get()) {
        intake::discard(event, &[pack.pack.key]).await;
    }
    done
}

impl<P: Platform> Session<'_, P> {
    async fn apply(
        &self,
        push: &receive::Push,
        refs: &RefView,
        mut statuses: Vec<RefStatus>,
        store: Store<P::Blobs>,
        intake: Option<&Intake>,
    ) -> Result<Report, Refusal> {
        let packs = store.view().await?;
        if let Some(missing) =
            intake.and_then(|intake| intake::first_missing(&intake.received, |id| packs.contains(id)))
        {
            let why = format!("missing necessary objects: {missing} is not here: fetch, then push again");
            return Err(Refusal::Invalid { why });
        }
        let mut messages = Vec::new();
        if let Some(pack) = intake.and_then(|intake| intake.pack.as_ref()) {
            messages.push(format!("Checked {} objects, {} bytes", pack.pack.objects, pack.pack.bytes));
        }
        let graph = Ancestry::of(self.event, &self.remote).await?;
        if let Some(intake) = intake {
            messages.extend_from_slice(&intake.warnings);
            content::kinds(&intake.received, &store, &graph).await?;
        }
        let mut commands = Vec::new();
        for (command, status) in push.commands.iter().zip(&mut statuses) {
            if status.fault.is_some() {
                continue;
            }
            let there =
                |id: &ObjectId| intake.is_some_and(|intake| intake.kind(id).is_some()) || packs.contains(id);
            match self.command(command, &store, &graph, intake, &there).await? {
                Ok(command) => commands.push(command),
                Err(fault) => status.fault = Some(fault),
            }
        }
        let any = receive::make_atomic(push.capabilities.atomic, &mut statuses);
        if !any {
            if let Some(pack) = intake.and_then(|intake| intake.pack.as_ref()) {
                intake::discard(self.event, std::slice::from_ref(&pack.pack.key)).await;
            }
            return Ok(Report { unpack_fault: None, statuses, messages });
        }
        let submits = commands.first().is_some_and(|command| command.name.as_str().starts_with("refs/for/"));
        if !submits {
            self.push(push.capabilities.clone(), commands, intake, &mut statuses).await?;
            return Ok(Report { unpack_fault: None, statuses, messages });
        }
        let command = commands.remove(0);
        let outcome = self.submit(refs, &command, intake, graph).await;
        if let Some(status) = statuses.first_mut() {
            status.fault = outcome.as_ref().err().map(|refusal| problem::class(refusal).1.to_owned());
        }
        messages.extend(outcome.unwrap_or_else(|refusal| vec![format!("Not accepted: {refusal}")]));
        Ok(Report { unpack_fault: None, statuses, messages })
    }

    /// What a command's new object is; `Err` is the fault of that ref alone.
    async fn command(
        &self,
        command: &Command,
        store: &Store<P::Blobs>,
        graph: &Ancestry,
        intake: Option<&Intake>,
        there: &impl Fn(&ObjectId) -> bool,
    ) -> Result<Result<RefCommand, String>, Refusal> {
        let Some(name) = command.name.clone() else { return Ok(Err("funny refname".into())) };
        let present = |id: ObjectId| (!id.is_zero()).then_some(id);
        let mut made = RefCommand {
            name,
            old: present(command.old),
            new: present(command.new),
            peeled: None,
            is_commit: false,
        };
        let Some(new) = made.new else { return Ok(Ok(made)) };
        if !there(&new) {
            return Ok(Err(format!("{new} was neither pushed nor is it here: fetch, then push again")));
        }
        let kind = self.kind(new, store, graph, intake).await?;
        if let Some(fault) = receive::kind_fault(&command.sent_name, kind) {
            return Ok(Err(fault));
        }
        made.is_commit = kind == Kind::Commit;
        if kind == Kind::Tag {
            made.peeled = self.peel(new, store, intake).await?;
        }
        Ok(Ok(made))
    }

    async fn kind(
        &self,
        id: ObjectId,
        store: &Store<P::Blobs>,
        graph: &Ancestry,
        intake: Option<&Intake>,
    ) -> Result<Kind, Refusal> {
        if let Some(kind) = intake.and_then(|intake| intake.kind(&id)) {
            return Ok(kind);
        }
        if graph.commit(&id).is_some() {
            return Ok(Kind::Commit);
        }
        let found = store.read(&BTreeSet::from([id])).await?;
        let object = found.into_iter().next().map(|(_, object)| object.kind);
        object.ok_or_else(|| Refusal::Internal { during: format!("reading object {id}") })
    }

    /// What a tag finally names.
    async fn peel(
        &self,
        tag: ObjectId,
        store: &Store<P::Blobs>,
        intake: Option<&Intake>,
    ) -> Result<Option<ObjectId>, Refusal> {
        let mut at = tag;
        for _ in 0..TAGS_DEPTH_MAX {
            let pushed = intake.and_then(|intake| intake.received.tags.iter().find(|(id, ..)| *id == at));
            let (target, kind) = match pushed {
                Some((_, target, kind)) => (*target, *kind),
                None => {
                    let found = store.read(&BTreeSet::from([at])).await?;
                    let object = found.into_iter().next().map(|(_, object)| object);
                    let Some(tag) = object.and_then(|object| Tag::parse(&object.data).ok()) else {
                        return Ok(None);
                    };
                    (tag.target, tag.kind)
                }
            };
            if kind != Kind::Tag {
                return Ok(Some(target));
            }
            at = target;
        }
        Ok(None)
    }

    /// Catalogues the pack and moves the refs, in one decision of the Repository.
    async fn push(
        &self,
        capabilities: Capabilities,
        commands: Vec<RefCommand>,
        intake: Option<&Intake>,
        statuses: &mut [RefStatus],
    ) -> Result<(), Refusal> {
        let bearer = self.call.bearer()?;
        let push = Push {
            key: IdempotencyKey::new(format!("push-{}", self.id))?,
            pack: intake.and_then(|intake| intake.pack.clone()),
            commits: intake.map(Intake::commits).unwrap_or_default(),
            commands,
            atomic: capabilities.atomic,
            admin: bearer.is_admin(&self.remote.repo),
            reason: offer::reason(self.options),
            token: Some(bearer.id().clone()),
        };
        self.asked.set(true);
        let object = names::repository(&self.remote);
        let mut tries = 0;
        let reply = loop {
            tries += 1;
            match self.event.calls().call(&object, &push).await {
                Err(Refusal::Internal { .. } | Refusal::Overloaded { .. }) if tries < TRIES => {}
                other => break other?,
            }
        };
        let open = statuses.iter_mut().filter(|status| status.fault.is_none());
        for (status, result) in open.zip(reply.results) {
            if result.is_none() && self.remote.fork.is_none() {
                // Main or its configuration may have moved: the lane looks at once.
                self.event.hint(&self.remote.repo, LaneName::new(names::DEFAULT_LANE)?);
            }
            status.fault = result.map(|refusal| match refusal {
                Refusal::RefRejected { why, .. } => why,
                refusal => refusal.to_string(),
            });
        }
        Ok(())
    }

    /// Catalogues the pack alone, then submits the head.
    async fn submit(
        &self,
        refs: &RefView,
        command: &RefCommand,
        intake: Option<&Intake>,
        graph: Ancestry,
    ) -> Result<Vec<String>, Refusal> {
        let branch = command.name.as_str().strip_prefix("refs/for/").unwrap_or_default();
        let main = refs.head().as_str().strip_prefix("refs/heads/").unwrap_or_default();
        if branch != main {
            return Err(Refusal::Invalid {
                why: format!("changes are taken for {main} only: push to refs/for/{main}"),
            });
        }
        let head = command.new.ok_or(Refusal::NoEdits)?;
        if intake.is_some_and(|intake| intake.pack.is_some()) {
            self.push(Capabilities::default(), Vec::new(), intake, &mut []).await?;
        }
        drop(graph);
        submit::submit(self, head, refs).await
    }
}
