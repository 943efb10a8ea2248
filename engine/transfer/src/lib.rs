//! The smart git protocol without IO: pkt-lines, fetch plans, pushes.
//!
//! A host reads requests, drives [`receive::Parser`] and [`upload::Upload`], fetches the objects they ask
//! for, and writes what they return; nothing here waits or does IO.
//!
//! A fetch, with `fetch_objects` and `write_pack` as the host's own:
//!
//! ```
//! # use yard_common::{ObjectId, RefName, Refusal};
//! # use yard_git::MemoryObjects;
//! # use yard_transfer::RefView;
//! # use yard_transfer::advertise::Protocol;
//! # use yard_transfer::pktline::{Band, error_body};
//! # use yard_transfer::plan::{FetchPlan, NoGraph, World};
//! use yard_transfer::upload::{Command, Upload, UploadStep, WantPolicy, parse};
//! # fn fetch_objects(_: &[ObjectId], _: &mut MemoryObjects) {}
//! # fn write_pack(_: &FetchPlan) -> Vec<Vec<u8>> { Vec::new() }
//!
//! fn answer(protocol: Protocol, body: &[u8], refs: &RefView) -> Result<Vec<u8>, Refusal> {
//!     let exists = |_: &ObjectId| true;
//!     let request = match parse(protocol, body)? {
//!         Command::Empty => return Ok(Vec::new()),
//!         Command::LsRefs(list) => return Ok(list.answer(refs)),
//!         Command::Fetch(request) => *request,
//!     };
//!     let mut upload = Upload::new(request, refs, WantPolicy::Existing, &exists)?;
//!     let mut hand = MemoryObjects::default();
//!     loop {
//!         match upload.step(&World { objects: &hand, exists: &exists, graph: &NoGraph })? {
//!             UploadStep::Need(ids) => fetch_objects(&ids, &mut hand),
//!             UploadStep::Answer(answer) => return Ok(answer),
//!             UploadStep::Pack(pack) => {
//!                 let mut out = pack.head;
//!                 for chunk in write_pack(&pack.plan) {
//!                     pack.framing.write(&mut out, Band::Data, &chunk);
//!                 }
//!                 pack.framing.end(&mut out);
//!                 return Ok(out);
//!             }
//!         }
//!     }
//! }
//! # let refs = RefView::new(Vec::new(), RefName::new("refs/heads/main")?);
//! let asked = b"0014command=ls-refs\n00010000";
//! let body = answer(Protocol::V2, asked, &refs).unwrap_or_else(|why| error_body(&why.to_string()));
//! assert_eq!(body, b"0000");
//! # Ok::<(), yard_common::id::BadId>(())
//! ```
//!
//! A push, with `take_pack` and `move_refs` as the host's own:
//!
//! ```
//! # use yard_common::RefName;
//! # use yard_transfer::RefView;
//! use yard_transfer::receive::{Parsed, Parser, Place, Push, RefStatus, Report, check, make_atomic};
//! # fn take_pack(_: &[u8]) -> Result<(), String> { Ok(()) }
//! # fn move_refs(_: &Push, _: &mut [RefStatus]) {}
//!
//! fn answer(chunks: &[&[u8]], refs: &RefView) -> Vec<u8> {
//!     let mut parser = Parser::default();
//!     for chunk in chunks {
//!         let (push, pack) = match parser.push(chunk) {
//!             Ok(Parsed::More) => continue,
//!             Ok(Parsed::Probe) => return Vec::new(),
//!             Ok(Parsed::Ready { push, pack }) => (push, pack),
//!             Err(why) => return parser.refusal(&why),
//!         };
//!         // The rest of the body follows `pack`; a push that only deletes has none.
//!         if push.has_pack() && let Err(why) = take_pack(&pack) {
//!             return Report::unpack_failed(&push, &why).body(&push.capabilities);
//!         }
//!         let mut statuses = check(&push, refs, Place::Fork);
//!         if make_atomic(push.capabilities.atomic, &mut statuses) {
//!             move_refs(&push, &mut statuses);
//!         }
//!         let messages = vec!["git fetch origin refs/notes/intent:refs/notes/intent".to_owned()];
//!         return Report { unpack_fault: None, statuses, messages }.body(&push.capabilities);
//!     }
//!     parser.end().map_or_else(|why| parser.refusal(&why), |_| Vec::new())
//! }
//! # let refs = RefView::new(Vec::new(), RefName::new("refs/heads/main")?);
//! assert!(answer(&[b"00", b"00"], &refs).is_empty());
//! # Ok::<(), yard_common::id::BadId>(())
//! ```
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

pub mod advertise;
pub mod pktline;
pub mod plan;
pub mod receive;
pub mod refs;
pub mod upload;

pub use refs::{RefTip, RefView};
