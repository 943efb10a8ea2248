//! The commands of protocol v2.

use yard_common::Refusal;

use super::request::{Acks, FetchRequest, LsRefs, RoundEnd, invalid, parse_filter};
use crate::pktline::{Decoder, Framing, Packet};

/// Prefixes of one `ls-refs`; with more, all refs are listed, as in git.
const PREFIXES_MAX: usize = 1_000;

/// What a request body of the fetch service asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Nothing: answer with an empty body.
    Empty,
    /// `ls-refs`
    LsRefs(LsRefs),
    /// `fetch`, or a request of v0 and v1.
    Fetch(Box<FetchRequest>),
}

pub(super) fn parse(body: &[u8]) -> Result<Command, Refusal> {
    let mut decoder = Decoder::default();
    decoder.push(body);
    let mut command = None;
    let arguments_follow = loop {
        match decoder.next_packet()? {
            None if command.is_none() => return Ok(Command::Empty),
            None => return Err(cut()),
            Some(Packet::Flush) => break false,
            Some(Packet::Delim) => break true,
            Some(packet) => capability(text(packet)?, &mut command)?,
        }
    };
    let arguments = if arguments_follow { arguments(&mut decoder)? } else { Vec::new() };
    match command.as_deref() {
        None => Ok(Command::Empty),
        Some("ls-refs") => Ok(Command::LsRefs(ls_refs(arguments)?)),
        Some("fetch") => Ok(Command::Fetch(Box::new(fetch(&arguments)?))),
        Some(other) => Err(invalid(format!("unknown command '{other}': ls-refs and fetch are served"))),
    }
}

fn arguments(decoder: &mut Decoder) -> Result<Vec<String>, Refusal> {
    let mut lines = Vec::new();
    loop {
        match decoder.next_packet()? {
            None => return Err(cut()),
            Some(Packet::Flush) => return Ok(lines),
            Some(packet) => lines.push(text(packet)?.to_owned()),
        }
    }
}

fn cut() -> Refusal {
    invalid("the request was cut off: try again".to_owned())
}

fn text(packet: Packet<'_>) -> Result<&str, Refusal> {
    let line =
        packet.line().ok_or_else(|| invalid(format!("unexpected packet {packet:?} in a fetch request")))?;
    std::str::from_utf8(line).map_err(|_| invalid("a fetch request must be UTF-8".to_owned()))
}

fn capability(line: &str, command: &mut Option<String>) -> Result<(), Refusal> {
    match line.split_once('=').unwrap_or((line, "")) {
        ("command", _) if command.is_some() => Err(invalid("a request has one command".to_owned())),
        ("command", name) => {
            *command = Some(name.to_owned());
            Ok(())
        }
        ("object-format", format) if format != "sha1" => {
            Err(invalid(format!("object format {format:?} is not served here: sha1 is")))
        }
        ("agent" | "server-option" | "session-id" | "object-format", _) => Ok(()),
        _ => Err(invalid(format!("unknown capability '{line}'"))),
    }
}

fn ls_refs(arguments: Vec<String>) -> Result<LsRefs, Refusal> {
    let mut out = LsRefs::default();
    for line in arguments {
        match line.split_once(' ').unwrap_or((&line, "")) {
            ("peel", "") => out.peel = true,
            ("symrefs", "") => out.symrefs = true,
            ("unborn", "") => out.unborn = true,
            ("ref-prefix", prefix) => out.prefixes.push(prefix.to_owned()),
            _ => return Err(invalid(format!("unexpected line: '{line}' in ls-refs"))),
        }
    }
    if out.prefixes.len() > PREFIXES_MAX {
        out.prefixes.clear();
    }
    Ok(out)
}

fn fetch(arguments: &[String]) -> Result<FetchRequest, Refusal> {
    let mut out = FetchRequest {
        acks: Acks::V2,
        framing: Framing::Large,
        end: RoundEnd::Haves,
        ..FetchRequest::default()
    };
    for line in arguments {
        match line.split_once(' ').unwrap_or((line, "")) {
            ("want", id) => out.wants.push(id.parse()?),
            ("have", id) => out.haves.push(id.parse()?),
            ("shallow", id) => out.shallow.push(id.parse()?),
            ("done", "") => out.end = RoundEnd::Done,
            ("thin-pack", "") => out.thin_pack = true,
            ("no-progress", "") => out.no_progress = true,
            ("include-tag", "") => out.include_tag = true,
            ("ofs-delta", "") => out.ofs_delta = true,
            ("wait-for-done", "") => out.wait_for_done = true,
            ("filter", spec) => out.filter = parse_filter(spec)?,
            _ if out.deepening.take(line)? => {}
            _ => return Err(invalid(format!("unexpected line: '{line}' in fetch"))),
        }
    }
    if out.wants.is_empty() {
        return Err(invalid("a fetch needs at least one want".to_owned()));
    }
    Ok(out.tidy())
}
