//! A host: reads requests, drives the machines, fetches what they ask for, writes what they return.

use std::collections::BTreeSet;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use yard_common::{ObjectId, Refusal};
use yard_git::pack::PackWriter;
use yard_transfer::advertise::{Protocol, Service, info_refs};
use yard_transfer::pktline::{Band, Framing, error_body};
use yard_transfer::plan::{Connectivity, Step};
use yard_transfer::receive::{Parsed, Parser, Place, Push, Report, check, kind_fault, make_atomic};
use yard_transfer::upload::{Command, Upload, UploadPack, UploadStep, WantPolicy, parse};

use crate::http::{self, Request};
use crate::shell::git_with;
use crate::store::Store;

/// What the tests want to know of a served request.
#[derive(Debug, Default, Clone)]
pub struct Seen {
    pub gzip: bool,
    pub chunked: bool,
    pub probes: usize,
    pub fetches: usize,
    pub packed: Vec<usize>,
    pub protocols: BTreeSet<Protocol>,
    pub options: Vec<String>,
    pub pushed: usize,
}

pub struct State {
    pub store: Store,
    pub seen: Seen,
    pub policy: WantPolicy,
    pub place: Place,
    /// Packs are made by `git pack-objects`: faster for large histories.
    pub packs_by_git: bool,
    /// Tips of the parent of a fork.
    pub haves: Vec<ObjectId>,
}

pub struct Server {
    pub url: String,
    state: Arc<Mutex<State>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    address: std::net::SocketAddr,
}

impl Server {
    pub fn start(dir: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = State {
            store: Store::open(dir),
            seen: Seen::default(),
            policy: WantPolicy::Existing,
            place: Place::Repository,
            packs_by_git: false,
            haves: Vec::new(),
        };
        let state = Arc::new(Mutex::new(state));
        let stop = Arc::new(AtomicBool::new(false));
        let (thread_state, thread_stop) = (Arc::clone(&state), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if thread_stop.load(Ordering::SeqCst) {
                    return;
                }
                let mut state = thread_state.lock().unwrap_or_else(PoisonError::into_inner);
                serve(&mut state, &stream);
            }
        });
        Self { url: format!("http://{address}/r.git"), state, stop, thread: Some(thread), address }
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) && !std::thread::panicking() {
            panic!("the server failed");
        }
    }
}

fn serve(state: &mut State, stream: &TcpStream) {
    let Some(request) = http::read(stream) else { return };
    let protocol = Protocol::from_header(request.protocol.as_deref());
    state.seen.gzip |= request.was_gzip;
    state.seen.chunked |= request.was_chunked;
    match (request.method.as_str(), request.path.as_str()) {
        ("GET", "/r.git/info/refs") => {
            let service = request.query.strip_prefix("service=").and_then(Service::from_name).unwrap();
            let body = info_refs(service, protocol, &state.store.refs(), &state.haves);
            http::write(stream, "200 OK", service.advertisement_type(), &body);
        }
        ("POST", "/r.git/git-upload-pack") => {
            state.seen.protocols.insert(protocol);
            let body =
                upload(state, protocol, &request.body).unwrap_or_else(|why| error_body(&why.to_string()));
            http::write(stream, "200 OK", Service::UploadPack.result_type(), &body);
        }
        ("POST", "/r.git/git-receive-pack") => {
            let body = receive(state, &request);
            http::write(stream, "200 OK", Service::ReceivePack.result_type(), &body);
        }
        _ => http::write(stream, "404 Not Found", "text/plain", b"no"),
    }
}

fn upload(state: &mut State, protocol: Protocol, body: &[u8]) -> Result<Vec<u8>, Refusal> {
    let refs = state.store.refs();
    let request = match parse(protocol, body)? {
        Command::Empty => return Ok(Vec::new()),
        Command::LsRefs(list) => return Ok(list.answer(&refs)),
        Command::Fetch(request) => *request,
    };
    state.seen.fetches += 1;
    let store = &mut state.store;
    let mut upload = Upload::new(request, &refs, state.policy, &|id| store.kind(id).is_some())?;
    let end = store.drive(|world| {
        upload.step(world).map(|step| match step {
            UploadStep::Need(ids) => Step::Need(ids),
            UploadStep::Answer(answer) => Step::Done(Err(answer)),
            UploadStep::Pack(pack) => Step::Done(Ok(pack)),
        })
    })?;
    Ok(match end {
        Err(answer) => answer,
        Ok(pack) => send(state, *pack),
    })
}

fn send(state: &mut State, pack: UploadPack) -> Vec<u8> {
    state.seen.packed.push(pack.plan.objects.len());
    let mut out = pack.head;
    if pack.progress {
        pack.framing.progress(&mut out, &format!("Sending {} objects", pack.plan.objects.len()));
    }
    if state.packs_by_git {
        let bytes = state.store.pack(&pack.plan.objects, pack.ofs_delta);
        bytes.chunks(100_000).for_each(|chunk| pack.framing.write(&mut out, Band::Data, chunk));
    } else {
        stream(&mut out, &pack.plan.objects, &state.store, pack.framing);
    }
    pack.framing.end(&mut out);
    out
}

/// Writes the pack in pieces, as a host does that reads some objects at a time.
fn stream(out: &mut Vec<u8>, ids: &[ObjectId], store: &Store, framing: Framing) {
    let mut writer = PackWriter::streaming(u32::try_from(ids.len()).unwrap());
    for some in ids.chunks(50) {
        for (id, object) in store.read(some) {
            assert!(writer.add(id, object.kind, &object.data), "{id} is planned twice");
        }
        framing.write(out, Band::Data, &writer.take());
    }
    framing.write(out, Band::Data, &writer.finish().unwrap().rest);
}

fn receive(state: &mut State, request: &Request) -> Vec<u8> {
    let mut parser = Parser::default();
    for (at, chunk) in request.body.chunks(1_000).enumerate() {
        match parser.push(chunk) {
            Err(why) => return parser.refusal(&why),
            Ok(Parsed::More) => {}
            Ok(Parsed::Probe) => {
                state.seen.probes += 1;
                return Vec::new();
            }
            Ok(Parsed::Ready { push, mut pack }) => {
                pack.extend_from_slice(request.body.get((at + 1) * 1_000..).unwrap_or_default());
                let report = apply(state, &push, &pack);
                state.seen.options.clone_from(&push.options);
                state.seen.pushed = if push.has_pack() { pack.len() } else { 0 };
                return report.body(&push.capabilities);
            }
        }
    }
    match parser.end() {
        Ok(_) => Vec::new(),
        Err(why) => parser.refusal(&why),
    }
}

fn apply(state: &mut State, push: &Push, pack: &[u8]) -> Report {
    let mut connectivity = Connectivity::default();
    if push.has_pack() {
        if let Err(why) = take_pack(state, pack, &mut connectivity) {
            return Report::unpack_failed(push, &why);
        }
        let tips: Vec<ObjectId> = push.commands.iter().map(|command| command.new).collect();
        let missing = match connectivity.outside(&tips) {
            Err(why) => return Report::unpack_failed(push, &why.to_string()),
            Ok(outside) => outside.into_iter().find(|outside| state.store.kind(&outside.id).is_none()),
        };
        if let Some(missing) = missing {
            return Report::unpack_failed(push, &missing.refusal().to_string());
        }
    }
    let mut statuses = check(push, &state.store.refs(), state.place);
    for (command, status) in push.commands.iter().zip(&mut statuses) {
        let kind = state.store.kind(&command.new);
        if status.fault.is_none()
            && let Some(kind) = kind
        {
            status.fault = kind_fault(&command.sent_name, kind);
        }
    }
    if make_atomic(push.capabilities.atomic, &mut statuses) {
        for (command, status) in push.commands.iter().zip(&statuses) {
            if status.fault.is_none() && !command.sent_name.starts_with("refs/for/") {
                let line = format!("update {} {} {}\n", command.sent_name, command.new, command.old);
                git_with(&state.store.dir, &["update-ref", "--stdin"], line.as_bytes()).unwrap();
            }
        }
    }
    Report { unpack_fault: None, statuses, messages: vec!["thank you".to_owned()] }
}

/// Stores the pack with git, then reads what it brought.
fn take_pack(state: &mut State, pack: &[u8], connectivity: &mut Connectivity) -> Result<(), String> {
    let listed = git_with(&state.store.dir, &["index-pack", "--stdin", "--fix-thin"], pack)?;
    let name = String::from_utf8_lossy(&listed).trim().rsplit('\t').next().unwrap().to_owned();
    state.store.reload();
    let index = std::fs::read(state.store.dir.join(format!("objects/pack/pack-{name}.idx"))).unwrap();
    let shown = git_with(&state.store.dir, &["show-index"], &index)?;
    for line in String::from_utf8_lossy(&shown).lines() {
        let id: ObjectId = line.split(' ').nth(1).unwrap().parse().unwrap();
        let object = state.store.get(&id).unwrap();
        connectivity.object(id, object.kind, &object.data).map_err(|why| why.to_string())?;
    }
    Ok(())
}
