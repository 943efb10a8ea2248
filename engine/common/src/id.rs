//! Every identifier, each a type of its own, with its text form.
//!
//! Adding a kind of text id is one line in the `text_ids!` list, a kind of number one line in
//! `number_ids!`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Why a text is not an identifier of the kind asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadId {
    /// The kind that was asked for, as a noun.
    pub kind: &'static str,
    /// The text that was given, cut to 100 characters.
    pub given: String,
    /// What a text of this kind looks like.
    pub rule: &'static str,
}

impl fmt::Display for BadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no {}: {}", self.given, self.kind, self.rule)
    }
}

impl std::error::Error for BadId {}

/// The name of a git object: 20 bytes of SHA-1, 40 lower-case hex digits as text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(pub [u8; 20]);

/// The hex digits of a byte string.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    let mut out = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        for nibble in [byte >> 4, byte & 15] {
            out.push(DIGITS.get(usize::from(nibble)).copied().unwrap_or('0'));
        }
    }
    out
}

/// The bytes of an even number of hex digits, or `None`.
#[must_use]
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let text = text.as_bytes();
    if !text.len().is_multiple_of(2) {
        return None;
    }
    text.chunks_exact(2)
        .map(|pair| match pair {
            [high, low] => {
                let high = char::from(*high).to_digit(16)?;
                let low = char::from(*low).to_digit(16)?;
                u8::try_from(high * 16 + low).ok()
            }
            _ => None,
        })
        .collect()
}

impl ObjectId {
    /// The id that git writes for "no object".
    pub const ZERO: Self = Self([0; 20]);
    /// The id of the empty tree, which every repository has without storing it.
    pub const EMPTY_TREE: Self = Self([
        0x4b, 0x82, 0x5d, 0xc6, 0x42, 0xcb, 0x6e, 0xb9, 0xa0, 0x60, 0xe5, 0x4b, 0xf8, 0xd6, 0x92, 0x88, 0xfb,
        0xee, 0x49, 0x04,
    ]);

    /// An id from exactly 20 bytes, else `None`.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// The 40 hex digits.
    fn digits(&self) -> [u8; 40] {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = [b'0'; 40];
        for (pair, byte) in text.as_chunks_mut::<2>().0.iter_mut().zip(self.0) {
            *pair =
                [byte >> 4, byte & 15].map(|nibble| DIGITS.get(usize::from(nibble)).copied().unwrap_or(b'0'));
        }
        text
    }

    /// The 20 bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 20] {
        &self.0
    }

    /// Is this git's "no object"?
    #[must_use]
    pub fn is_zero(&self) -> bool {
        *self == Self::ZERO
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(digits_text(&self.digits()))
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for ObjectId {
    type Err = BadId;

    fn from_str(text: &str) -> Result<Self, BadId> {
        undigits(text.as_bytes()).map(Self).ok_or_else(|| BadId {
            kind: "object id",
            given: text.chars().take(100).collect(),
            rule: "40 hex digits",
        })
    }
}

impl Serialize for ObjectId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(digits_text(&self.digits()))
    }
}

impl<'de> Deserialize<'de> for ObjectId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Digits;
        impl serde::de::Visitor<'_> for Digits {
            type Value = ObjectId;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("40 hex digits")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<ObjectId, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Digits)
    }
}

/// The 20 bytes of 40 hex digits; ids are read and written by the thousand, so nothing is allocated.
fn undigits(text: &[u8]) -> Option<[u8; 20]> {
    let (pairs, []) = text.as_chunks::<2>() else { return None };
    let mut bytes = [0; 20];
    if pairs.len() != bytes.len() {
        return None;
    }
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        let (high, low) = (char::from(*high).to_digit(16)?, char::from(*low).to_digit(16)?);
        *byte = u8::try_from(high * 16 + low).ok()?;
    }
    Some(bytes)
}

fn digits_text(digits: &[u8; 40]) -> &str {
    std::str::from_utf8(digits).unwrap_or_default()
}

fn short(text: &str, max: usize, ok: impl Fn(char) -> bool) -> bool {
    !text.is_empty() && text.len() <= max && text.chars().all(ok)
}

fn name_like(text: &str) -> bool {
    short(text, 64, |c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '.'))
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && !text.contains("..")
        && !text.ends_with(".git")
        && !text.ends_with(".lock")
        && !text.ends_with('.')
}

fn change_like(text: &str) -> bool {
    (8..=64).contains(&text.len())
        && short(text, 64, |c| c.is_ascii_alphanumeric() || c == '-')
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
}

fn printable(text: &str) -> bool {
    short(text, 200, |c| c.is_ascii_graphic())
}

fn claims_like(text: &str) -> bool {
    short(text, 1000, |c| c.is_ascii_graphic())
}

fn ref_like(text: &str) -> bool {
    let parts_ok =
        text.split('/').all(|part| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock"));
    text.len() <= 512
        && (text == "HEAD" || text.starts_with("refs/"))
        && parts_ok
        && !text.ends_with('.')
        && !text.contains("..")
        && !text.contains("@{")
        && !text
            .chars()
            .any(|c| c.is_ascii_control() || matches!(c, ' ' | '~' | '^' | ':' | '?' | '*' | '[' | '\\'))
}

macro_rules! text_ids {
    ($($(#[$doc:meta])* $name:ident, $kind:literal, $check:ident, $rule:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// The checked text as this kind of id.
            ///
            /// # Errors
            /// [`BadId`] when the text breaks the rule of this kind.
            pub fn new(text: impl Into<String>) -> Result<Self, BadId> {
                let text = text.into();
                if $check(&text) {
                    return Ok(Self(text));
                }
                Err(BadId { kind: $kind, given: text.chars().take(100).collect(), rule: $rule })
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = BadId;

            fn from_str(text: &str) -> Result<Self, BadId> {
                Self::new(text)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::new(String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
            }
        }
    )*};
}

text_ids! {
    /// The name of a repository, as in `/{repo}.git`.
    RepoName, "repository name", name_like,
        "1 to 64 of a-z, 0-9, '-', '_', '.', starting with a letter or digit, without '..' and not \
         ending in .git, .lock or '.'";
    /// The name of a fork (an agent's own refs), as in `/{repo}/forks/{fork}.git`.
    ForkName, "fork name", name_like,
        "1 to 64 of a-z, 0-9, '-', '_', '.', starting with a letter or digit, without '..' and not \
         ending in .git, .lock or '.'";
    /// The name of a lane.
    LaneName, "lane name", name_like,
        "1 to 64 of a-z, 0-9, '-', '_', '.', starting with a letter or digit";
    /// The id of a change: the value of its `Change-Id` trailer.
    ChangeId, "change id", change_like,
        "8 to 64 letters, digits or '-', starting with a letter";
    /// The name of a merge rule, as in `.switchyard.toml`.
    RuleName, "rule name", name_like, "1 to 64 of a-z, 0-9, '-', '_', '.'";
    /// The key that makes a repeated request harmless, chosen by the caller.
    IdempotencyKey, "idempotency key", printable, "1 to 200 printable ASCII characters without spaces";
    /// The id of one test run.
    RunId, "run id", printable, "1 to 200 printable ASCII characters without spaces";
    /// The id of a runner process.
    RunnerId, "runner id", printable, "1 to 200 printable ASCII characters without spaces";
    /// The id of a token, by which it is revoked.
    TokenId, "token id", printable, "1 to 200 printable ASCII characters without spaces";
    /// The public part of a token: all of it before its last dot. With the platform's secret the
    /// whole token can be rebuilt from it.
    TokenClaims, "token", claims_like, "1 to 1000 printable ASCII characters without spaces";
    /// The R2 key of a pack.
    PackKey, "pack key", printable, "1 to 200 printable ASCII characters without spaces";
    /// Test command + configuration blob + hash of the runner's environment, hashed: 40 hex digits.
    SuiteId, "suite id", printable, "1 to 200 printable ASCII characters without spaces";
    /// The full name of a ref, by the rules of `git check-ref-format`.
    RefName, "ref name", ref_like,
        "HEAD or refs/..., by the rules of `git check-ref-format`, at most 512 bytes";
}

macro_rules! number_ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl $name {
            /// The number after this one.
            #[must_use]
            pub fn next(self) -> Self {
                Self(self.0.saturating_add(1))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    )*};
}

number_ids! {
    /// A version of a change: 1, 2, ...; numbered by the submissions log alone.
    Version;
    /// A place in the submissions log of a repository, from 1.
    Seq;
    /// A place in the fact log of an object, from 1; also the state number that decisions carry.
    FactNo;
    /// Counts the pushes to main that were not a fast-forward.
    Epoch;
    /// Counts the hand-overs of a change or lane between owners.
    OwnerEpoch;
    /// A claim's fencing number; larger is newer.
    Fence;
    /// A train of a lane, from 1.
    TrainNo;
    /// A try at a train, from 1.
    AttemptNo;
    /// A lease on a run; larger is newer.
    LeaseNo;
    /// A model replay that a lane asked for, from 1.
    ReplayNo;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_id_reads_what_it_writes() {
        let text = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
        let id: ObjectId = text.parse().unwrap();
        assert_eq!(id, ObjectId::EMPTY_TREE);
        assert_eq!(id.to_string(), text);
        assert!("4b825".parse::<ObjectId>().is_err());
        assert!("zz825dc642cb6eb9a060e54bf8d69288fbee4904".parse::<ObjectId>().is_err());
        for odd in [&text[1..], &format!("{text}0"), &format!("{text}00"), ""] {
            assert!(odd.parse::<ObjectId>().is_err(), "{odd:?}");
        }
        assert_eq!(serde_json::to_string(&id).unwrap(), format!("{text:?}"));
        assert_eq!(serde_json::from_str::<ObjectId>(&format!("{text:?}")).unwrap(), id);
        assert_eq!(serde_json::from_str::<ObjectId>(&format!("\"\\u0034{}\"", &text[1..])).unwrap(), id);
        assert!(serde_json::from_str::<ObjectId>("\"4b\"").is_err());
        assert_eq!(hex(&id.0), text);
    }

    #[test]
    fn ref_names_follow_check_ref_format() {
        for good in ["HEAD", "refs/heads/main", "refs/for/main", "refs/heads/ü-1"] {
            assert!(RefName::new(good).is_ok(), "{good}");
        }
        for bad in [
            "main",
            "refs/heads/",
            "refs//x",
            "refs/heads/a..b",
            "refs/heads/.a",
            "refs/heads/a.lock",
            "refs/heads/a b",
            "refs/heads/a^",
            "refs/heads/a\u{7f}",
            "refs/heads/@{x",
            "refs/heads/a.",
        ] {
            assert!(RefName::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn names_keep_out_paths_and_suffixes() {
        for bad in ["", "..", "a..b", "-a", "a/b", "A", "x.git", "x.lock", "x."] {
            assert!(RepoName::new(bad).is_err(), "{bad}");
        }
        assert!(RepoName::new("my-repo_1.x").is_ok());
    }
}
