//! The answer to a push: progress, then one status for each ref.

use yard_common::ObjectId;

use super::{Capabilities, Command, Push};
use crate::pktline::{Band, FLUSH, write_line};

/// What a `report-status-v2` client is told about where an update really went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StatusOption {
    /// The ref that was moved instead of the one named.
    RefName(String),
    /// Where that ref stood.
    OldId(ObjectId),
    /// Where it stands.
    NewId(ObjectId),
    /// It was no fast-forward.
    ForcedUpdate,
}

/// What became of one command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefStatus {
    /// The name as the client sent it.
    pub name: String,
    /// Why it was refused; `None`: done.
    pub fault: Option<String>,
    /// For `report-status-v2`, when done.
    pub options: Vec<StatusOption>,
}

impl RefStatus {
    /// A command that was done.
    #[must_use]
    pub fn ok(name: &str) -> Self {
        Self { name: name.to_owned(), fault: None, options: Vec::new() }
    }

    /// A command that was refused for this reason.
    #[must_use]
    pub fn refused(name: &str, fault: impl Into<String>) -> Self {
        Self { fault: Some(fault.into()), ..Self::ok(name) }
    }
}

/// The answer to a push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Why the pack was not taken; `None`: it was, or there was none.
    pub unpack_fault: Option<String>,
    /// One for each command, in the client's order.
    pub statuses: Vec<RefStatus>,
    /// Lines for the person at the client, shown as `remote: LINE`.
    pub messages: Vec<String>,
}

impl Report {
    /// The refusal of a whole push because of its pack: every ref carries it.
    #[must_use]
    pub fn unpack_failed(push: &Push, why: &str) -> Self {
        let refused = |command: &Command| RefStatus::refused(&command.sent_name, "unpacker error");
        let statuses = push.commands.iter().map(refused).collect();
        Self { unpack_fault: Some(why.to_owned()), statuses, messages: vec![why.to_owned()] }
    }

    /// The end of the response body; progress that the host sent before stays before it.
    ///
    /// Messages need a side band, statuses need `report-status`: what the client cannot take is left out.
    #[must_use]
    pub fn body(&self, capabilities: &Capabilities) -> Vec<u8> {
        let mut out = Vec::new();
        let framing = capabilities.framing;
        for line in self.messages.iter().flat_map(|message| message.lines()) {
            framing.progress(&mut out, line);
        }
        if capabilities.report_status || capabilities.report_status_v2 {
            framing.write(&mut out, Band::Data, &self.status_lines(capabilities.report_status_v2));
        }
        framing.end(&mut out);
        out
    }

    fn status_lines(&self, v2: bool) -> Vec<u8> {
        let mut out = Vec::new();
        let unpack = self.unpack_fault.as_deref().map_or_else(|| "ok".to_owned(), one_line);
        write_line(&mut out, &format!("unpack {unpack}"));
        for status in &self.statuses {
            match &status.fault {
                Some(fault) => write_line(&mut out, &format!("ng {} {}", status.name, one_line(fault))),
                None => write_line(&mut out, &format!("ok {}", status.name)),
            }
            if v2 && status.fault.is_none() {
                status.options.iter().for_each(|option| write_line(&mut out, &option_line(option)));
            }
        }
        out.extend_from_slice(FLUSH);
        out
    }
}

fn one_line(text: &str) -> String {
    text.split(['\n', '\r', '\0'])
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("; ")
}

fn option_line(option: &StatusOption) -> String {
    match option {
        StatusOption::RefName(name) => format!("option refname {name}"),
        StatusOption::OldId(id) => format!("option old-oid {id}"),
        StatusOption::NewId(id) => format!("option new-oid {id}"),
        StatusOption::ForcedUpdate => "option forced-update".to_owned(),
    }
}
