//! Names that a file system reads as one of git's special files.
//!
//! HFS+ ignores some code points and the case; NTFS ignores the case, trailing spaces and dots, has streams
//! (`:`) and short names (`GITMOD~1`, or six characters of which some are a hash: `GI7EBA~1`).

use yard_common::path::hfs_chars;

use super::Special;

/// Each file: its name without the dot, and the start of its hashed short name on NTFS.
const FILES: [(Special, &[u8], &[u8; 6]); 4] = [
    (Special::MODULES, b"gitmodules", b"gi7eba"),
    (Special::ATTRIBUTES, b"gitattributes", b"gi7d29"),
    (Special::IGNORE, b"gitignore", b"gi250a"),
    (Special::MAILMAP, b"mailmap", b"maba30"),
];

/// What a component can be read as.
pub(super) fn special(component: &[u8]) -> Special {
    let mut found = Special::default();
    if may_be(component) {
        for (special, name, short) in FILES {
            if is_hfs(component, name) || is_ntfs(component, name, short) {
                found = found.and(special);
            }
        }
    }
    // On Windows a backslash starts a new component.
    let [(modules, name, short), ..] = FILES;
    let mut rest = component;
    while let Some(at) = rest.iter().position(|byte| *byte == b'\\') {
        rest = rest.get(at + 1..).unwrap_or_default();
        if is_ntfs(rest, name, short) {
            found = found.and(modules);
        }
    }
    found
}

/// Most names are no special file's by their first byte.
fn may_be(component: &[u8]) -> bool {
    matches!(component.first(), Some(b'.' | b'g' | b'G' | b'm' | b'M' | b'~' | 0xe2 | 0xef))
}

/// `name` behind a dot, as HFS+ reads it.
fn is_hfs(component: &[u8], name: &[u8]) -> bool {
    let mut plain = hfs_chars(component);
    plain.next() == Some('.')
        && name.iter().all(|byte| plain.next().is_some_and(|c| c.to_ascii_lowercase() == char::from(*byte)))
        && plain.next().is_none()
}

fn ends(rest: &[u8]) -> bool {
    let end = rest.iter().position(|byte| !matches!(byte, b' ' | b'.'));
    end.and_then(|end| rest.get(end)).is_none_or(|byte| *byte == b':')
}

fn strip<'a>(text: &'a [u8], start: &[u8]) -> Option<&'a [u8]> {
    let (head, rest) = text.split_at_checked(start.len())?;
    head.eq_ignore_ascii_case(start).then_some(rest)
}

fn is_ntfs(component: &[u8], name: &[u8], short: &[u8; 6]) -> bool {
    if component.first() == Some(&b'.') {
        return component.get(1..).and_then(|rest| strip(rest, name)).is_some_and(ends);
    }
    let six = name.get(..6).unwrap_or(name);
    let regular = strip(component, six).and_then(|rest| rest.strip_prefix(b"~"));
    if regular
        .and_then(|rest| rest.split_first())
        .is_some_and(|(n, rest)| matches!(n, b'1'..=b'4') && ends(rest))
    {
        return true;
    }
    // Up to six characters, a tilde, a number: eight bytes together.
    let Some((eight, rest)) = component.split_at_checked(8) else { return false };
    let Some(tilde) = eight.iter().position(|byte| *byte == b'~') else { return false };
    let (start, number) = eight.split_at(tilde);
    short.get(..start.len()).is_some_and(|short| start.eq_ignore_ascii_case(short))
        && matches!(number.get(1), Some(b'1'..=b'9'))
        && number.iter().skip(2).all(u8::is_ascii_digit)
        && ends(rest)
}

/// Is a submodule's name empty, or has it a `..` component?
pub(super) fn climbs(name: &[u8]) -> bool {
    name.is_empty() || name.split(|byte| matches!(byte, b'/' | b'\\')).any(|part| part == b"..")
}
