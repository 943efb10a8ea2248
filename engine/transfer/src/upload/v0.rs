//! The fetch request of protocols v0 and v1 over HTTP.

use yard_common::Refusal;

use super::request::{Acks, FetchRequest, RoundEnd, invalid, parse_filter};
use super::v2::Command;
use crate::pktline::{Decoder, Framing, Packet};

pub(super) fn parse(body: &[u8]) -> Result<Command, Refusal> {
    let mut decoder = Decoder::default();
    decoder.push(body);
    let mut out = FetchRequest { framing: Framing::Bare, ..FetchRequest::default() };
    loop {
        match decoder.next_packet()? {
            None if out.wants.is_empty() => return Ok(Command::Empty),
            None => return Err(invalid("the request was cut off: try again".to_owned())),
            Some(Packet::Flush) if out.wants.is_empty() => return Ok(Command::Empty),
            Some(Packet::Flush) => break,
            Some(packet) => wish(&mut out, line(packet)?)?,
        }
    }
    // A stateless client ends a round with one flush; what another flush would start is the next request's.
    loop {
        match decoder.next_packet()? {
            None => break,
            Some(Packet::Flush) => {
                out.end = RoundEnd::Haves;
                break;
            }
            Some(packet) => match line(packet)?.split_once(' ') {
                Some(("have", id)) => {
                    out.end = RoundEnd::Haves;
                    out.haves.push(id.parse()?);
                }
                None if line(packet)? == "done" => {
                    out.end = RoundEnd::Done;
                    break;
                }
                _ => return Err(invalid(format!("'{}' is neither have nor done", line(packet)?))),
            },
        }
    }
    Ok(Command::Fetch(Box::new(out.tidy())))
}

fn line(packet: Packet<'_>) -> Result<&str, Refusal> {
    let line =
        packet.line().ok_or_else(|| invalid(format!("unexpected packet {packet:?} in a fetch request")))?;
    std::str::from_utf8(line).map_err(|_| invalid("a fetch request must be UTF-8".to_owned()))
}

fn wish(out: &mut FetchRequest, line: &str) -> Result<(), Refusal> {
    match line.split_once(' ').unwrap_or((line, "")) {
        ("want", rest) => {
            let (id, capabilities) = rest.split_once(' ').unwrap_or((rest, ""));
            if out.wants.is_empty() {
                capabilities.split_ascii_whitespace().try_for_each(|word| capability(out, word))?;
            }
            out.wants.push(id.parse()?);
        }
        ("shallow", id) => out.shallow.push(id.parse()?),
        ("filter", spec) => out.filter = parse_filter(spec)?,
        _ if out.deepening.take(line)? => {}
        _ => return Err(invalid(format!("'{line}' is no want, shallow, deepen or filter line"))),
    }
    Ok(())
}

fn capability(out: &mut FetchRequest, word: &str) -> Result<(), Refusal> {
    match word {
        "multi_ack_detailed" => out.acks = Acks::Detailed,
        "multi_ack" if out.acks != Acks::Detailed => out.acks = Acks::Multi,
        "no-done" => out.no_done = true,
        "thin-pack" => out.thin_pack = true,
        "no-progress" => out.no_progress = true,
        "include-tag" => out.include_tag = true,
        "ofs-delta" => out.ofs_delta = true,
        "deepen-relative" => out.deepening.relative = true,
        "side-band-64k" => out.framing = Framing::Large,
        "side-band" if out.framing != Framing::Large => out.framing = Framing::Small,
        _ => {
            if let Some(format) = word.strip_prefix("object-format=").filter(|format| *format != "sha1") {
                return Err(invalid(format!("object format {format:?} is not served here: sha1 is")));
            }
        }
    }
    Ok(())
}
