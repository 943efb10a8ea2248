//! A path inside a repository: bytes, checked once.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::id::{BadId, hex, unhex};

/// Longest path in bytes: git for Linux takes 4,096 with its folder, so this leaves room for one.
pub const PATH_BYTES_MAX: usize = 3_500;

/// A path inside a repository: components joined by `/`, any bytes but NUL.
///
/// Never empty, never with a leading, doubled or trailing slash, a `.` or `..` component, or a
/// component that some file system reads as `.git`. In JSON it is its text; a path that is not
/// UTF-8 is U+0000 followed by its bytes in hex (NUL is in no path, so the forms do not meet).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RepoPath(Vec<u8>);

impl RepoPath {
    /// The checked path.
    ///
    /// # Errors
    /// [`BadId`] that names the rule broken.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Result<Self, BadId> {
        let bytes = bytes.into();
        match fault(&bytes) {
            None => Ok(Self(bytes)),
            Some(rule) => Err(BadId {
                kind: "path",
                given: String::from_utf8_lossy(&bytes).chars().take(100).collect(),
                rule,
            }),
        }
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The components, first to last.
    pub fn components(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.0.split(|byte| *byte == b'/')
    }

    /// The path of the directory this lies in, `None` at the top.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        let slash = self.0.iter().rposition(|byte| *byte == b'/')?;
        self.0.get(..slash).map(|bytes| Self(bytes.to_vec()))
    }

    /// Does this path lie strictly below `directory`?
    #[must_use]
    pub fn is_below(&self, directory: &Self) -> bool {
        self.0.strip_prefix(directory.0.as_slice()).is_some_and(|rest| rest.first() == Some(&b'/'))
    }
}

fn fault(bytes: &[u8]) -> Option<&'static str> {
    if bytes.is_empty() {
        return Some("a path must not be empty");
    }
    if bytes.len() > PATH_BYTES_MAX {
        return Some("a path has at most 3500 bytes");
    }
    if bytes.contains(&0) {
        return Some("a path must not contain NUL");
    }
    if bytes.first() == Some(&b'/') {
        return Some("a path must not start with a slash");
    }
    bytes.split(|byte| *byte == b'/').find_map(component_fault)
}

/// The rule that one component of a tree entry breaks, if any; git's `fsck --strict` set.
#[must_use]
pub fn component_fault(component: &[u8]) -> Option<&'static str> {
    match component {
        b"" => Some("a path must not have an empty component"),
        b"." | b".." => Some("a path must not have a '.' or '..' component"),
        _ if is_dot_git(component) => {
            Some("a path must not have a component that a file system reads as '.git'")
        }
        _ => None,
    }
}

/// The characters of a component that HFS+ compares: up to the first bytes that are no UTF-8, as git has it,
/// without the code points that it ignores.
pub fn hfs_chars(component: &[u8]) -> impl Iterator<Item = char> {
    let valid = match std::str::from_utf8(component) {
        Ok(text) => text,
        Err(fault) => {
            let valid = component.get(..fault.valid_up_to()).unwrap_or_default();
            std::str::from_utf8(valid).unwrap_or_default()
        }
    };
    let is_ignored = |c: &char| {
        matches!(*c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{206a}'..='\u{206f}' | '\u{feff}')
    };
    valid.chars().take_while(|c| !matches!(*c, '\u{fffe}' | '\u{ffff}')).filter(move |c| !is_ignored(c))
}

/// `.git` as HFS+ (ignorable code points) or NTFS (short name, trailing dots, spaces, streams) read it.
fn is_dot_git(component: &[u8]) -> bool {
    // In ASCII nothing is ignorable, and each form below begins with a dot, or has a '~' or a backslash.
    let odd = component.first() == Some(&b'.') || component.iter().any(|byte| matches!(byte, b'~' | b'\\'));
    if component.is_ascii() && !odd {
        return false;
    }
    reads_as_dot_git(component)
}

fn reads_as_dot_git(component: &[u8]) -> bool {
    if hfs_chars(component).map(|c| c.to_ascii_lowercase()).eq(".git".chars()) {
        return true;
    }
    let text = String::from_utf8_lossy(component);
    let plain: String = hfs_chars(text.as_bytes()).flat_map(char::to_lowercase).collect();
    let first = plain.split([':', '\\']).next().unwrap_or_default();
    let trimmed = first.trim_end_matches([' ', '.']);
    trimmed == ".git" || trimmed == "git~1" || plain.split('\\').any(|part| part == ".git" || part == "..")
}

impl fmt::Display for RepoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

impl fmt::Debug for RepoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(&self.0))
    }
}

impl Serialize for RepoPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => serializer.serialize_str(&format!("\0{}", hex(&self.0))),
        }
    }
}

impl<'de> Deserialize<'de> for RepoPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = match text.strip_prefix('\0') {
            Some(digits) => {
                unhex(digits).ok_or_else(|| serde::de::Error::custom("a path's hex digits are odd"))?
            }
            None => text.into_bytes(),
        };
        Self::new(bytes).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_paths_are_refused() {
        for bad in ["", "/a", "a//b", "a/", "a/../b", "./a", "a\0b", ".git/config", "a/.GIT", "a/.git ",
                    "GIT~1", ".g\u{200c}it", ".git::$INDEX_ALLOCATION", "a\\..\\b", "x\\.git\\config"] {
            assert!(RepoPath::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn bytes_that_are_no_utf_8_end_a_name_on_hfs() {
        for bad in [&b".git\xff"[..], b".gi\xe2\x80\x8cT\xc3/x", b"a/.git\xef\xbf\xbfx"] {
            assert!(RepoPath::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn odd_but_honest_paths_pass_and_survive_json() {
        for good in [&b"src/lib.rs"[..], "\u{e4} b\nc\u{2028}".as_bytes(), b"a\xff/b", b".gitignore", b"..a"] {
            let path = RepoPath::new(good).unwrap();
            let json = serde_json::to_string(&path).unwrap();
            assert_eq!(serde_json::from_str::<RepoPath>(&json).unwrap(), path);
        }
    }

    #[test]
    fn the_quick_look_for_dot_git_answers_as_the_whole_one() {
        const PIECES: [&str; 12] =
            [".git", "GIT~1", "git", "\\", ":", ".", " ", "~1", "a", "\u{200c}", "K\u{212a}", ".Git"];
        for one in PIECES {
            for two in PIECES {
                for three in PIECES {
                    let name = format!("{one}{two}{three}");
                    let name = name.as_bytes();
                    assert_eq!(is_dot_git(name), reads_as_dot_git(name), "{one}{two}{three}");
                }
            }
        }
    }

    #[test]
    fn below_means_a_component_further_down() {
        let dir = RepoPath::new("a/b").unwrap();
        assert!(RepoPath::new("a/b/c").unwrap().is_below(&dir));
        assert!(!RepoPath::new("a/bc").unwrap().is_below(&dir));
        assert!(!dir.is_below(&dir));
    }
}
