//! Files that git itself reads out of a tree: `.gitmodules`, `.gitattributes`, `.gitignore`, `.mailmap`.
//!
//! A hostile one makes a client run a command or write elsewhere, so `git fsck --strict` looks into them.
//! The rules here are those of git 2.47's `fsck.c` and `submodule-config.c`, its classes as measured: what it
//! calls an error is refused, what it only notes (`gitmodulesParse`, links in place of the other three
//! files) is a warning. A test compares the verdicts with git's on generated files.

use std::fmt;

use yard_common::limits::OBJECT_BYTES_MAX;
use yard_common::submission::Mode;

use crate::tree::TreeMode;

mod config;
mod name;
mod url;

/// Bytes of a line of `.gitattributes` from which on git does not read it.
pub const ATTRIBUTES_LINE_BYTES_MAX: usize = 2048;
/// Warnings kept of one file or push: the first ones tell the kind.
pub const WARNINGS_MAX: usize = 10;

// git's `gitattributesLarge` starts at 100 MiB, `gitmodulesLarge` at 512 MiB: no such object is taken.
const _: () = assert!(OBJECT_BYTES_MAX < 100 << 20);

/// Which of the special files a name can be read as, on any file system; several at once for odd names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, PartialOrd, Ord)]
pub struct Special(u8);

impl Special {
    /// `.gitmodules`
    pub const MODULES: Self = Self(1);
    /// `.gitattributes`
    pub const ATTRIBUTES: Self = Self(2);
    /// `.gitignore`
    pub const IGNORE: Self = Self(4);
    /// `.mailmap`
    pub const MAILMAP: Self = Self(8);

    /// What the name of a tree's entry can be read as, on HFS+ and NTFS too.
    #[must_use]
    pub fn of(component: &[u8]) -> Self {
        name::special(component)
    }

    /// None of them?
    #[must_use]
    pub fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Is it (also) the other?
    #[must_use]
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The part of it whose contents git checks.
    #[must_use]
    pub fn checked(self) -> Self {
        Self(self.0 & (Self::MODULES.0 | Self::ATTRIBUTES.0))
    }

    /// The fault of an entry of this name and mode, whatever it contains.
    #[must_use]
    pub fn entry_fault(self, mode: TreeMode) -> Option<Kind> {
        match mode {
            _ if self.is_none() => None,
            TreeMode::Leaf(Mode::Symlink) if self.has(Self::MODULES) => Some(Kind::ModulesSymlink),
            TreeMode::Leaf(Mode::Symlink) => Some(Kind::Symlink),
            TreeMode::Tree | TreeMode::Leaf(Mode::Gitlink) if !self.checked().is_none() => Some(Kind::NoFile),
            _ => None,
        }
    }

    /// All faults of a file's bytes, in the order of their lines.
    #[must_use]
    pub fn faults(self, data: &[u8]) -> Vec<Fault> {
        let mut faults = Vec::new();
        if self.has(Self::MODULES) {
            faults.extend(modules(data));
        }
        if self.has(Self::ATTRIBUTES) {
            faults.extend(attributes(data));
        }
        faults
    }
}

/// The kinds of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A submodule's name is empty or climbs with `..`.
    ModulesName,
    /// A submodule's URL can be read as an option, as another host, or has a line break.
    ModulesUrl,
    /// A submodule's path can be read as an option.
    ModulesPath,
    /// A submodule's update is a command.
    ModulesUpdate,
    /// `.gitmodules` is a symbolic link.
    ModulesSymlink,
    /// It is no configuration file: from there on nothing of it was checked. Only a warning.
    ModulesParse,
    /// A directory or a submodule stands in the place of the file.
    NoFile,
    /// Another special file is a symbolic link: git does not read it. Only a warning.
    Symlink,
    /// A line of `.gitattributes` is longer than git reads.
    AttributesLine,
}

impl Kind {
    /// Does `git fsck --strict` fail for it?
    #[must_use]
    pub fn is_error(self) -> bool {
        !matches!(self, Self::ModulesParse | Self::Symlink)
    }

    /// git's name of the fault.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ModulesName => "gitmodulesName",
            Self::ModulesUrl => "gitmodulesUrl",
            Self::ModulesPath => "gitmodulesPath",
            Self::ModulesUpdate => "gitmodulesUpdate",
            Self::ModulesSymlink => "gitmodulesSymlink",
            Self::ModulesParse => "gitmodulesParse",
            Self::NoFile => "gitmodulesBlob",
            Self::Symlink => "gitattributesSymlink",
            Self::AttributesLine => "gitattributesLineLength",
        }
    }

    /// What is wrong and what to do, in a sentence that goes on after the place.
    #[must_use]
    pub fn why(self) -> &'static str {
        match self {
            Self::ModulesName => "the submodule's name is empty or has a '..' component: choose another name",
            Self::ModulesUrl => {
                "the submodule's url can be read as an option, as another host or as two lines: use a plain \
                 https, ssh or relative url"
            }
            Self::ModulesPath => {
                "the submodule's path starts with a dash and can be read as an option: choose another path"
            }
            Self::ModulesUpdate => "the submodule's update is a command: use checkout, rebase, merge or none",
            Self::ModulesSymlink => ".gitmodules is a symbolic link: make it a file",
            Self::ModulesParse => "git cannot read the file from here on: mend the line",
            Self::NoFile => {
                "a file system reads this name as .gitmodules or .gitattributes, and it is no file: rename it"
            }
            Self::Symlink => "git does not read this file while it is a symbolic link: make it a file",
            Self::AttributesLine => {
                "the line has 2048 bytes or more and git does not read it: split it into several"
            }
        }
    }
}

/// One fault of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Its kind.
    pub kind: Kind,
    /// The line where it stands, from 1 on.
    pub line: usize,
    /// What stands there, at most 100 characters; empty where it says nothing.
    pub given: String,
}

impl Fault {
    fn new(kind: Kind, line: usize, given: &[u8]) -> Self {
        Self { kind, line, given: String::from_utf8_lossy(given).chars().take(100).collect() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        if !self.given.is_empty() {
            write!(f, "{:?}: ", self.given)?;
        }
        write!(f, "{} ({})", self.kind.why(), self.kind.as_str())
    }
}

fn modules(data: &[u8]) -> Vec<Fault> {
    let mut faults = modules_once(data);
    // Where `char` is signed, git takes the byte 0xFF for the end of what it checks; a client that reads the
    // file goes on. Neither reading may do harm.
    if let Some(end) = data.iter().position(|byte| *byte == 0xff) {
        faults.extend(modules_once(data.get(..end).unwrap_or_default()));
        faults.sort_by_key(|fault| (fault.line, fault.kind));
        faults.dedup_by_key(|fault| (fault.line, fault.kind));
    }
    faults
}

fn modules_once(data: &[u8]) -> Vec<Fault> {
    let mut faults = Vec::new();
    let parsed = config::read(data, |line, variable, value| {
        let Some((name, key)) = config::submodule(variable) else { return };
        if name::climbs(name) {
            faults.push(Fault::new(Kind::ModulesName, line, name));
        }
        let Some(value) = value else { return };
        let kind = match key {
            b"url" if url::is_bad(value) => Kind::ModulesUrl,
            b"path" if value.starts_with(b"-") => Kind::ModulesPath,
            b"update" if value.starts_with(b"!") => Kind::ModulesUpdate,
            _ => return,
        };
        faults.push(Fault::new(kind, line, value));
    });
    if let Err(line) = parsed {
        faults.push(Fault::new(Kind::ModulesParse, line, b""));
    }
    faults
}

fn attributes(data: &[u8]) -> Option<Fault> {
    // git reads up to the first NUL.
    let text = data.split(|byte| *byte == 0).next().unwrap_or_default();
    let long = text.split(|byte| *byte == b'\n').position(|line| line.len() >= ATTRIBUTES_LINE_BYTES_MAX)?;
    Some(Fault::new(Kind::AttributesLine, long + 1, b""))
}

#[cfg(test)]
mod tests;
