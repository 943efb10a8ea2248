//! Pushes: the request up to where its pack starts, the rules for ref updates, the report.
//!
//! Format: git's `gitprotocol-pack`, "Pushing Data To a Server".

mod report;
mod rules;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use yard_common::{ObjectId, RefName, Refusal};

use crate::pktline::{Decoder, Framing, Packet, error_body};

pub use report::{RefStatus, Report, StatusOption};
pub use rules::{Place, check, kind_fault, make_atomic};

/// Commands, options and shallow lines of one push, in bytes: some 2,000 refs of 120 bytes.
pub const COMMANDS_BYTES_MAX: usize = 256 * 1024;
/// Push options of one push.
pub const PUSH_OPTIONS_MAX: usize = 100;

/// One asked-for update of a ref.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// Where the client believes the ref to be; zero: not there.
    pub old: ObjectId,
    /// Where it shall be; zero: deleted.
    pub new: ObjectId,
    /// The name as sent, for the report.
    pub sent_name: String,
    /// The name, when it is one.
    pub name: Option<RefName>,
}

impl Command {
    /// Does it delete the ref?
    #[must_use]
    pub fn is_delete(&self) -> bool {
        self.new.is_zero()
    }
}

/// What the client can do and asks for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Capabilities {
    /// `report-status`
    pub report_status: bool,
    /// `report-status-v2`
    pub report_status_v2: bool,
    /// `side-band-64k`, else bare.
    pub framing: Framing,
    /// `atomic`: all refs or none.
    pub atomic: bool,
    /// `quiet`: no progress.
    pub quiet: bool,
    /// `push-options`
    pub push_options: bool,
    /// The client's `agent`.
    pub agent: Option<String>,
}

/// A push without its pack.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Push {
    /// The updates, in the client's order; at least one.
    pub commands: Vec<Command>,
    /// What the client can do.
    pub capabilities: Capabilities,
    /// `git push -o` texts, in order, without newlines.
    pub options: Vec<String>,
    /// Commits whose parents the client does not have.
    pub shallow: Vec<ObjectId>,
}

impl Push {
    /// Does a pack follow? Not when every command deletes.
    #[must_use]
    pub fn has_pack(&self) -> bool {
        self.commands.iter().any(|command| !command.is_delete())
    }
}

/// What the parser knows after a chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parsed {
    /// More of the body is needed.
    More,
    /// The body is git's probe `0000`: answer 200 with an empty body.
    Probe,
    /// The push is read; `pack` is the start of the pack as far as it has arrived.
    Ready {
        /// The push.
        push: Push,
        /// Bytes of the body behind the push.
        pack: Vec<u8>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    Commands,
    Options,
    Done,
}

/// Reads a receive-pack request from a body that arrives in chunks.
#[derive(Debug)]
pub struct Parser {
    decoder: Decoder,
    section: Section,
    taken: usize,
    push: Push,
}

impl Default for Parser {
    fn default() -> Self {
        let mut push = Push::default();
        push.capabilities.framing = Framing::Bare;
        Self { decoder: Decoder::default(), section: Section::Commands, taken: 0, push }
    }
}

impl Parser {
    /// Takes the next chunk; after [`Parsed::Ready`] or [`Parsed::Probe`] the rest of the body is the host's.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] for what is no receive-pack request or asks for what was not offered (signed
    /// pushes, sha256), [`Refusal::TooLarge`] above [`COMMANDS_BYTES_MAX`]. The answer is
    /// [`Parser::refusal`].
    pub fn push(&mut self, chunk: &[u8]) -> Result<Parsed, Refusal> {
        self.decoder.push(chunk);
        while self.section != Section::Done {
            let before = self.decoder.held_bytes();
            let Some(packet) = self.decoder.next_packet()? else {
                self.bound(before)?;
                return Ok(Parsed::More);
            };
            match (self.section, packet) {
                (Section::Commands, Packet::Flush) => {
                    let options = self.push.capabilities.push_options;
                    self.section = if options { Section::Options } else { Section::Done };
                    if self.push.commands.is_empty() {
                        return Ok(Parsed::Probe);
                    }
                }
                (Section::Options, Packet::Flush) => self.section = Section::Done,
                (Section::Commands, Packet::Data(payload)) => command_line(&mut self.push, payload)?,
                (_, Packet::Data(payload)) => option_line(&mut self.push, payload)?,
                (_, other) => return Err(invalid(format!("unexpected packet {other:?} in a push"))),
            }
            self.taken += before - self.decoder.held_bytes();
            self.bound(0)?;
        }
        let pack = std::mem::take(&mut self.decoder).into_rest();
        Ok(Parsed::Ready { push: std::mem::take(&mut self.push), pack })
    }

    /// The body has ended before [`Parsed::Ready`].
    ///
    /// # Errors
    /// [`Refusal::Invalid`] always but for an empty body, which is a probe too.
    pub fn end(&self) -> Result<Parsed, Refusal> {
        if self.taken == 0 && self.decoder.held_bytes() == 0 {
            return Ok(Parsed::Probe);
        }
        Err(invalid("the push was cut off before its pack: push again".to_owned()))
    }

    /// The body that tells the client why its push is refused before it could be read whole.
    ///
    /// With a side band the reason goes through it: a client that waits for one does not read `ERR`.
    #[must_use]
    pub fn refusal(&self, why: &Refusal) -> Vec<u8> {
        let framing = self.push.capabilities.framing;
        if framing == Framing::Bare {
            return error_body(&why.to_string());
        }
        let mut out = Vec::new();
        framing.error(&mut out, &why.to_string());
        framing.end(&mut out);
        out
    }

    fn bound(&self, held: usize) -> Result<(), Refusal> {
        let size = self.taken + held;
        if size <= COMMANDS_BYTES_MAX {
            return Ok(());
        }
        Err(Refusal::TooLarge {
            what: "the list of ref updates (push fewer refs at once)".to_owned(),
            size: size as u64,
            limit: COMMANDS_BYTES_MAX as u64,
        })
    }
}

fn invalid(why: String) -> Refusal {
    Refusal::Invalid { why }
}

fn command_line(push: &mut Push, payload: &[u8]) -> Result<(), Refusal> {
    let (line, capabilities) = match payload.iter().position(|byte| *byte == 0) {
        Some(nul) => (payload.get(..nul).unwrap_or_default(), payload.get(nul + 1..)),
        None => (payload, None),
    };
    if let Some(capabilities) = capabilities.filter(|_| push.commands.is_empty()) {
        push.capabilities = read_capabilities(&String::from_utf8_lossy(capabilities))?;
    }
    let line = String::from_utf8_lossy(line.strip_suffix(b"\n").unwrap_or(line)).into_owned();
    if let Some(id) = line.strip_prefix("shallow ") {
        push.shallow.push(id.parse()?);
        return Ok(());
    }
    if line.starts_with("push-cert") {
        return Err(invalid("signed pushes are not taken: push with --no-signed".to_owned()));
    }
    let mut words = line.splitn(3, ' ');
    let (Some(old), Some(new), Some(name)) = (words.next(), words.next(), words.next()) else {
        return Err(invalid(format!("{line:?} is no ref update: OLD NEW REF is expected")));
    };
    push.commands.push(Command {
        old: old.parse()?,
        new: new.parse()?,
        name: RefName::new(name).ok(),
        sent_name: name.to_owned(),
    });
    Ok(())
}

fn read_capabilities(text: &str) -> Result<Capabilities, Refusal> {
    let mut out = Capabilities { framing: Framing::Bare, ..Capabilities::default() };
    for word in text.split_ascii_whitespace() {
        match word.split_once('=').unwrap_or((word, "")) {
            ("report-status", _) => out.report_status = true,
            ("report-status-v2", _) => out.report_status_v2 = true,
            ("side-band-64k", _) => out.framing = Framing::Large,
            ("atomic", _) => out.atomic = true,
            ("quiet", _) => out.quiet = true,
            ("push-options", _) => out.push_options = true,
            ("agent", agent) => out.agent = Some(agent.chars().take(200).collect()),
            ("object-format", format) if format != "sha1" => {
                return Err(invalid(format!("object format {format:?} is not taken here: sha1 is")));
            }
            _ => {}
        }
    }
    Ok(out)
}

fn option_line(push: &mut Push, payload: &[u8]) -> Result<(), Refusal> {
    if push.options.len() >= PUSH_OPTIONS_MAX {
        return Err(invalid(format!("at most {PUSH_OPTIONS_MAX} push options are taken")));
    }
    let option = std::str::from_utf8(payload.strip_suffix(b"\n").unwrap_or(payload))
        .map_err(|_| invalid("a push option must be UTF-8".to_owned()))?;
    if option.contains(['\n', '\0']) {
        return Err(invalid("a push option must not contain a newline or NUL".to_owned()));
    }
    push.options.push(option.to_owned());
    Ok(())
}

/// The names that occur in more than one command.
fn doubled(commands: &[Command]) -> BTreeSet<&str> {
    let mut seen = BTreeSet::new();
    commands.iter().map(|command| command.sent_name.as_str()).filter(|name| !seen.insert(*name)).collect()
}
