//! Acknowledgments of common commits, as git's `upload-pack` writes them.

use yard_common::ObjectId;

use super::request::{Acks, FetchRequest, RoundEnd};
use crate::pktline::{DELIM, FLUSH, write_line};

/// Does the answer depend on whether the client's commits suffice?
pub(super) fn asks_ready(request: &FetchRequest, common: &[ObjectId]) -> bool {
    let may = match request.acks {
        Acks::V2 => !request.wait_for_done,
        Acks::Detailed => true,
        Acks::Single | Acks::Multi => false,
    };
    may && request.end == RoundEnd::Haves && !common.is_empty()
}

/// Writes the acknowledgments section; tells whether a pack follows.
pub(super) fn v2(out: &mut Vec<u8>, request: &FetchRequest, common: &[ObjectId], ready: bool) -> bool {
    if request.end == RoundEnd::Done || (request.haves.is_empty() && !request.wait_for_done) {
        return true;
    }
    write_line(out, "acknowledgments");
    if common.is_empty() {
        write_line(out, "NAK");
    }
    common.iter().for_each(|id| write_line(out, &format!("ACK {id}")));
    if ready {
        write_line(out, "ready");
    }
    out.extend_from_slice(if ready { DELIM } else { FLUSH });
    ready
}

/// Writes the acknowledgments of one round; tells whether a pack follows.
pub(super) fn v0(out: &mut Vec<u8>, request: &FetchRequest, common: &[ObjectId], ready: bool) -> bool {
    if request.end == RoundEnd::Wants {
        return false;
    }
    let word = match request.acks {
        Acks::Multi => " continue",
        Acks::Detailed => " common",
        Acks::Single | Acks::V2 => "",
    };
    let many = !word.is_empty();
    let told = if many { common.len() } else { common.len().min(1) };
    common.iter().take(told).for_each(|id| write_line(out, &format!("ACK {id}{word}")));
    let last = common.last().copied();
    if request.end == RoundEnd::Done {
        match last {
            Some(last) if many => write_line(out, &format!("ACK {last}")),
            Some(_) => {}
            None => write_line(out, "NAK"),
        }
        return true;
    }
    if let Some(last) = last.filter(|_| ready) {
        write_line(out, &format!("ACK {last} ready"));
    }
    if many || last.is_none() {
        write_line(out, "NAK");
    }
    match last.filter(|_| ready && request.no_done) {
        Some(last) => {
            write_line(out, &format!("ACK {last}"));
            true
        }
        None => false,
    }
}
